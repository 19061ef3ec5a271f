// Reads files that are written by hand, as the kernel writes them.
#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "noded/machine/files.h"
#include "noded/sampling/sampler.h"

namespace gantry::sampling {
namespace {

struct Tree {
  std::filesystem::path root;
  Tree() {
    char name[] = "/tmp/gantry-sampling-XXXXXX";
    root = ::mkdtemp(name);
    put("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\n");
    put("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=2000\n");
    put("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=3000\nfull total=5\n");
    put("proc/stat", "cpu  10 0 20 900 70 0 5 0 0 0\ncpu0 1\ncpu1 2\nintr 9\n");
    put("proc/meminfo", "MemTotal:     1000 kB\nMemFree: 100 kB\nMemAvailable:    400 kB\n");
    put("proc/diskstats",
        " 254       0 vda 7 0 16 3 5 0 32 4 0 1500 7 0 0 0 0\n   7       0 loop0 1 0 1 0 0 0 0 0 0 "
        "9 9\n");
    put("sys/block/vda/dev", "254:0\n");
    put("sys/block/loop0/dev", "7:0\n");
    put("sys/class/net/eth0/device/vendor", "x");
    put("sys/class/net/eth0/speed", "1000\n");
    put("sys/class/net/eth0/statistics/rx_bytes", "11\n");
    put("sys/class/net/eth0/statistics/tx_bytes", "12\n");
    put("sys/class/net/lo/speed", "1000\n");
    put("sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes", "100\n");
    put("sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes", "200\n");
    put("sys/fs/resctrl/mon_groups/gantry.n1.job_7.1/mon_data/mon_L3_00/mbm_total_bytes", "40\n");
  }
  ~Tree() { std::filesystem::remove_all(root); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  [[nodiscard]] SamplerOptions options(std::uint32_t version) const {
    SamplerOptions o;
    o.proc = (root / "proc").string();
    o.sys = (root / "sys").string();
    o.memory_traffic_most = 1000;
    o.cgroups.version = version;
    o.cgroups.relative = "/gantry/n1";
    const std::vector<std::string> all{"cpu", "cpuacct", "memory", "blkio", "io"};
    o.cgroups.mounts.push_back({(root / "cgroup").string(), all});
    return o;
  }
};

WatchedJob watched(const Tree& tree) {
  WatchedJob job;
  job.key = {JobId(7), Attempt(1)};
  job.cgroup = "job_7.1";
  job.network_sys = (tree.root / "jobsys").string();
  job.io_limit = 500;
  return job;
}

TEST_CASE("the machine and a job of cgroup v2 are read, and read again") {
  const Tree tree;
  tree.put("cgroup/job_7.1/cpu.stat", "usage_usec 50\nuser_usec 1\nthrottled_usec 8\n");
  tree.put("cgroup/job_7.1/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
  tree.put("cgroup/job_7.1/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=2\n");
  tree.put("cgroup/job_7.1/io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=3\n");
  tree.put("cgroup/job_7.1/memory.current", "4096\n");
  tree.put("cgroup/job_7.1/io.stat",
           "7:0 rbytes=9 wbytes=9\n254:0 rbytes=4096 wbytes=1 rios=2 wios=3 dbytes=0 dios=0\n");
  tree.put("jobsys/class/net/eth0/statistics/rx_bytes", "21\n");
  tree.put("jobsys/class/net/eth0/statistics/tx_bytes", "22\n");
  Sampler sampler(tree.options(2));
  sampler.watch({watched(tree)});
  neighbours::Sample s = sampler.read(Instant{5});
  CHECK(s.stalled->io == microseconds(3000));
  CHECK(s.cpu == milliseconds(350));
  CHECK(s.cpus == 2);
  CHECK(s.memory_used == 600 * 1024);
  REQUIRE(s.disks.size() == 1);
  CHECK(s.disks[0].busy == milliseconds(1500));
  CHECK(s.disks[0].bytes == 48 * 512);
  CHECK(s.disks[0].operations == 12);
  REQUIRE(s.links.size() == 2);
  CHECK(s.links[1].bytes == 12);
  CHECK(s.links[1].bytes_per_second == 125'000'000);
  CHECK(s.memory_traffic == 300);
  REQUIRE(s.jobs.size() == 1);
  const neighbours::JobCount& job = s.jobs[0];
  CHECK(job.cpu == microseconds(50));
  CHECK(job.throttled == microseconds(8));
  CHECK(job.stalled->memory == microseconds(2));
  CHECK(job.memory == 4096);
  REQUIRE(job.disks.size() == 1);
  CHECK(job.disks[0].name == "vda");
  CHECK(job.disks[0].bytes == 4097);
  CHECK(job.disks[0].operations == 5);
  CHECK(job.disks[0].limit == 500);
  CHECK(job.network_out == 22);
  CHECK(job.memory_traffic == 40);
  tree.put("cgroup/job_7.1/memory.current", "8192\n");
  sampler.watch({watched(tree)});
  CHECK(sampler.read(Instant{6}).jobs[0].memory == 8192);
  sampler.watch({});
  CHECK(sampler.read(Instant{7}).jobs.empty());
}

TEST_CASE("each job has a monitoring group of resctrl, with its processes, while it runs") {
  const Tree tree;
  const std::filesystem::path groups = tree.root / "sys/fs/resctrl/mon_groups";
  const auto there = [&](const char* name) { return std::filesystem::exists(groups / name); };
  const std::string self = std::to_string(::getpid()) + "\n";
  tree.put("cgroup/job_7.1/cgroup.procs", self);
  tree.put("sys/fs/resctrl/mon_groups/gantry.n1.job_7.1/tasks", "");
  std::filesystem::create_directories(
      groups / "gantry.n1.job_6.1");  // its attempt ended while no daemon ran
  std::filesystem::create_directories(groups / "gantry.n2.job_6.1");  // another node's
  std::filesystem::create_directories(groups / "mine");
  Sampler sampler(tree.options(2));
  CHECK_FALSE(there("gantry.n1.job_6.1"));
  WatchedJob other = watched(tree);
  other.key = {JobId(8), Attempt(1)};
  other.cgroup = "job_8.1";
  sampler.watch({watched(tree), other});
  CHECK(there("gantry.n1.job_8.1"));
  CHECK(runtime::read_file((groups / "gantry.n1.job_7.1/tasks").string()) == self);
  CHECK(sampler.read(Instant{5}).jobs.at(0).memory_traffic == 40);
  for (int i = 0; i < 5; ++i) sampler.watch({watched(tree)});
  CHECK_FALSE(there("gantry.n1.job_8.1"));
  CHECK(runtime::read_file((groups / "gantry.n1.job_7.1/tasks").string()) == self + self + self);
  CHECK(there("gantry.n2.job_6.1"));
  CHECK(there("mine"));
}

TEST_CASE("with cgroup v1 the pressure of a job is not known, and that is said") {
  const Tree tree;
  tree.put("cgroup/job_7.1/cpuacct.usage", "50000\n");
  tree.put("cgroup/job_7.1/memory.usage_in_bytes", "4096\n");
  tree.put("cgroup/job_7.1/blkio.throttle.io_service_bytes_recursive",
           "254:0 Read 10\n254:0 Write 20\n254:0 Total 30\nTotal 30\n");
  tree.put("cgroup/job_7.1/blkio.throttle.io_serviced_recursive", "254:0 Read 1\n254:0 Write 2\n");
  Sampler sampler(tree.options(1));
  sampler.watch({watched(tree)});
  const neighbours::JobCount job = sampler.read(Instant{5}).jobs.at(0);
  CHECK(job.cpu == microseconds(50));
  CHECK_FALSE(job.stalled.has_value());
  CHECK(job.disks.at(0).bytes == 30);
  CHECK(job.disks.at(0).operations == 3);
  CHECK(sampler.not_counted() ==
        std::vector<std::string>{"pressure of each job: it needs cgroup v2",
                                 "PCIe: no counter is read"});
}

}  // namespace
}  // namespace gantry::sampling
