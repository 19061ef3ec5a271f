// Tests the programs that fetch and unpack images against users who make them large, slow or
// endless: how much of the node's memory and disk they may take, and who is blamed when they fail.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "noded/runtime/job_dir.h"
#include "tests/runtime/image_fixture.h"

using namespace gantry;
using namespace gantry::runtime;
using namespace gantry::runtime::test;

namespace {

// A registry that accepts every connection and never answers.
class DeadRegistry {
 public:
  DeadRegistry() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* any = reinterpret_cast<sockaddr*>(&at);
    REQUIRE(::bind(socket_.get(), any, size) == 0);
    REQUIRE(::listen(socket_.get(), 16) == 0);
    REQUIRE(::getsockname(socket_.get(), any, &size) == 0);
    host_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  [[nodiscard]] const std::string& host() const { return host_; }

 private:
  Fd socket_;
  std::string host_;
};

std::string of_process(int pid, const char* what) {
  return read_file("/proc/" + std::to_string(pid) + "/" + what).value_or("");
}

// Waits up to ten seconds for this job's skopeo process (with this verb) and returns its id; 0 if
// there is none.
int skopeo_of(Node& node, const AttemptKey& key, const char* verb = "") {
  for (int i = 0; i < 500; ++i) {
    node.pump(20);
    const auto shim = std::to_string(node.shim_pid(key));
    const auto children = read_file("/proc/" + shim + "/task/" + shim + "/children").value_or("");
    for (const auto& child : split(children, ' ')) {
      const int pid = std::atoi(child.c_str());
      if (has(of_process(pid, "comm"), "skopeo") && has(of_process(pid, "cmdline"), verb))
        return pid;
    }
  }
  return 0;
}

LaunchRequest image_job(Node& node, const std::string& image) {
  auto request = node.job("true");
  request.container.image = image;
  return request;
}

// Only this test uses this user id, so that files of this user must come from this test.
constexpr std::uint32_t kOwnUid = 20017;

LaunchRequest image_job_of_own_user(Node& node, const std::string& image) {
  auto request = image_job(node, image);
  request.owner.uid = Uid{kOwnUid};
  request.owner.gid = Gid{kOwnUid};
  request.owner.home = "/nonexistent";  // skopeo ends at once if it may not read its home directory
  request.work_dir = "/";
  request.std_out = "/dev/null";
  return request;
}

std::vector<std::string> left_in_common(const Node& node) {
  std::vector<std::string> found;
  for (const std::string top : {"/tmp", "/var/tmp"})
    for (const auto& name : list_dir(top)) {
      struct stat st {};
      const auto path = top + "/" + name;
      if (path != node.dir() && ::lstat(path.c_str(), &st) == 0 && st.st_uid == kOwnUid)
        found.push_back(path);
    }
  return found;
}

}  // namespace

TEST_CASE("skopeo has a memory limit, and the kernel ends it before jobs when memory is short") {
  if (!can_run()) return;
  Node node;
  const DeadRegistry registry;
  const auto request = image_job(node, registry.host() + "#team/tool:t");
  REQUIRE(node.runtime().begin(request).has_value());
  const int skopeo = skopeo_of(node, request.key);
  REQUIRE(skopeo > 0);
  CHECK(has(of_process(skopeo, "cmdline"), "inspect"));
  const auto cgroups = of_process(skopeo, "cgroup");
  CHECK_MESSAGE(has(cgroups, "/image_of_20001_0"), cgroups);
  CHECK(of_process(skopeo, "oom_score_adj") == "1000\n");
  // skopeo can write nowhere on the host, so it leaves nothing there.
  for (const char* dir : {"/tmp", "/var/tmp", "/dev/shm"}) {
    const auto file = "/proc/" + std::to_string(skopeo) + "/root" + dir + "/gantry-test-" +
                      std::to_string(::getpid());
    CHECK_FALSE(Fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)));
    CHECK_MESSAGE(errno == EROFS, std::string(dir));
    ::unlink(file.c_str());
  }
  CHECK(node.runtime().kill(request.key).has_value());
  CHECK(node.wait_end(request.key).cause != ExitCause::exited);
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("an endless index of a layout is not read, and no program is started for it") {
  if (!can_run()) return;
  Node node;
  const std::string layout = node.home() + "/layout", index = layout + "/index.json";
  REQUIRE(shell("mkdir " + layout + " && echo '{\"imageLayoutVersion\":\"1.0.0\"}' > " + layout +
                "/oci-layout && mkfifo " + index + " && chown -R 20001:20001 " + layout));
  // The FIFO is opened for reading and writing, so that a reader of it waits for bytes, not for a
  // writer.
  const Fd held(::open(index.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(held);
  const auto request = image_job(node, "oci:" + layout + ":t");
  REQUIRE(node.runtime().begin(request).has_value());
  const int skopeo = skopeo_of(node, request.key);
  CHECK_MESSAGE(skopeo == 0, of_process(skopeo, "cgroup"));
  if (skopeo > 0) (void)node.runtime().kill(request.key);
  const auto record = node.wait_end(request.key);
  CHECK(record.cause == ExitCause::refused);
  CHECK_MESSAGE(has(record.message, index + ": not a regular file"), record.message);

  REQUIRE(shell("rm " + index + " && truncate -s 3G " + index));
  const auto large = node.run(image_job(node, "oci:" + layout + ":t"));
  CHECK(large.cause == ExitCause::refused);
  CHECK_MESSAGE(has(large.message, index + ": more than 4194304 bytes"), large.message);
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("a layout that was unpacked once is used again without a copy") {
  if (!can_run()) return;
  Node node;
  REQUIRE(oci_layout(node, busybox_root(node)));
  const std::string image = "oci:" + node.dir() + "/oci";
  for (const auto& name : {image + ":t", image}) {
    const auto record = node.run(image_job(node, name));
    CHECK_MESSAGE(record.exit == ExitStatus{}, record.message);
    // If the node copied the image again, it would need the layers.
    REQUIRE(shell("find " + node.dir() + "/oci/blobs -type f -size +3k -delete"));
  }
}

constexpr auto kLongestUnpacking = std::chrono::minutes(2);  // unpacking takes a few seconds

TEST_CASE("an archive is unpacked within the allowed size, and nowhere else") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.config.image_size = 24 << 20; });
  // One archive has 600 MB in 100 files, the other has one file of 200 MB.
  const std::string many = node.dir() + "/many.tar.gz", one = node.dir() + "/one.tar.gz";
  REQUIRE(
      shell("set -e; mkdir " + node.dir() + "/zeros; cd " + node.dir() +
            "/zeros; head -c 6M /dev/zero > 0; for i in $(seq 99); do cp 0 $i; done; tar -cf - . "
            "| gzip -1 > " +
            many + "; rm *; head -c 200M /dev/zero > 0; tar -cf - . | gzip -1 > " + one +
            "; rm 0; chmod 644 " + many + " " + one));
  for (const auto& image : {"oci-archive:" + many, "oci-archive:" + one, "docker-archive:" + many,
                            "docker-archive:" + one}) {
    CAPTURE(image);
    const auto request = image_job_of_own_user(node, image);
    REQUIRE(node.runtime().begin(request).has_value());
    std::vector<std::string> seen;
    const int skopeo = skopeo_of(node, request.key);
    CHECK(skopeo > 0);
    const auto until = std::chrono::steady_clock::now() + kLongestUnpacking;
    while (has(of_process(skopeo, "comm"), "skopeo")) {
      if (seen.empty()) seen = left_in_common(node);
      node.pump(20);
      if (std::chrono::steady_clock::now() < until) continue;
      FAIL_CHECK("skopeo still unpacks " << image << " after two minutes; it waits in "
                                         << of_process(skopeo, "wchan") << ", and its state is "
                                         << of_process(skopeo, "status"));
      (void)node.runtime().kill(request.key);
      break;
    }
    const auto record = node.wait_end(request.key);
    CHECK_MESSAGE(record.cause == ExitCause::refused, record.message);
    for (const auto& path : seen) FAIL_CHECK(path);
    for (const auto& path : left_in_common(node)) remove_tree(path);
    for (const auto& name : list_dir(node.dir() + "/images/slots"))
      CHECK_MESSAGE(name.ends_with(".lock"), name);
  }
}

TEST_CASE("a file that is no image is the owner's mistake, and the job is not started again") {
  if (!can_run()) return;
  Node node;
  node.write(node.home() + "/noise", std::string(100'000, '7'), 0644, true);
  node.write(node.home() + "/noise.sqsh", std::string(100'000, '7'), 0644, true);
  REQUIRE(shell("mkdir " + node.home() + "/empty && echo '{}' > " + node.home() +
                "/empty/index.json && cd " + node.home() + " && tar -cf /dev/stdout empty > tar"));
  for (const auto& image :
       {"oci-archive:" + node.home() + "/noise", "docker-archive:" + node.home() + "/noise",
        "oci-archive:" + node.home() + "/tar", "docker-archive:" + node.home() + "/tar",
        "oci:" + node.home() + "/empty:t", node.home() + "/noise.sqsh"}) {
    CAPTURE(image);
    const auto record = node.run(image_job(node, image));
    CHECK_MESSAGE(record.cause == ExitCause::refused, record.message);
  }
}

TEST_CASE(
    "a copy that is too large is stopped, whatever the user does to the user's own processes") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.config.image_size = 24 << 20; });
  const DeadRegistry registry;
  const auto request = image_job_of_own_user(node, registry.host() + "#team/tool:t");
  REQUIRE(node.runtime().begin(request).has_value());
  // The inspection is killed, so that the copy begins, which waits for the same registry.
  const int asks = skopeo_of(node, request.key, "inspect");
  REQUIRE(asks > 0);
  ::kill(asks, SIGKILL);
  REQUIRE(skopeo_of(node, request.key, "copy") > 0);
  const auto shim = std::to_string(node.shim_pid(request.key));
  const auto children = read_file("/proc/" + shim + "/task/" + shim + "/children").value_or("");
  for (const auto& child : split(children, ' '))
    if (std::atoi(child.c_str()) > 0) ::kill(std::atoi(child.c_str()), SIGSTOP);
  // Another process of the user writes into the directory of skopeo's copy.
  const std::string slot = node.dir() + "/images/slots/0/incoming";
  REQUIRE(shell("head -c 40M /dev/zero > " + slot + "/tmp/zeros"));
  const auto record = node.wait_end(request.key);
  CHECK(record.cause == ExitCause::refused);
  CHECK_MESSAGE(has(record.message, "it is larger than images may be here"), record.message);
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}
