// Tests images with which a tenant attacks another tenant or the node: ambiguous layouts, blobs
// that differ from their names, archives that leave their directory, bombs, and images of other
// users.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tests/places.h"
#include "tests/runtime/image_fixture.h"

using namespace gantry;
using namespace gantry::runtime;
using namespace gantry::runtime::test;

namespace {

constexpr std::uint32_t kOtherUid = 20002;

// Makes a job of another tenant's user.
LaunchRequest others_job(Node& node, const std::string& script) {
  auto request = node.job(script);
  request.owner.uid = Uid{kOtherUid};
  request.owner.gid = Gid{kOtherUid};
  request.owner.user = "other";
  request.owner.home = node.dir() + "/home2";
  request.work_dir = request.owner.home;
  ::mkdir(request.work_dir.c_str(), 0700);
  REQUIRE(::chown(request.work_dir.c_str(), kOtherUid, kOtherUid) == 0);
  return request;
}

// Makes a layout of this kind with poison.py; it belongs to the test's user.
std::string poison(const Node& node, const std::string& kind) {
  const std::string out = node.dir() + "/" + kind;
  REQUIRE_MESSAGE(shell("python3 " + source_dir() + "/tests/runtime/poison.py " + kind + " " + out +
                        " " + node.dir() + "/oci && chown -hR 20001:20001 " + out),
                  kind);
  return "oci:" + out + ":t";
}

ExitRecord run_image(Node& node, LaunchRequest request, const std::string& image) {
  request.container.image = image;
  return node.run(request);
}

std::string marker_of_other(Node& node, const std::string& image) {
  const auto record = run_image(node, others_job(node, "cat /etc/marker"), image);
  CHECK_MESSAGE(record.exit == ExitStatus{}, record.message);
  return node.read(node.dir() + "/home2/out");
}

std::vector<std::string> cached_keys(const Node& node) {
  std::vector<std::string> keys;
  for (const auto& name : list_dir(node.dir() + "/images/images"))
    if (name.size() == 64) keys.push_back(name);
  return keys;
}

void small_limits(RuntimeOptions& options) {
  options.config.image_size = 24 << 20;
  options.config.image_files = 2'000;
}

}  // namespace

TEST_CASE("an ambiguous layout does not poison the image of another user") {
  if (!can_run()) return;
  Node node;
  REQUIRE(oci_layout(node, busybox_root(node)));
  const std::string good = "oci:" + node.dir() + "/oci:t";
  for (const std::string kind :
       {"two-manifests", "two-manifests-turned", "swapped-manifest", "swapped-layer",
        "linked-layer", "two-layers-members", "nested-index", "unknown-type"}) {
    CAPTURE(kind);
    // Only the attacker is affected by whether this job runs, and with which content.
    run_image(node, node.job("cat /etc/marker"), poison(node, kind));
    CHECK(marker_of_other(node, good) == "from-image\n");
    remove_tree(node.dir() + "/images");  // the next kind finds nothing in the cache
  }
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("an error names what is wrong with a refused image") {
  if (!can_run()) return;
  Node node;
  REQUIRE(oci_layout(node, busybox_root(node)));
  const auto message = [&](const std::string& kind) {
    const auto record = run_image(node, node.job("true"), poison(node, kind));
    CHECK(record.cause == ExitCause::refused);
    return record.message;
  };
  CHECK(has(message("two-layers-members"), "its manifest has 'layers' twice"));
  CHECK(has(message("unknown-type"), "the media type 'application/vnd.unknown.layer' is not"));
  CHECK(cached_keys(node).empty());
}

TEST_CASE("a user who changes files of the cache during a fetch harms no other user") {
  if (!can_run()) return;
  Node node;
  REQUIRE(oci_layout(node, busybox_root(node)));
  const std::string good = "oci:" + node.dir() + "/oci:t";
  const std::string evil = poison(node, "marked");
  const std::string evil_dir = evil.substr(4, evil.size() - 6);
  const std::string program = source_dir() + "/tests/runtime/image_racer.py";
  const std::string cache = node.dir() + "/images";
  const pid_t racer = ::fork();
  if (racer == 0) {
    if (::setresgid(kTestUid, kTestUid, kTestUid) != 0 ||
        ::setresuid(kTestUid, kTestUid, kTestUid) != 0)
      ::_exit(1);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execlp("python3", "python3", program.c_str(), cache.c_str(), evil_dir.c_str(), nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 1000 && ::access((evil_dir + "/ready").c_str(), F_OK) != 0; ++i)
    node.pump(20);
  // Gives the racer time, as if another job unpacked the same image meanwhile, under every name
  // that the cache may have for it.
  const std::string index = node.read(node.dir() + "/oci/index.json");
  const std::string hex = index.substr(index.find("sha256:") + 7, 64);
  std::string others;
  for (int i = 0; i < 3; ++i) {
    for (const char* trees : {"/images", "/rootfs"}) remove_tree(cache + trees);
    auto mine = node.job("true");
    mine.container.image = good;
    {
      std::vector<Fd> locks;
      for (const std::string trees : {"/images/", "/rootfs/"}) {
        REQUIRE(make_dirs(cache + trees, 0700).has_value());
        const std::string name = cache + trees + hex + ".lock";
        locks.emplace_back(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        REQUIRE(::flock(locks.back().get(), LOCK_EX) == 0);
      }
      REQUIRE(node.runtime().begin(mine).has_value());
      for (int ms = 0; ms < 700; ms += 20) node.pump(20);
    }
    node.wait_end(mine.key);  // what this job itself gets affects only the attacker
    others += marker_of_other(node, good);
  }
  ::kill(racer, SIGKILL);
  ::waitpid(racer, nullptr, 0);
  CHECK(others == "from-image\nfrom-image\nfrom-image\n");
}

TEST_CASE("archives stay in their directory, and bring no devices and no set-uid programs") {
  if (!can_run()) return;
  Node node;
  REQUIRE(oci_layout(node, busybox_root(node)));
  run_image(node, node.job("true"), poison(node, "escapes"));
  for (const char* name : {"/escaped1", "/escaped2", "/escaped3"})
    CHECK(::access((node.dir() + name).c_str(), F_OK) != 0);
  struct stat shadow {};
  REQUIRE(::stat("/etc/shadow", &shadow) == 0);
  CHECK(shadow.st_nlink == 1);
  const auto record =
      run_image(node, node.job("ls -ln / ; cat /mem; echo x > /disk; cat /null | cat; echo done"),
                poison(node, "specials"));
  CHECK_MESSAGE(record.cause == ExitCause::exited, record.message);
  CHECK_MESSAGE(has(node.output(), "done\n"), node.output());
  CHECK(shell("! find " + node.dir() +
              "/images/images -perm /6000 -o -type b -o -type c | grep -q ."));
  CHECK(shell("! find " + node.dir() + "/images/images/*/tree -user 0 | grep -q ."));
}

TEST_CASE("an image that is too large is refused, and nothing of it stays") {
  if (!can_run()) return;
  Node node(small_limits);
  REQUIRE(oci_layout(node, busybox_root(node)));
  for (const std::string kind : {"large", "many", "deep"}) {
    CAPTURE(kind);
    const auto record = run_image(node, node.job("true"), poison(node, kind));
    CHECK_MESSAGE(record.cause != ExitCause::exited, record.message);
    CHECK(cached_keys(node).empty());
    CHECK_MESSAGE(marker_of_other(node, "oci:" + node.dir() + "/oci:t") == "from-image\n", kind);
    remove_tree(node.dir() + "/images/images/" + cached_keys(node).at(0));
  }
  const std::string file = node.dir() + "/large.sqsh";
  REQUIRE(shell("mkdir " + node.dir() + "/l && truncate -s 100M " + node.dir() +
                "/l/sparse && head -c 40M /dev/zero >" + node.dir() + "/l/zeros && mksquashfs " +
                node.dir() + "/l " + file + " -noappend && chmod 644 " + file));
  const auto record = run_image(node, node.job("true"), file);
  CHECK(record.cause != ExitCause::exited);
  CHECK(cached_keys(node).empty());
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("a squashfs file that was changed is another image, and is mounted nowhere") {
  if (!can_run()) return;
  Node node;
  const auto root = busybox_root(node);
  const std::string file = node.dir() + "/image.sqsh";
  const auto make = [&] {
    REQUIRE(shell("mksquashfs " + root + " " + file + " -comp lz4 -noappend && chmod 644 " + file));
  };
  make();
  const auto first = run_image(node, node.job("cat /etc/marker"), file);
  CHECK_MESSAGE(node.output() == "from-image\n", first.message);
  // The file is written again in place, which must not change what other users get.
  std::ofstream(root + "/etc/marker") << "changed\n";
  make();
  CHECK(marker_of_other(node, file) == "changed\n");
  CHECK(cached_keys(node).size() == 2);
  const auto again = run_image(node, node.job("cat /etc/marker"), file);
  CHECK_MESSAGE(node.output() == "changed\n", again.message);
  ::chmod(file.c_str(), 0600);
  const auto closed = run_image(node, node.job("true"), file);
  CHECK(closed.cause == ExitCause::refused);
  REQUIRE(::symlink("/dev/null", (node.dir() + "/null.sqsh").c_str()) == 0);
  CHECK(has(run_image(node, node.job("true"), node.dir() + "/null.sqsh").message,
            "not a regular file"));
  REQUIRE(::mkfifo((node.home() + "/fifo.sqsh").c_str(), 0666) == 0);
  CHECK(has(run_image(node, node.job("true"), node.home() + "/fifo.sqsh").message,
            "not a regular file"));
  CHECK(has(run_image(node, node.job("true"), "oci-archive:" + node.home() + "/fifo.sqsh").message,
            "not a regular file"));
  CHECK(run_image(node, node.job("true"), "/proc").cause == ExitCause::refused);
}

TEST_CASE("an image in the cache is not given to a user who cannot read the layers") {
  if (!can_run()) return;
  Node node;
  REQUIRE(oci_layout(node, busybox_root(node)));
  const std::string layout = node.dir() + "/oci";
  CHECK(marker_of_other(node, "oci:" + layout + ":t") == "from-image\n");
  // This node knows the manifest and the configuration, but the user does not bring the layers.
  const std::string bare = node.dir() + "/bare";
  REQUIRE(shell("cp -a " + layout + " " + bare + " && find " + bare +
                "/blobs -type f -size +3k -delete && chown -R 20001:20001 " + bare));
  const auto record = run_image(node, node.job("cat /etc/marker"), "oci:" + bare + ":t");
  CHECK(record.cause != ExitCause::exited);
  CHECK(cached_keys(node).size() == 1);
}

TEST_CASE("many jobs that fetch one image at once all get it, even if one of them is killed") {
  if (!can_run()) return;
  Node node;
  REQUIRE(oci_layout(node, busybox_root(node)));
  const std::string image = "oci:" + node.dir() + "/oci:t";
  auto killed = node.job("true");
  killed.container.image = image;
  REQUIRE(node.runtime().begin(killed).has_value());
  for (int i = 0; i < 200 && list_dir(node.dir() + "/images/slots/0").empty(); ++i) node.pump(10);
  ::kill(node.shim_pid(killed.key), SIGKILL);
  node.wait_end(killed.key);
  std::vector<LaunchRequest> jobs;
  for (int i = 0; i < 5; ++i) {
    auto request = i % 2 == 0 ? node.job("cat /etc/marker") : others_job(node, "cat /etc/marker");
    request.std_out = "out" + std::to_string(i);
    request.container.image = image;
    jobs.push_back(request);
    REQUIRE(node.runtime().begin(request).has_value());
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto record = node.wait_end(jobs[i].key);
    CHECK_MESSAGE(record.exit == ExitStatus{}, record.message);
    CHECK(node.read(jobs[i].work_dir + "/out" + std::to_string(i)) == "from-image\n");
  }
  CHECK(cached_keys(node).size() == 1);
  // No fetching process is left.
  for (const auto& name : list_dir(node.dir() + "/images/slots")) {
    if (!name.ends_with(".lock")) continue;
    const Fd lock(::open((node.dir() + "/images/slots/" + name).c_str(), O_RDWR | O_CLOEXEC));
    CHECK(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
  }
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("the cache has a maximum size: least recently used images go, images in use stay") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.config.image_cache_size = 12 << 20; });
  const auto root = busybox_root(node);
  const auto make = [&](int number) {
    const std::string file = node.dir() + "/" + std::to_string(number) + ".sqsh";
    REQUIRE(shell("head -c 4M /dev/urandom > " + root + "/data && mksquashfs " + root + " " + file +
                  " -noappend && chmod 644 " + file));
    return file;
  };
  const std::string first = make(1), second = make(2), third = make(3), fourth = make(4);
  auto user = node.job("cat /etc/marker; read x < " + node.home() + "/go; cat /etc/marker");
  user.container.image = first;
  REQUIRE(::mkfifo((node.home() + "/go").c_str(), 0600) == 0);
  REQUIRE(::chown((node.home() + "/go").c_str(), kTestUid, kTestUid) == 0);
  REQUIRE(node.runtime().begin(user).has_value());
  REQUIRE(node.wait_for(user.key, EventKind::running));
  const auto key = cached_keys(node).at(0);
  for (const auto& file : {second, third, fourth})
    CHECK(run_image(node, others_job(node, "true"), file).exit == ExitStatus{});
  const auto left = cached_keys(node);
  CHECK(left.size() < 4);
  CHECK(std::find(left.begin(), left.end(), key) != left.end());
  std::ofstream(node.home() + "/go") << "\n";
  const auto record = node.wait_end(user.key);
  CHECK_MESSAGE(record.exit == ExitStatus{}, record.message);
  CHECK(node.output() == "from-image\nfrom-image\n");
}
