// Tests images and mounts: a root directory, squashfs, OCI layout and archive, and
// --container-mounts.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "noded/image/manifest.h"
#include "tests/places.h"
#include "tests/runtime/image_fixture.h"

using namespace gantry;
using namespace gantry::runtime;
using namespace gantry::runtime::test;

namespace {

// Runs registry.py on a port of its own for as long as this object exists.
class Registry {
 public:
  explicit Registry(const std::string& layout) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], 1);
      const std::string program = source_dir() + "/tests/runtime/registry.py";
      ::execlp("python3", "python3", program.c_str(), layout.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    char text[16]{};
    REQUIRE(::read(ends[0], text, sizeof text - 1) > 0);
    ::close(ends[0]);
    host_ = "127.0.0.1:" + std::to_string(std::atoi(text));
  }
  ~Registry() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  [[nodiscard]] const std::string& host() const { return host_; }

 private:
  pid_t pid_ = -1;
  std::string host_;
};

}  // namespace

TEST_CASE("an image from a registry can be named in two ways") {
  if (!can_run()) return;
  Node node;
  REQUIRE(oci_layout(node, busybox_root(node)));
  const Registry registry(node.dir() + "/oci");
  for (const auto& image :
       {"docker://" + registry.host() + "/team/tool:t", registry.host() + "#team/tool:t"}) {
    auto request = node.job("cat /etc/marker; echo $WHO");
    request.container.image = image;
    const auto record = node.run(request);
    CHECK_MESSAGE(record.exit == ExitStatus{}, record.message);
    CHECK(node.output() == "from-image\nimage\n");
  }
  auto request = node.job("true");
  request.container.image = "docker://" + registry.host() + "/team/tool:no-such-tag";
  const auto record = node.run(request);
  CHECK(record.cause == ExitCause::launch_failed);
  CHECK(has(record.message, "no-such-tag"));
}

TEST_CASE("a root directory can be used as an image") {
  if (!can_run()) return;
  Node node;
  auto request = node.job(
      "cat /etc/marker; id -u; touch /x 2>&1; touch /tmp/x && echo tmp; ls /run/gantry; pwd; touch "
      "here && echo here");
  request.container.image = busybox_root(node);
  const auto record = node.run(request);
  CHECK_MESSAGE(record.exit == ExitStatus{}, record.message);
  const auto out = node.output();
  CHECK_MESSAGE(out.starts_with("from-image\n20001\n"), out);
  CHECK(has(out, "Read-only file system"));
  CHECK(has(out, "tmp\nscript\n" + node.home() + "\nhere\n"));

  request = node.job("touch /tmp/../x 2>&1; echo changed > /etc/marker; cat /etc/marker");
  request.container.image = node.dir() + "/rootfs";
  request.container.writable = true;
  request.container.work_dir = "/etc";
  node.run(request);
  CHECK(node.read(node.dir() + "/rootfs/etc/marker") == "from-image\n");
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("a GPU's driver is added to an image that was made without it") {
  if (!can_run()) return;
  Node node;
  auto request = node.job(
      "cat /usr/local/nvidia/lib64/libcuda.so.1; echo $LD_LIBRARY_PATH; echo x > "
      "/usr/local/nvidia/lib64/libcuda.so.1 || echo kept");
  request.container.image = busybox_root(node);
  const std::string library = node.dir() + "/libcuda.so.550.54.15";
  std::ofstream(library) << "the driver\n";
  request.mounts = {
      {"/usr/local/nvidia/lib64/libcuda.so.1", library, "", {"ro", "nosuid", "nodev", "bind"}}};
  request.env["LD_LIBRARY_PATH"] = "/opt/own";
  const auto record = node.run(request);
  CHECK_MESSAGE(record.exit == ExitStatus{}, record.message);
  const auto out = node.output();
  CHECK_MESSAGE(out.starts_with("the driver\n/opt/own:/usr/local/nvidia/lib64\n"), out);
  CHECK_MESSAGE(out.ends_with("kept\n"), out);
  CHECK(node.read(library) == "the driver\n");
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("an error names the image that cannot be used") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.config.image_dirs = {"/srv/images"}; });
  const auto cause = [&](const std::string& image) {
    auto request = node.job("true");
    request.container.image = image;
    const auto record = node.run(request);
    CHECK(record.cause == ExitCause::refused);
    return record.message;
  };
  CHECK(has(cause("/no/such/root"), "node n1: image /no/such/root: No such file"));
  CHECK(has(cause("/root"), "tester may not read it"));
  CHECK(has(cause("/usr"), "not below one of this node's image directories"));
  CHECK(has(cause("ftp://x/y"), "expected docker://"));
  CHECK(has(cause("oci:/no/layout:t"), "node n1: image /no/layout: No such file"));
  CHECK(has(cause("/no/such/file.sqsh"), "image /no/such/file.sqsh: No such file"));
  node.write(node.home() + "/mine.sqsh", "squashed", 0644, true);
  CHECK(has(cause(node.home() + "/mine.sqsh"), "not below one of this node's image directories"));
  CHECK(has(cause("/etc/passwd"), "Not a directory"));
}

TEST_CASE("with image directories set, layouts and archives must lie in them as well") {
  if (!can_run()) return;
  std::string allowed;
  Node node([&](RuntimeOptions& options) {
    allowed = options.config.state_dir.substr(0, options.config.state_dir.rfind('/')) + "/allowed";
    options.config.image_dirs = {allowed};
  });
  const auto root = busybox_root(node);
  REQUIRE(oci_layout(node, root));
  const std::string outside = node.dir() + "/oci";
  REQUIRE(shell("mkdir -p " + allowed + " && cp -a " + outside + " " + allowed + "/oci"));
  const auto run = [&](const std::string& image) {
    auto request = node.job("cat /etc/marker");
    request.container.image = image;
    const auto record = node.run(request);
    return record.cause == ExitCause::exited ? node.output() : record.message;
  };
  const std::string why = "not below one of this node's image directories";
  CHECK(has(run("oci:" + outside + ":t"), why));
  for (const std::string form : {"oci-archive", "docker-archive"}) {
    const std::string file = node.dir() + "/" + form + ".tar";
    REQUIRE(shell("skopeo copy oci:" + outside + ":t " + form + ":" + file +
                  ":a/b:t && chmod 644 " + file));
    CHECK(has(run(form + ":" + file), why));
    CHECK(has(run(form + ":" + file + ":a/b:t"), why));
  }
  CHECK(run("oci:" + allowed + "/oci:t") == "from-image\n");
  remove_tree(node.dir() + "/images");

  // The link leads to an allowed directory when it is checked, and to another one when it is read.
  const std::string link = node.home() + "/link", source = "oci:" + link + ":t";
  REQUIRE(shell("echo swapped > " + root + "/etc/marker && rm -rf " + outside + " " + node.dir() +
                "/bundle"));
  REQUIRE(oci_layout(node, root));
  REQUIRE(::symlink((allowed + "/oci").c_str(), link.c_str()) == 0);
  const std::string slots = node.dir() + "/images/slots";
  REQUIRE(make_dirs(slots, 0711).has_value());
  auto request = node.job("cat /etc/marker");
  request.container.image = source;
  {
    const Fd turn(::open((slots + "/user-20001-" + sha256_hex(source) + ".lock").c_str(),
                         O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    REQUIRE(::flock(turn.get(), LOCK_EX) == 0);
    REQUIRE(node.runtime().begin(request).has_value());
    for (int ms = 0; ms < 1'000; ms += 20) node.pump(20);
    REQUIRE(::unlink(link.c_str()) == 0);
    REQUIRE(::symlink(outside.c_str(), link.c_str()) == 0);
  }
  const auto record = node.wait_end(request.key);
  CHECK_MESSAGE(record.exit == ExitStatus{}, record.message);
  CHECK(has(node.output(), "from-image\n"));
  CHECK_FALSE(has(node.output(), "swapped"));
}

TEST_CASE("a squashfs file can be used as an image") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.config.image_dirs = {"/srv", "/var/tmp"}; });
  const auto root = busybox_root(node);
  const std::string file = node.dir() + "/image.sqsh";
  REQUIRE(shell("mksquashfs " + root + " " + file + " -comp lz4 -noappend && chmod 644 " + file));
  auto request = node.job("cat /etc/marker; touch /etc/x 2>&1");
  request.container.image = file;
  const auto record = node.run(request);
  CHECK_MESSAGE(record.cause == ExitCause::exited, record.message);
  CHECK(has(node.output(), "from-image\n"));
  CHECK(has(node.output(), "Read-only file system"));
  CHECK_FALSE(has(node.read("/proc/mounts"), "squashfs"));
}

TEST_CASE(
    "OCI layouts and archives are unpacked once, with their environment and working directory") {
  if (!can_run()) return;
  Node node;
  REQUIRE(oci_layout(node, busybox_root(node)));
  for (const std::string form : {"oci", "oci-archive", "docker-archive"}) {
    std::string image = "oci:" + node.dir() + "/oci:t";
    if (form != "oci") {
      const std::string file = node.dir() + "/" + form + ".tar";
      REQUIRE(shell("skopeo --insecure-policy copy oci:" + node.dir() + "/oci:t " + form + ":" +
                    file + ":t:latest || skopeo --insecure-policy copy oci:" + node.dir() +
                    "/oci:t " + form + ":" + file + ":t; chmod 644 " + file));
      image = form + ":" + file;
    }
    CAPTURE(image);
    auto request = node.job("cat /etc/marker; echo $WHO $PATH $SLURM_JOB_ID; pwd");
    request.container.image = image;
    request.env["PATH"] = "/opt/of/the/host/bin";
    request.work_dir = "/usr/lib";  // the image does not have this directory
    request.std_out = node.home() + "/out";
    const auto record = node.run(request);
    CHECK_MESSAGE(record.exit == ExitStatus{}, record.message);
    CHECK(node.output() ==
          "from-image\nimage /bin " + std::to_string(request.key.job.value()) + "\n/srv2\n");
  }
  // There are two images, because a docker-archive has layers without gzip. Each has its lock file.
  // file.
  CHECK(list_dir(node.dir() + "/images/images").size() == 4);
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("container mounts show a user only what the user may read") {
  if (!can_run()) return;
  Node node;
  const std::string open = node.dir() + "/open", closed = node.dir() + "/closed",
                    own = node.home() + "/own";
  for (const auto& dir : {open, closed, own}) ::mkdir(dir.c_str(), 0755);
  ::chmod(closed.c_str(), 0700);
  REQUIRE(::chown(own.c_str(), kTestUid, kTestUid) == 0);
  node.write(open + "/data", "data\n", 0644, false);
  auto request =
      node.job("cat /mnt/data; touch /mnt/x 2>&1; touch /made/here/x && echo made; cat /made/file");
  request.container.mounts = {open + ":/mnt", own + ":/made/here:rw", open + "/data:/made/file:ro"};
  const auto record = node.run(request);
  CHECK_MESSAGE(record.cause == ExitCause::exited, record.message);
  CHECK_MESSAGE(has(node.output(), "data\n"), node.output());
  CHECK(has(node.output(), "Read-only file system"));
  CHECK(has(node.output(), "made\ndata\n"));
  CHECK(::access((own + "/x").c_str(), F_OK) == 0);
  CHECK(::access("/made", F_OK) != 0);

  const auto cause = [&](const std::string& mount) {
    auto bad = node.job("true");
    bad.container.mounts = {mount};
    const auto refused = node.run(bad);
    CHECK(refused.cause == ExitCause::refused);
    CHECK(has(refused.message, "container mount '" + mount + "': "));
    return refused.message;
  };
  CHECK(has(cause(closed + ":/mnt"), "tester may not read"));
  CHECK(has(cause(open + ":/mnt:rw"), "tester may not write to"));
  CHECK(has(cause("/no/such:/mnt"), "No such file"));
  CHECK(has(cause("/proc/self/root:/mnt"), "belongs to the node's kernel"));
  CHECK(has(cause(own + ":/proc/x"), "belongs to the container"));
  CHECK(has(cause(own + ":/"), "belongs to the container"));
  CHECK(has(cause(own + ":mnt"), "must be absolute"));
  CHECK(has(cause(own + ":/usr/none/such"), "/usr/none/such: "));
  CHECK(has(cause(own + ":/mnt:rx"), "the mode is 'ro' or 'rw'"));
  CHECK(has(cause("/dev/null:/mnt/x"), "belongs to the node's kernel"));
  REQUIRE(::mkfifo((own + "/fifo").c_str(), 0666) == 0);
  CHECK(has(cause(own + "/fifo:/mnt/x"), "neither a directory nor a file"));
  REQUIRE(::symlink("/proc/self/root", (own + "/link").c_str()) == 0);
  CHECK(has(cause(own + "/link:/mnt"), "Too many levels of symbolic links"));
  CHECK(has(cause(open + "/data:/mnt"), "/mnt is a directory"));
}
