// Tests parts of the runtime that need no container: mappings, lists, mount options, the call
// filter.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/job/output_pattern.h"
#include "noded/machine/cgroup.h"
#include "noded/machine/discover.h"
#include "noded/runtime/job_dir.h"
#include "noded/runtime/seccomp.h"
#include "noded/shim/process/step_tasks.h"
#include "noded/shim/rootfs/oci_config.h"
#include "noded/shim/rootfs/user_mounts.h"

using namespace gantry;
using namespace gantry::runtime;

TEST_CASE("file name patterns are expanded") {
  PatternValues v;
  v.job = JobId{7};
  v.array_job = JobId{5};
  v.array_task = 3;
  v.name = "a/b";
  v.user = "eva";
  v.node = "n1";
  v.node_index = 2;
  v.task = 4;
  const auto expand = [&](std::string_view pattern) { return expand_pattern(pattern, v).value(); };
  CHECK(expand("x-%j.out") == "x-7.out");
  CHECK(expand("%A_%a") == "5_3");
  CHECK(expand("%4j-%3a-%99j") == "0007-003-0000000007");
  CHECK(expand("%x.%u.%N.%n.%t.%s") == "a_b.eva.n1.2.4.batch");
  CHECK(expand("100%%") == "100%");
  CHECK(expand("a\\%j") == "a%j");
  v.step = StepId{9};
  CHECK(expand("%J %s") == "7.9 9");
  v.array_job = JobId{};
  v.array_task.reset();
  CHECK(expand("%A_%a") == "7_4294967294");
  for (const char* bad : {"%q", "end%", "%5"}) CHECK_FALSE(expand_pattern(bad, v).has_value());
}

TEST_CASE("the id mapping keeps own ids, moves all others to the range, and maps none twice") {
  const auto check = [](std::vector<std::uint32_t> own) {
    std::uint64_t next = 0;
    for (const auto& range : keep_mapping(own, 1'000'000'000)) {
      CHECK(range.inside >= next);
      CHECK(range.count > 0);
      next = std::uint64_t{range.inside} + range.count;
      const bool kept = range.inside == range.outside;
      CHECK((kept ? range.count == 1 : range.outside == 1'000'000'000 + range.inside));
      std::erase_if(own, [&](std::uint32_t id) { return kept && id == range.inside; });
    }
    CHECK(own.empty());
    CHECK(next >= 65536);
  };
  check({1000});
  check({0});
  check({65535});
  check({65536});
  check({3'000'000'000});
  check({1000, 1001, 4, 4, 70000, 0});
}

TEST_CASE("lists of CPUs are written and parsed") {
  CHECK(cpu_list({}).empty());
  CHECK(cpu_list({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
  CHECK(parse_cpu_list("0-2,5,7-8\n") == std::vector<std::uint16_t>{0, 1, 2, 5, 7, 8});
  CHECK(parse_cpu_list("").empty());
  CHECK(cpus_here({4, 9}, {}) == std::vector<std::uint16_t>{4, 9});
  CHECK(cpus_here({0, 3, 5, 6}, {2, 7}) == std::vector<std::uint16_t>{2, 7});
  CHECK(cpus_here({4}, {2, 7}) == std::vector<std::uint16_t>{2});
  CHECK(parse_cpu_list("x,3-y,4") == std::vector<std::uint16_t>{4});
}

TEST_CASE("the distances of NUMA nodes from a job's CPUs are read") {
  char path[] = "/tmp/gantry-numa-XXXXXX";
  REQUIRE(::mkdtemp(path) != nullptr);
  const std::string top = path;
  const auto node = [&](const std::string& name, const std::string& cpus,
                        const std::string& distances) {
    std::filesystem::create_directory(top + "/" + name);
    std::ofstream(top + "/" + name + "/cpulist") << cpus << "\n";
    std::ofstream(top + "/" + name + "/distance") << distances << "\n";
  };
  node("node0", "0-3", "10 21 32");
  node("node2", "4-7", "21 10 25");
  node("node10", "", "32 25 10");  // a node with memory and no CPUs
  std::filesystem::create_directory(top + "/nodes");
  const NumaMap map = NumaMap::read(top);
  std::filesystem::remove_all(top);
  const std::vector<std::uint16_t> low{0, 1}, high{5}, both{3, 4}, none{99};
  CHECK(map.distance(low, 0) == kNumaOwn);
  CHECK(map.distance(low, 2) == 21);
  CHECK(map.distance(low, 10) == 32);
  CHECK(map.distance(high, 10) == 25);
  CHECK(map.distance(both, 0) == kNumaOwn);
  CHECK(map.distance(both, 2) == kNumaOwn);
  CHECK(map.distance(low, 1) == kNumaUnknown);
  CHECK(map.distance(none, 0) == kNumaUnknown);
  CHECK(map.distance({}, 0) == kNumaUnknown);
  CHECK(map.distance(low, -1) == kNumaOwn);
}

TEST_CASE("names of job directories are parsed, and other names are refused") {
  CHECK(parse_job_name("7.2") == AttemptKey{JobId{7}, Attempt{2}});
  for (const char* bad : {"", "7", "7.", ".2", "7.2x", "x.2", "7.2.3"})
    CHECK_FALSE(parse_job_name(bad).has_value());
}

// remove_tree() moves deep directories up. A user may have taken all names that it could give them
// there.
TEST_CASE("a tree is removed, whatever its names and depth") {
  std::string dir = std::filesystem::temp_directory_path() / "gantry-tree-XXXXXX";
  REQUIRE(::mkdtemp(dir.data()) != nullptr);
  std::string chain;
  for (int i = 0; i < 150; ++i) chain += "/d";
  for (int i = 0; i < 40; ++i)
    std::filesystem::create_directories(dir + "/.deep-" + std::to_string(i) + chain);
  remove_tree(dir);
  CHECK_FALSE(std::filesystem::exists(dir));
  std::filesystem::remove_all(dir);
}

TEST_CASE("container mounts are parsed, and mounts of system directories are refused") {
  using Mode = MountSpec::Mode;
  const auto spec = parse_mount("/data/:/mnt/in/:ro").value();
  CHECK(spec.source == "/data/");
  CHECK(spec.target == "/mnt/in");
  CHECK(spec.mode == Mode::read_only);
  CHECK(parse_mount("/data").value().target == "/data");
  CHECK(parse_mount("/a:/b").value().mode == Mode::as_allowed);
  CHECK(parse_mount("/a:/b:rw").value().mode == Mode::read_write);
  for (const char* bad :
       {"", ":", "a:/b", "/a:b", "/a:/b:", "/a:/b:rx", "/a:/b:ro:x", "/a:/", "/a:/proc",
        "/a:/dev/shm", "/a:/../b", "/a/..:/b", "/proc/1:/b", "/dev:/b", "/a:/run/gantry/x"})
    CHECK_MESSAGE(!parse_mount(bad).has_value(), bad);
  CHECK(parse_mount("/a:/devices").has_value());
}

TEST_CASE("the call filter is compiled from a list, or an error says why not") {
  for (const char* bad : {"", "[]", "{}", "{\"syscalls\":1}"})
    CHECK_FALSE(compile_seccomp(bad).has_value());
  const auto filter = compile_seccomp(R"({"syscalls":[
    {"names":["read","mount","no_such_call"],"action":"SCMP_ACT_ALLOW"},
    {"names":["chroot"],"action":"SCMP_ACT_ALLOW","includes":{"caps":["CAP_SYS_CHROOT"]}},
    {"names":["personality"],"action":"SCMP_ACT_ALLOW",
     "args":[{"index":0,"value":8,"valueTwo":0,"op":"SCMP_CMP_EQ"}]}]})");
  REQUIRE(filter.has_value());
  CHECK(filter->bpf.size() % 8 == 0);
  CHECK(filter->base64.size() == (filter->bpf.size() + 2) / 3 * 4);
  // left out because it depends on a capability, which jobs do not have
  CHECK(filter->oci.find("chroot") == std::string::npos);
  CHECK(filter->oci.find("{\"names\":[\"read\",\"no_such_call\"]") != std::string::npos);
  CHECK(filter->oci.find("\"mount\"") != std::string::npos);  // it is among the denied calls
}

TEST_CASE("config.json holds what the order says and nothing more") {
  NodeSetup setup;
  setup.node = "n1";
  LaunchRequest request;
  request.owner.uid = Uid{1000};
  request.owner.gid = Gid{1000};
  OciInput input;
  input.root = "/r";
  input.cwd = "/w";
  input.args = {"run", "/run/gantry/script", "a \"b\""};
  input.env = {"A=1"};
  input.seccomp_bpf = "AAAA";
  const auto text = write_oci_config(setup, request, input);
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  CHECK(has(R"("args":["/dev/gantry-init","run","/run/gantry/script","a \"b\""])"));
  CHECK(has(R"("noNewPrivileges":true)"));
  CHECK(has(R"("bounding":[])"));
  CHECK(has(R"("root":{"path":"/r","readonly":true})"));
  CHECK(has(R"({"type":"network"})"));
  CHECK(has(R"({"containerID":1000,"hostID":1000,"size":1})"));
  CHECK(has(R"("run.oci.seccomp_bpf_data":"AAAA")"));
  request.network = NetworkMode::host;
  CHECK(write_oci_config(setup, request, input).find("network") == std::string::npos);
}

TEST_CASE("config.json holds a driver's mounts, hooks and groups from CDI and nothing more") {
  NodeSetup setup;
  LaunchRequest request;
  request.owner.uid = Uid{1000};
  request.owner.gid = Gid{1000};
  request.mounts = {{"/usr/lib/libcuda.so.1", "/opt/driver/libcuda.so.1", "", {"ro"}}};
  request.hooks = {{"createContainer", "/usr/bin/nvidia-ctk", {"nvidia-ctk", "hook"}, {}, 5u}};
  request.device_gids = {44};
  const auto text = write_oci_config(setup, request, {});
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  CHECK(has(R"({"destination":"/usr/lib/libcuda.so.1","type":"bind",)"
            R"("source":"/opt/driver/libcuda.so.1","options":["ro","rbind","nosuid","nodev"]})"));
  CHECK(has(R"("createContainer":[{"path":"/usr/bin/nvidia-ctk","args":["nvidia-ctk","hook"],)"
            R"("env":[],"timeout":5}])"));
  CHECK(has(R"("additionalGids":[44])"));
  CHECK(has(R"({"containerID":44,"hostID":44,"size":1})"));
  CHECK(write_oci_config(setup, {}, {}).find("hooks") == std::string::npos);
}

TEST_CASE("a pipe that is filled while it is read is read only up to its size") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  const Fd reader(ends[0]), writer(ends[1]);
  REQUIRE(::fcntl(reader.get(), F_SETPIPE_SZ, 1 << 20) == 1 << 20);
  const std::string chunk(32 << 10, 'x');
  const auto fill = [&] {
    while (::write(writer.get(), chunk.data(), chunk.size()) > 0) {
    }
  };
  std::size_t taken = 0;
  const auto read_some = [&] {
    std::string buffer(chunk.size(), 0);
    const ssize_t n = ::read(reader.get(), buffer.data(), buffer.size());
    if (n <= 0 || taken > (100u << 20)) return std::size_t{0};
    taken += static_cast<std::size_t>(n);
    fill();
    return static_cast<std::size_t>(n);
  };
  fill();
  read_what_is_there(reader.get(), read_some);
  CHECK(taken >= 1u << 20);  // everything that was in the pipe at first
  CHECK(taken <= (1u << 20) + chunk.size());

  const Fd endless(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  taken = 0;
  read_what_is_there(endless.get(), [&] {
    taken += 4096;
    return taken > (100u << 20) ? std::size_t{0} : std::size_t{4096};
  });
  CHECK(taken == kTerminalRoom);
}
