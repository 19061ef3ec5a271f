// Floods on a real disk and on real cores, under a kernel with cgroup v2: is the culprit named in
// time, does its neighbour get its speed back when the culprit is throttled, and is the throttling
// undone, also by the daemon after a killed one? tests/vm/run.sh runs this in a virtual machine.
//
//   vm_neighbours DISK      DISK is a device whose contents may be lost, as /dev/vda
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <vector>

#include "noded/machine/files.h"
#include "tests/neighbours/vm_machine.h"

using namespace gantry;
using namespace gantry::vm;

namespace {

int failures = 0;

void check(bool is_true, const std::string& what) {
  fmt::print("{} {}\n", is_true ? "ok    " : "FAILED", what);
  std::fflush(stdout);
  if (!is_true) ++failures;
}

const proto::SharingFinding* of_victim(const proto::NodeSharing& said,
                                       proto::SharedResource resource) {
  for (const auto& f : said.findings)
    if (f.victim && f.victim->job == JobId(1) && f.resource == resource && !f.ended) return &f;
  return nullptr;
}

bool names_two(const proto::SharingFinding& f) {
  return f.cause == proto::SharingCause::neighbours && f.by.size() == 1 &&
         f.by[0].key.job == JobId(2);
}

// The victim alone, then with the flood, then with the flood throttled.
template <class Victim, class Flood>
void flood(Machine& m, const char* what, proto::SharedResource resource, double least_back,
           const Victim& victim, const Flood& start_flood) {
  const std::size_t first = m.jobs.pids.size();
  loop::Loop loop;
  node::NeighbourWatch watch(m.options(true), loop, *m.log);
  const auto processes = static_cast<std::size_t>(resource == proto::SharedResource::cpu ? 2 : 1);
  for (std::size_t i = 0; i < processes; ++i) m.jobs.start("job_1.1", victim);
  pass(loop, seconds(6), [](int) {});
  const double lone = rate(loop, 0, seconds(12));
  start_flood();
  std::optional<int> named;
  std::string confidence;
  double flooded = 0;
  std::uint64_t before = shared->done[0];
  pass(loop, seconds(18), [&](int second) {
    const bool held = !watch.said().holds.empty();
    if (!held) flooded = static_cast<double>(shared->done[0] - before) / second;
    const proto::NodeSharing said = watch.said();
    const auto* f = of_victim(said, resource);
    if (f == nullptr || !names_two(*f) || named) return;
    named = second;
    confidence = fmt::format("{} %", f->confidence);
  });
  check(named && *named <= 15,
        fmt::format("{}: the culprit is named after {} s, confidence {}", what,
                    named ? std::to_string(*named) : "never", confidence));
  for (const auto& f : watch.said().findings)
    fmt::print(
        "       {} {} victim {} since {} s: {}, {} causes, confidence {} %; level {} %, held up {} "
        "%, "
        "own {} %, machine {} %{}\n",
        enum_name(f.resource), f.device, f.victim ? f.victim->job.value() : 0,
        (f.last - f.since).seconds(), enum_name(f.cause), f.by.size(), f.confidence, f.level,
        f.held_up, f.own, f.machine, f.ended ? ", over" : "");
  for (const auto& h : watch.said().holds)
    fmt::print("       job {} is held to {} for {} s\n", h.key.job.value(), h.most,
               (h.until - h.since).seconds());
  const bool held = !watch.said().holds.empty();
  check(held, fmt::format("{}: it is held back: {} {}", what, m.file_of("job_2.1", "io.max"),
                          m.file_of("job_2.1", "cpu.weight")));
  const double back = rate(loop, 0, seconds(10));
  check(back >= least_back * lone, fmt::format("{}: alone {:.3g} in a second, flooded {:.3g}, "
                                               "neighbour held back {:.3g}: {:.0f} % of alone",
                                               what, lone, flooded, back, 100 * back / lone));
  m.jobs.end_from(first + processes);
  std::optional<int> undone;
  pass(loop, seconds(40), [&](int second) {
    for (const auto& hold : watch.said().holds)
      if (!hold.undone) return;
    if (!undone) undone = second;
  });
  check(undone && m.file_of("job_2.1", "io.max").empty() &&
            m.file_of("job_2.1", "cpu.weight") == "100",
        fmt::format("{}: it is undone {} s after the flood", what,
                    undone ? std::to_string(*undone) : "never"));
  m.jobs.end_from(first);
}

void killed(Machine& m, const std::string& disk) {
  m.jobs.start("job_1.1", [&] { read_disk(disk, kSmall, 0, 1); });
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    loop::Loop loop;
    node::NeighbourWatch watch(m.options(true), loop, *m.log);
    loop.run();
    ::_exit(0);
  }
  loop::Loop loop;
  pass(loop, seconds(10), [](int) {});
  for (unsigned i = 0; i < 6; ++i)
    m.jobs.start("job_2.1", [&] { read_disk(disk, kLarge, 1, 7 + i); });
  pass(loop, seconds(25), [&](int) {
    if (!m.file_of("job_2.1", "io.max").empty()) loop.stop();
  });
  check(!m.file_of("job_2.1", "io.max").empty(), "a daemon holds it back");
  ::kill(daemon, SIGKILL);
  ::waitpid(daemon, nullptr, 0);
  check(!m.file_of("job_2.1", "io.max").empty(), "the daemon is killed, and the hold is there");
  node::NeighbourWatch next(m.options(false), loop, *m.log);
  check(m.file_of("job_2.1", "io.max").empty(), "the next daemon undoes it at its start");
  m.jobs.end_from(0);
}

int run(const std::string& disk) {
  Machine m;
  std::vector<std::string> why;
  m.jobs.layout = runtime::discover_cgroups("gantry-vm", "n1", why);
  if (m.jobs.layout.version != 2) {
    fmt::print(stderr, "vm_neighbours: it needs cgroup v2\n");
    return 77;
  }
  for (const auto& job : watched())
    check(runtime::create_cgroup(m.jobs.layout, job.cgroup, {}).has_value(), job.cgroup);
  char dir[] = "/tmp/gantry-neighbours-XXXXXX";
  m.state_dir = ::mkdtemp(dir);
  share_counters();
  flood(
      m, "disk", proto::SharedResource::disk, 0.9, [&] { read_disk(disk, kSmall, 0, 1); },
      [&] {
        for (unsigned i = 0; i < 6; ++i)
          m.jobs.start("job_2.1", [&, i] { read_disk(disk, kLarge, 1, 7 + i); });
      });
  flood(
      m, "cpu", proto::SharedResource::cpu, 0.9, [] { compute(0); },
      [&] {
        for (int i = 0; i < 6; ++i) m.jobs.start("job_2.1", [] { compute(1); });
      });
  killed(m, disk);
  runtime::remove_tree(m.state_dir);
  fmt::print("{} failed\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: vm_neighbours DISK\n");
    return 2;
  }
  return run(argv[1]);
}
