// How well a real node judges: generated scenarios whose truth is known, with real programs (fio,
// stress-ng) on a real disk and real cores, under a kernel with cgroup v2. tests/vm/run.sh runs
// this in a virtual machine; a scenario takes 45 seconds there.
//
//   vm_scenarios DISK SEED COUNT      DISK is a device whose contents may be lost, as /dev/vda
//
// Job 1 is the victim, or is left alone; job 2 floods, or does little; job 3 does the same little
// all the time. A line for each scenario and a table at the end say what was named, how soon, and
// what the victim got back when the culprit was held back.
#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "tests/neighbours/vm_machine.h"

using namespace gantry;
using namespace gantry::vm;

namespace {

enum class Kind { disk_large, disk_small, disk_write, cores, self_cores, self_disk, quiet };
constexpr std::array<std::pair<Kind, const char*>, 7> kKinds{
    {{Kind::disk_large, "disk, large reads"},
     {Kind::disk_small, "disk, small reads"},
     {Kind::disk_write, "disk, writes"},
     {Kind::cores, "cores"},
     {Kind::self_cores, "cores, self-inflicted"},
     {Kind::self_disk, "disk, self-inflicted"},
     {Kind::quiet, "quiet"}}};

bool on_cores(Kind kind) {
  return kind == Kind::cores || kind == Kind::self_cores;
}
bool has_culprit(Kind kind) {
  return kind != Kind::self_cores && kind != Kind::self_disk && kind != Kind::quiet;
}

struct Score {
  int scenarios = 0, truths = 0, right = 0, wrong = 0, in_time = 0;
  int slowest = 0;
  std::vector<double> back;  // of what the victim had alone
};

std::vector<std::string> fio(const std::string& disk, const std::string& how, unsigned jobs,
                             const std::string& bytes) {
  return {"fio",         "--name=f",      "--filename=" + disk, "--direct=1",
          "--rw=" + how, "--bs=" + bytes, "--ioengine=psync",   fmt::format("--numjobs={}", jobs),
          "--thread",    "--time_based",  "--runtime=600",      "--output=/dev/null",
          "--size=90%",  "--randrepeat=0"};
}

[[noreturn]] void become(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::setpgid(0, 0);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

// What floods, drawn for each scenario.
std::vector<std::string> flood_of(Kind kind, const std::string& disk, std::mt19937& random) {
  const auto between = [&](unsigned low, unsigned high) {
    return low + static_cast<unsigned>(random() % (high - low + 1));
  };
  switch (kind) {
    case Kind::disk_large:
    case Kind::self_disk: return fio(disk, "randread", between(4, 8), "1m");
    case Kind::disk_small: return fio(disk, "randread", between(12, 24), "16k");
    case Kind::disk_write: return fio(disk, "randwrite", between(4, 8), "512k");
    case Kind::cores:
    case Kind::self_cores:
      return {"stress-ng",
              random() % 2 == 0 ? "--cpu" : "--matrix",
              std::to_string(between(4, 8)),
              "--timeout",
              "600",
              "--quiet"};
    case Kind::quiet: break;
  }
  return {"stress-ng", "--cpu", "1", "--cpu-load", "5", "--timeout", "600", "--quiet"};
}

class Bench {
 public:
  Bench(Machine& machine, std::string disk) : m_(machine), disk_(std::move(disk)) {}

  void run(Kind kind, unsigned seed) {
    std::mt19937 random(seed);
    Score& score = scores_[kind];
    ++score.scenarios;
    score.truths += kind == Kind::quiet ? 0 : 1;
    loop::Loop loop;
    node::NeighbourWatch watch(m_.options(true), loop, *m_.log);
    const bool cores = on_cores(kind);
    // A job on cores has a process for each of the machine's two; who reads has one.
    for (int i = 0; i < (cores ? 2 : 1); ++i)
      m_.jobs.start("job_1.1", [&] {
        if (cores) compute(0);
        read_disk(disk_, kSmall, 0, seed);
      });
    m_.jobs.start("job_3.1", [] {
      become({"stress-ng", "--cpu", "1", "--cpu-load", "3", "--timeout", "600", "--quiet"});
    });
    pass(loop, seconds(3), [](int) {});
    const double alone = rate(loop, 0, seconds(12));
    const auto words = flood_of(kind, disk_, random);
    m_.jobs.start(has_culprit(kind) || kind == Kind::quiet ? "job_2.1" : "job_1.1",
                  [&] { become(words); });
    std::optional<int> named;
    pass(loop, seconds(18), [&](int second) {
      if (!named && says_truth(watch.said(), kind)) named = second;
    });
    judge(score, watch.said(), kind, named);
    double back = 0;
    if (has_culprit(kind) && !watch.said().holds.empty()) {
      back = rate(loop, 0, seconds(9)) / alone;
      score.back.push_back(back);
    }
    end();
    fmt::print("{:>6} {:<22} named after {:>5} s, back to {:.0f} %{}\n", seed, name_of(kind),
               named ? std::to_string(*named) : "-", 100 * back, wrong_);
    std::fflush(stdout);
  }

  int print() const {
    Score all;
    fmt::print("{:<22} {:>9} {:>9} {:>7} {:>12} {:>11} {:>14}\n", "kind", "scenarios", "precision",
               "recall", "slowest, s", "back, median", "back >= 90 %");
    for (const auto& [kind, score] : scores_) {
      print(name_of(kind), score);
      all.scenarios += score.scenarios;
      all.truths += score.truths;
      all.right += score.right;
      all.wrong += score.wrong;
      all.in_time += score.in_time;
      all.slowest = std::max(all.slowest, score.slowest);
      all.back.insert(all.back.end(), score.back.begin(), score.back.end());
    }
    print("all", all);
    return precision(all) >= 0.95 && recall(all) >= 0.90 ? 0 : 1;
  }

 private:
  static const char* name_of(Kind kind) {
    for (const auto& [one, name] : kKinds)
      if (one == kind) return name;
    return "";
  }
  static double precision(const Score& s) {
    return s.right + s.wrong == 0 ? 1 : 1.0 * s.right / (s.right + s.wrong);
  }
  static double recall(const Score& s) { return s.truths == 0 ? 1 : 1.0 * s.in_time / s.truths; }
  static void print(const char* name, Score s) {
    std::sort(s.back.begin(), s.back.end());
    const auto good =
        std::count_if(s.back.begin(), s.back.end(), [](double b) { return b >= 0.9; });
    fmt::print("{:<22} {:>9} {:>7.1f} % {:>5.1f} % {:>12} {:>9.0f} % {:>8} of {}\n", name,
               s.scenarios, 100 * precision(s), 100 * recall(s), s.slowest,
               s.back.empty() ? 0 : 100 * s.back[s.back.size() / 2], good, s.back.size());
  }

  // A finding is the truth if its victim and its cause are those of the scenario.
  static bool is_true(const proto::SharingFinding& f, Kind kind) {
    if (f.victim->job != JobId(1)) return false;
    if (!has_culprit(kind)) return kind != Kind::quiet && f.cause == proto::SharingCause::itself;
    return f.cause == proto::SharingCause::neighbours && f.by.size() == 1 &&
           f.by[0].key.job == JobId(2);
  }
  static bool says_truth(const proto::NodeSharing& said, Kind kind) {
    return std::any_of(said.findings.begin(), said.findings.end(),
                       [&](const auto& f) { return f.victim && is_true(f, kind); });
  }
  // Who floods and is held up by what it floods itself is no harm to anybody, and counts as
  // nothing.
  static bool counts(const proto::SharingFinding& f, Kind kind) {
    return f.victim && !(f.victim->job == JobId(2) && f.cause == proto::SharingCause::itself) &&
           !(has_culprit(kind) && f.victim->job == JobId(2));
  }
  void judge(Score& score, const proto::NodeSharing& said, Kind kind, std::optional<int> named) {
    wrong_.clear();
    for (const proto::SharingFinding& f : said.findings) {
      if (!counts(f, kind)) continue;
      // The steady job may be held up by the same flood: the same truth about another victim.
      proto::SharingFinding same = f;
      if (has_culprit(kind) && f.victim->job == JobId(3)) same.victim->job = JobId(1);
      if (is_true(same, kind)) {
        ++score.right;
        continue;
      }
      ++score.wrong;
      wrong_ += fmt::format("; said of job {} on {}: {} by {} of {} %", f.victim->job.value(),
                            enum_name(f.resource), enum_name(f.cause),
                            f.by.empty() ? 0 : f.by[0].key.job.value(), f.confidence);
    }
    if (named && *named <= 15) ++score.in_time;
    if (named) score.slowest = std::max(score.slowest, *named);
  }

  // Programs have children, which are in their group.
  void end() {
    for (const pid_t pid : m_.jobs.pids) ::kill(-pid, SIGKILL);
    m_.jobs.end_from(0);
    for (const auto& job : watched())
      (void)runtime::kill_cgroup(m_.jobs.layout, job.cgroup, seconds(5));
  }

  Machine& m_;
  std::string disk_, wrong_;
  std::map<Kind, Score> scores_;
};

int run(const std::string& disk, unsigned seed, unsigned count) {
  Machine m;
  std::vector<std::string> why;
  m.jobs.layout = runtime::discover_cgroups("gantry-vm", "n1", why);
  if (m.jobs.layout.version != 2) {
    fmt::print(stderr, "vm_scenarios: it needs cgroup v2\n");
    return 77;
  }
  for (const auto& job : watched())
    if (!runtime::create_cgroup(m.jobs.layout, job.cgroup, {})) return 1;
  char dir[] = "/tmp/gantry-neighbours-XXXXXX";
  m.state_dir = ::mkdtemp(dir);
  share_counters();
  // The programs are read from the machine outside once, so that the first flood begins at once.
  if (std::system("fio --version >/dev/null && stress-ng --version >/dev/null") != 0) {
    fmt::print(stderr, "vm_scenarios: it needs fio and stress-ng\n");
    return 77;
  }
  Bench bench(m, disk);
  for (unsigned i = 0; i < count; ++i) {
    std::mt19937 random(seed + i);
    bench.run(kKinds[random() % kKinds.size()].first, seed + i);
  }
  runtime::remove_tree(m.state_dir);
  return bench.print();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: vm_scenarios DISK SEED COUNT\n");
    return 2;
  }
  return run(argv[1], static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)),
             static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)));
}
