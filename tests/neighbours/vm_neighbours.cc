// Floods on a real disk and on real cores, under a kernel with cgroup v2: is the culprit named in
// time, does its neighbour get its speed back when it is held back, and is the hold undone, also by
// the daemon after one that was killed? tests/vm/run.sh runs this in a virtual machine.
//
//   vm_neighbours DISK      DISK is a device whose contents may be lost, as /dev/vda
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <vector>

#include "noded/machine/cgroup.h"
#include "noded/machine/files.h"
#include "noded/neighbour_watch.h"

using namespace gantry;

namespace {

constexpr std::size_t kSmall = 64 * 1024, kLarge = 1024 * 1024;
int failures = 0;

void check(bool is_true, const std::string& what) {
  fmt::print("{} {}\n", is_true ? "ok    " : "FAILED", what);
  std::fflush(stdout);
  if (!is_true) ++failures;
}

// What programs of jobs do; counted in memory that all processes share.
struct Shared {
  std::array<std::atomic<std::uint64_t>, 4> done{};
};
Shared* shared = nullptr;

[[noreturn]] void read_disk(const std::string& disk, std::size_t bytes, std::size_t counter,
                            unsigned seed) {
  const Fd file(::open(disk.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  void* buffer = nullptr;
  if (!file || ::posix_memalign(&buffer, 4096, bytes) != 0) ::_exit(1);
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  const auto places = static_cast<std::uint64_t>(size) / bytes;
  std::uint64_t state = seed;
  for (;;) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto at = static_cast<off_t>(((state >> 33) % places) * bytes);
    if (::pread(file.get(), buffer, bytes, at) != static_cast<ssize_t>(bytes)) ::_exit(1);
    shared->done[counter] += bytes;
  }
}

[[noreturn]] void compute(std::size_t counter) {
  volatile std::uint64_t sum = 0;
  for (;;) {
    for (int i = 0; i < 100'000; ++i) sum = sum + static_cast<std::uint64_t>(i);
    shared->done[counter] += 1;
  }
}

struct Jobs {
  runtime::CgroupLayout layout;
  std::vector<pid_t> pids;
  template <class Work>
  void start(const std::string& cgroup, const Work& work) {
    const auto entries = runtime::open_cgroup_entries(layout, cgroup);
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (const Fd& entry : entries)
        if (::write(entry.get(), "0", 1) != 1) ::_exit(1);
      work();
    }
    pids.push_back(pid);
  }
  void end_from(std::size_t first) {
    while (pids.size() > first) {
      ::kill(pids.back(), SIGKILL);
      ::waitpid(pids.back(), nullptr, 0);
      pids.pop_back();
    }
  }
};

std::vector<sampling::WatchedJob> watched() {
  std::vector<sampling::WatchedJob> out;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    sampling::WatchedJob job;
    job.key = {JobId(id), Attempt(1)};
    job.cgroup = fmt::format("job_{}.1", id);
    out.push_back(std::move(job));
  }
  return out;
}

struct Machine {
  Jobs jobs;
  std::string state_dir;
  Result<Logger> log = Logger::open({"vm", "", LogLevel::warning});

  node::NeighbourWatch::Options options(bool holds) const {
    node::NeighbourWatch::Options o;
    o.state_dir = state_dir;
    o.config.neighbour_throttle = holds;
    o.config.neighbour_hold = seconds(30);
    o.cgroups = jobs.layout;
    o.running = watched;
    return o;
  }
  [[nodiscard]] std::string file_of(const std::string& cgroup, const std::string& name) const {
    const auto text = runtime::read_file(jobs.layout.mounts[0].path + "/" + cgroup + "/" + name);
    return runtime::trim(text.value_or("?"));
  }
};

// Runs the loop for this long, and calls `look` each second.
template <class Look>
void pass(loop::Loop& loop, Duration length, const Look& look) {
  int second = 0;
  const auto every = loop.every(seconds(1), [&] { look(++second); });
  const auto end = loop.after(length, [&] { loop.stop(); });
  loop.run();
}

double rate(loop::Loop& loop, std::size_t counter, Duration length) {
  const std::uint64_t before = shared->done[counter];
  pass(loop, length, [](int) {});
  return static_cast<double>(shared->done[counter] - before) /
         static_cast<double>(length.seconds());
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

// The victim alone, then with the flood, then with the flood held back.
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
  shared = new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0)) Shared;
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
