// Measures what a job's network costs a node: the time to attach an attempt and to remove it, with
// few and with many jobs on the node, and beside that the programs ip and nft for a link and a
// rule.
//
//   bench_network [ROUNDS]
#include <fmt/core.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <vector>

#include "noded/network/fabric.h"
#include "noded/network/space.h"

using namespace gantry;
using namespace gantry::network;

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "bench_network: {}\n", why);
  std::exit(1);
}

template <class T>
T need(Result<T> result) {
  if (!result) give_up(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

double milliseconds(Clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

struct Row {
  std::vector<double> times;
  void print(const std::string& name) {
    std::sort(times.begin(), times.end());
    fmt::print("{:<60} {:>8.2f} {:>8.2f}\n", name, times[times.size() / 2],
               times[times.size() * 9 / 10]);
  }
};

// A job on this node and three others.
JobNetwork job_of(std::uint64_t id) {
  JobNetwork out;
  out.key = {JobId(id), Attempt(1)};
  const auto slot = static_cast<std::uint32_t>(id % kMostSlots);
  out.part = {1, JobId(id), slot};
  for (std::uint32_t node = 2; node <= 4; ++node)
    out.peers.push_back({{node, JobId(id), slot}, {fmt::format("127.0.1.{}", node), 4791}});
  return out;
}

// With a profile: the name servers, a service, and jobs of its tenant.
JobNetwork reaching(JobNetwork job) {
  job.part.group = 65536;
  job.reach.resolvers = true;
  job.reach.ranges = {"10.1.0.7/32 tcp/443", "10.20.0.0/16 tcp/5432"};
  job.reach.to = job.reach.from = {{65536, ""}};
  return job;
}

// As in the node daemon: an attempt gets a namespace made in advance, and its end leaves the
// namespace to be removed later.
void measure_ready(Fabric& fabric, int rounds,
                   const std::function<JobNetwork(std::uint64_t)>& job_here,
                   const std::string& what) {
  Row make, attach, end;
  for (int i = 0; i < rounds; ++i) {
    const auto began = Clock::now();
    need(fabric.make_ready());
    make.times.push_back(milliseconds(Clock::now() - began));
  }
  const auto turn = [&](const std::vector<proto::AttemptKey>& ends,
                        const std::vector<JobNetwork>& starts, Row& row) {
    const auto began = Clock::now();
    fabric.turn(ends, starts, [](const proto::AttemptKey&, const Result<void>& done) {
      need(Result<void>(done));
    });
    row.times.push_back(milliseconds(Clock::now() - began));
  };
  for (int i = 0; i < rounds; ++i) {
    const JobNetwork job = job_here(300'000 + static_cast<std::uint64_t>(i));
    turn({}, {job}, attach);
    turn({job.key}, {}, end);
  }
  for (const std::string& directory : fabric.take_left()) need(release_directory(directory));
  make.print("make a namespace in advance" + what);
  attach.print("attach to one made in advance" + what);
  end.print("end it" + what);
}

void measure(Fabric& fabric, std::uint64_t others, int rounds, bool with_profile) {
  const auto job_here = [&](std::uint64_t id) {
    return with_profile ? reaching(job_of(id)) : job_of(id);
  };
  for (std::uint64_t id = 1; id <= others; ++id) need(fabric.attach(job_here(id)));
  Row attach, detach;
  for (int i = 0; i < rounds; ++i) {
    const JobNetwork job = job_here(100'000 + static_cast<std::uint64_t>(i));
    const auto began = Clock::now();
    need(fabric.attach(job));
    const auto there = Clock::now();
    need(fabric.detach(job.key));
    attach.times.push_back(milliseconds(there - began));
    detach.times.push_back(milliseconds(Clock::now() - there));
  }
  const std::string_view what = with_profile ? " with a profile" : "";
  attach.print(fmt::format("attach{}, beside {} jobs", what, others));
  detach.print(fmt::format("remove{}, beside {} jobs", what, others));
  measure_ready(fabric, rounds, job_here, fmt::format("{}, beside {} jobs", what, others));
  for (std::uint64_t id = 1; id <= others; ++id) need(fabric.detach({JobId(id), Attempt(1)}));
}

// A job on this node and a thousand others: two addresses of each are added, and removed again.
void measure_addresses(Fabric& fabric, int rounds) {
  constexpr std::uint32_t kPeers = 1'000;
  Row first, again, gone;
  for (int i = 0; i < rounds; ++i) {
    JobNetwork job = job_of(200'000 + static_cast<std::uint64_t>(i));
    job.peers.clear();
    // The first job on a node uses kernel paths that are not cached yet.
    for (std::uint32_t n = 0; n < kPeers; ++n)
      job.peers.push_back({{10 + n, job.part.job, n % kMostSlots},
                           {fmt::format("127.1.{}.{}", n / 250, n % 250 + 1), 4791}});
    const auto began = Clock::now();
    need(fabric.attach(job));
    const auto there = Clock::now();
    need(fabric.detach(job.key));
    (i == 0 ? first : again).times.push_back(milliseconds(there - began));
    gone.times.push_back(milliseconds(Clock::now() - there));
  }
  first.print("attach with 1,000 other nodes, the first time");
  again.print("attach with 1,000 other nodes");
  gone.print("remove with 1,000 other nodes");
  const double both = again.times[again.times.size() / 2] + gone.times[gone.times.size() / 2];
  fmt::print("{:<60} {:>8.0f}\n", "addresses added or removed in a second",
             2.0 * 2.0 * kPeers / both * 1'000.0);
}

// The floor that a script reaches: one link with one address and one element of a set.
void measure_programs(const std::string& node, int rounds) {
  Row row;
  const std::string in = "nsenter --net=" + node + " ";
  for (int i = 0; i < rounds; ++i) {
    const auto began = Clock::now();
    for (const char* command :
         {"ip link add benchlink type veth peer name benchpeer", "ip link set benchlink up",
          "ip address add fd00::1/128 dev benchlink",
          "nft add element inet gantry pairs6 '{ fd00::1 . fd00::2 }'"})
      if (std::system((in + command).c_str()) != 0) give_up(std::string(command) + " fails");
    row.times.push_back(milliseconds(Clock::now() - began));
    if (std::system((in + "ip link del benchlink").c_str()) != 0) give_up("ip fails");
  }
  row.print("a link and a rule by ip and nft");
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 100;
  if (::geteuid() != 0) give_up("network namespaces need root");
  std::string directory = "/tmp/gantry-network.XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) give_up("no directory can be made in /tmp");
  FabricOptions options;
  options.directory = directory;
  options.blocks = need(read_blocks("fd00:9:9::/48", "100.64.0.0/10"));
  options.node = 1;
  options.underlay = {"127.0.0.1", 4791};
  options.vni = 78;
  options.resolvers = {*parse_network_range("10.0.0.2")};
  // A namespace stands for the machine, so that nothing of this machine's network is touched.
  const std::string machine = directory + ".machine";
  need(inside(need(make_space(machine)), [&]() -> Result<void> {
    need(set_sysctl("ipv4/ip_forward", "1"));
    {
      const auto fabric = need(Fabric::open(options, {}));
      fmt::print("{:<60} {:>8} {:>8}\n", "milliseconds", "median", "p90");
      for (const bool with_profile : {false, true})
        for (const std::uint64_t others : {0, 50, 200})
          measure(*fabric, others, rounds, with_profile);
      measure_addresses(*fabric, std::min(rounds, 20));
      measure_programs(directory + "/node/net", std::min(rounds, 30));
    }
    return Fabric::remove(directory);
  }));
  need(release_space(machine));
  std::filesystem::remove_all(directory);
  return 0;
}
