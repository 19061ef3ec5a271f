// Jobs on a real machine with cgroup v2, for programs that tests/vm/run.sh runs in a virtual one:
// their cgroups, their processes, and what these get done.
#pragma once

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "noded/machine/cgroup.h"
#include "noded/machine/files.h"
#include "noded/neighbour_watch.h"

namespace gantry::vm {

inline constexpr std::size_t kSmall = 64 * 1024, kLarge = 1024 * 1024;

// What programs of jobs do; counted in memory that all processes share.
struct Shared {
  std::array<std::atomic<std::uint64_t>, 4> done{};
};
inline Shared* shared = nullptr;

inline void share_counters() {
  shared = new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0)) Shared;
}

[[noreturn]] inline void read_disk(const std::string& disk, std::size_t bytes, std::size_t counter,
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

[[noreturn]] inline void compute(std::size_t counter) {
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

inline std::vector<sampling::WatchedJob> watched() {
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

  [[nodiscard]] node::NeighbourWatch::Options options(bool holds) const {
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

inline double rate(loop::Loop& loop, std::size_t counter, Duration length) {
  const std::uint64_t before = shared->done[counter];
  pass(loop, length, [](int) {});
  return static_cast<double>(shared->done[counter] - before) /
         static_cast<double>(length.seconds());
}

}  // namespace gantry::vm
