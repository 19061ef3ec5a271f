// Container starts per second. The node's runtime and its shims start jobs that run /bin/true, each
// in its own container with limits. A bare loop of `crun run` does the same with the same
// configuration and parallelism. The two alternate in short rounds, so that a busy machine slows
// both alike, and jobs of the sandbox `hardened` take part in them. The figures are medians of the
// rounds; "ms later" is how much longer one container takes from its order to its end than with
// crun alone. The bench needs root and crun.
//
//   bench_containers [--rounds N] [--each N]
#include <fmt/core.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/containers/bare_loop.h"
#include "noded/machine/cgroup.h"
#include "noded/runtime/job_dir.h"
#include "noded/runtime/runtime.h"

namespace {

using namespace gantry;
using namespace gantry::runtime;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kUid = 20001;
constexpr int kMemoryMib = 64;

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "bench_containers: {}\n", why);
  std::exit(1);
}

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(q * values.size()))];
}

// The CPU time of the children that still live, with that of the processes they have reaped. The
// template process of the shims is such a child.
double living_cpu_ms() {
  double ticks = 0;
  const auto children = read_file("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  for (const auto& pid : split(trim(children.value_or("")), ' ')) {
    const auto text = read_file("/proc/" + pid + "/stat").value_or("");
    const auto fields = split(std::string_view(text).substr(text.rfind(')') + 1), ' ');
    // The fields are utime, stime, cutime and cstime.
    for (std::size_t i = 12; i < 16 && i < fields.size(); ++i)
      ticks += std::atof(fields[i].c_str());
  }
  return ticks * 1e3 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// User and system time in ms of this process, its living children, and all that it has reaped.
double cpu_ms() {
  double total = living_cpu_ms();
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    total += (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
             (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
  }
  return total;
}

struct Figures {
  double seconds = 0;
  double cpu_ms = 0;
};

class Bench {
 public:
  explicit Bench(std::string bin_dir) {
    std::string pattern = "/var/tmp/gantry-bench-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) give_up("no directory in /var/tmp");
    dir_ = pattern;
    ::chmod(dir_.c_str(), 0755);
    ::mkdir((dir_ + "/home").c_str(), 0755);
    if (::chown((dir_ + "/home").c_str(), kUid, kUid) != 0) give_up("needs root");
    options_.node = "bench";
    options_.cluster = "bench";
    options_.bin_dir = std::move(bin_dir);
    options_.config.state_dir = dir_ + "/state";
    options_.config.cgroup_root = root();
    options_.config.runtimes = {"crun"};
    auto opened = Runtime::open(options_);
    if (!opened) give_up(opened.error().message);
    runtime_ = std::move(*opened);
  }
  ~Bench() {
    runtime_.reset();
    std::vector<std::string> ignored;
    const auto layout = discover_cgroups(root(), "bench", ignored);
    for (const auto& mount : layout.mounts) {
      ::rmdir(mount.path.c_str());
      ::rmdir(mount.path.substr(0, mount.path.rfind('/')).c_str());
    }
    remove_tree(dir_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Starts a job whose container stays, because the bare loop uses its mounts.
  int hold() {
    held_ = request(LaunchKind::holder);
    if (auto r = runtime_->begin(held_); !r) give_up(r.error().message);
    bool running = false;
    while (!running)
      for (const auto& event : wait()) running = running || event.kind == EventKind::running;
    const auto lock = read_file(job_dir(dir_ + "/state", held_.key) + "/" + kLockFile);
    return std::atoi(lock.value_or("0").c_str());
  }
  void let_go() {
    (void)runtime_->kill(held_.key);
    bool ended = false;
    while (!ended)
      for (const auto& event : wait()) ended = ended || event.kind == EventKind::ended;
    runtime_->forget(held_.key);
  }

  Figures run(int parallel, int count, Sandbox level) {
    level_ = level;
    Figures figures;
    const double cpu = cpu_ms();
    const auto start = Clock::now();
    int begun = 0, ended = 0;
    std::map<AttemptKey, Clock::time_point> at;
    const auto begin = [&] {
      const auto job = request(LaunchKind::batch);
      at[job.key] = Clock::now();
      ++begun;
      if (auto r = runtime_->begin(job); !r) give_up(r.error().message);
    };
    while (begun < parallel) begin();
    while (ended < count) {
      for (const auto& event : wait()) {
        if (event.kind == EventKind::running) to_running_.push_back(since(at[event.key]) * 1e3);
        if (event.kind != EventKind::ended) continue;
        if (event.record.exit != ExitStatus{}) give_up(event.record.message);
        ++ended;
        runtime_->forget(event.key);
        if (begun < count) begin();
      }
    }
    figures.seconds = since(start);
    ::usleep(20'000);  // The last shims are reaped in this time.
    (void)runtime_->poll();
    figures.cpu_ms = (cpu_ms() - cpu) / count;
    return figures;
  }
  std::vector<double> take_to_running() { return std::exchange(to_running_, {}); }
  static std::string mount_dir() { return "/run/gantry-mnt"; }

 private:
  static std::string root() { return "gantry-bench-" + std::to_string(::getpid()); }
  std::vector<RuntimeEvent> wait() {
    pollfd watched{runtime_->fd(), POLLIN, 0};
    ::poll(&watched, 1, 5000);
    return runtime_->poll();
  }
  LaunchRequest request(LaunchKind kind) {
    LaunchRequest r;
    r.key = {JobId{++jobs_}, Attempt{1}};
    r.kind = kind;
    r.owner = {Uid{kUid}, Gid{kUid}, "bench", {}, dir_ + "/home", "/bin/sh"};
    r.work_dir = r.owner.home;
    r.std_out = "out";
    r.script = "#!/bin/true\n";
    r.memory = std::int64_t{kMemoryMib} << 20;
    r.pids_max = 128;
    r.sandbox = level_;
    return r;
  }

  std::string dir_;
  RuntimeOptions options_;
  std::unique_ptr<Runtime> runtime_;
  LaunchRequest held_;
  std::vector<double> to_running_;
  std::uint64_t jobs_ = 0;
  Sandbox level_ = Sandbox::standard;
};

int number_after(int argc, char** argv, const char* name, int fallback) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], name) == 0) return std::max(1, std::atoi(argv[i + 1]));
  return fallback;
}

std::string own_directory() {
  char path[4096]{};
  if (::readlink("/proc/self/exe", path, sizeof path - 1) <= 0) give_up("/proc/self/exe");
  const std::string text = path;
  return text.substr(0, text.rfind('/'));
}

struct Series {
  std::vector<double> rate, cpu, to_running;
};

void print(int parallel, Sandbox level, const Series& bare, const Series& ours) {
  const double a = quantile(ours.rate, 0.5), b = quantile(bare.rate, 0.5);
  fmt::print(
      "{:>8}  {:<8}  {:>9.1f} {:>7.1f}  {:>9.1f} {:>7.1f}  {:>6.0f}%  {:>12.1f} {:>7.1f}  "
      "{:>8.1f}\n",
      parallel, enum_name(level), b, quantile(bare.cpu, 0.5), a, quantile(ours.cpu, 0.5),
      100 * a / b, quantile(ours.to_running, 0.5), quantile(ours.to_running, 0.99),
      parallel * (1e3 / a - 1e3 / b));
}

Result<void> measure(Bench& bench, int shim, int parallel, int rounds, int each) {
  constexpr std::array kLevels{Sandbox::standard, Sandbox::hardened};
  Series bare;
  std::array<Series, kLevels.size()> ours;
  for (int i = 0; i < rounds; ++i) {
    ASSIGN(b, gantry::bench::bare_loop(shim, Bench::mount_dir(), parallel, each, kMemoryMib));
    bare.rate.push_back(parallel * each / b->seconds);
    bare.cpu.push_back(b->cpu_ms);
    for (std::size_t level = 0; level < kLevels.size(); ++level) {
      const auto o = bench.run(parallel, parallel * each, kLevels[level]);
      ours[level].rate.push_back(parallel * each / o.seconds);
      ours[level].cpu.push_back(o.cpu_ms);
      for (const double ms : bench.take_to_running()) ours[level].to_running.push_back(ms);
    }
  }
  for (std::size_t level = 0; level < kLevels.size(); ++level)
    print(parallel, kLevels[level], bare, ours[level]);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (::geteuid() != 0) give_up("needs root");
  const int rounds = number_after(argc, argv, "--rounds", 7);
  const int each = number_after(argc, argv, "--each", 20);
  Bench bench(own_directory());
  const int shim = bench.hold();
  fmt::print("Containers of /bin/true with limits, {} rounds of {} each, medians\n\n", rounds,
             each);
  fmt::print("{:>8}  {:<8}  {:>9} {:>7}  {:>9} {:>7}  {:>7}  {:>12} {:>7}  {:>8}\n", "parallel",
             "sandbox", "crun/s", "CPU ms", "gantry/s", "CPU ms", "of crun", "ms to running", "p99",
             "ms later");
  Result<void> measured;
  for (const int parallel : {1, 2, 4})
    if (measured) measured = measure(bench, shim, parallel, rounds, each);
  bench.let_go();
  if (!measured) fmt::print(stderr, "bench_containers: {}\n", measured.error().message);
  return measured ? 0 : 1;
}
