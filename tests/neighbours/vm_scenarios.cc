// How well a real node judges: generated scenarios whose truth is known, with real programs (fio,
// stress-ng, iperf3) on a real disk, link, memory and cores, under a kernel with cgroup v2.
// tests/vm/scenarios.sh runs this in virtual machines.
//
//   vm_scenarios DISK SEED COUNT [two]
//                                    DISK is /dev/vda, whose contents, and /dev/vdb's, may be lost
//   vm_scenarios --sum FILE          the table of all lines that runs have printed
//
// One daemon's watch sees all of them, and jobs come and go, as on a node. With `two`, for a
// machine that is fast enough, two run at once where each has a disk, or a disk and the link, for
// itself. A line for each is printed as soon as it is over.
#include <algorithm>
#include <fstream>
#include <map>
#include <memory>

#include "tests/neighbours/vm_scenario.h"

using namespace gantry;
using namespace gantry::vm;

namespace {

constexpr unsigned kLinkMegabits = 24;
constexpr int kInTime = 15;

struct Score {
  int scenarios = 0, truths = 0, right = 0, wrong = 0, in_time = 0, slowest = 0;
  std::vector<int> back;
  void add(const Seen& o) {
    ++scenarios;
    truths += o.has_truth ? 1 : 0;
    right += o.right;
    wrong += o.wrong;
    if (o.named && *o.named <= kInTime) ++in_time;
    if (o.named) slowest = std::max(slowest, *o.named);
    if (o.back) back.push_back(*o.back);
  }
  [[nodiscard]] double precision() const {
    return right + wrong == 0 ? 1 : 1.0 * right / (right + wrong);
  }
  [[nodiscard]] double recall() const { return truths == 0 ? 1 : 1.0 * in_time / truths; }
};

void print(std::string_view name, Score s) {
  std::sort(s.back.begin(), s.back.end());
  const auto good = std::count_if(s.back.begin(), s.back.end(), [](int b) { return b >= 90; });
  fmt::print("{:<22} {:>9} {:>7.1f} % {:>5.1f} % {:>10} {:>10} % {:>6} of {}\n", name, s.scenarios,
             100 * s.precision(), 100 * s.recall(), s.slowest,
             s.back.empty() ? 0 : s.back[s.back.size() / 2], good, s.back.size());
}

// 0 if the aims are met: precision 95 %, recall within 15 s 90 %.
int sum(const std::string& path) {
  std::ifstream file(path);
  std::map<std::string, Score> by_kind;
  std::map<unsigned, Seen> by_seed;  // the last run of each
  Score all;
  for (std::string line; std::getline(file, line);)
    if (const auto outcome = Seen::of(line)) by_seed[outcome->seed] = *outcome;
  for (const auto& [seed, outcome] : by_seed) {
    by_kind[outcome.kind].add(outcome);
    all.add(outcome);
  }
  fmt::print("{:<22} {:>9} {:>9} {:>7} {:>10} {:>12} {:>12}\n", "kind", "scenarios", "precision",
             "recall", "slowest, s", "back, median", "back >= 90 %");
  for (const auto& [name, score] : by_kind) print(name, score);
  print("all", all);
  return all.scenarios > 0 && all.precision() >= 0.95 && all.recall() >= 0.90 ? 0 : 1;
}

class Node {
 public:
  explicit Node(const std::string& disk) : disks_{disk, disk.substr(0, disk.size() - 1) + "b"} {}

  // What is missing; nullopt if it is ready.
  std::optional<std::string> prepare() {
    std::vector<std::string> why;
    m_.jobs.layout = runtime::discover_cgroups("gantry-vm", "n1", why);
    if (m_.jobs.layout.version != 2) return std::string("cgroup v2");
    char dir[] = "/tmp/gantry-neighbours-XXXXXX";
    m_.state_dir = ::mkdtemp(dir);
    share_counters();
    // Programs are read from the machine outside once, so that the first flood begins at once.
    for (const char* program : {"fio", "stress-ng", "iperf3"})
      if (!done(fmt::format("{} --version", program))) return std::string(program);
    // The pages of stress-ng's workers are read only when one runs.
    done("stress-ng --cpu 1 --matrix 1 --vm 1 --vm-bytes 8M -t 1 --quiet");
    for (unsigned i = 0; i < 2; ++i) {
      slow_.push_back(std::make_unique<SlowDisk>(disks_[i], i));
      if (slow_.back()->path().empty()) return std::string("dm-delay over " + disks_[i]);
    }
    if (const auto lack = FarEnd::make(kLinkMegabits)) return "a link: " + *lack;
    return std::nullopt;
  }

  void run(unsigned seed, unsigned count, bool two) {
    node::NeighbourWatch::Options o = m_.options(true);
    o.running = [this] { return running(); };
    o.limit_link = [this](const auto& key, network::Fabric::Way way, std::uint64_t most) {
      for (const auto& one : now_)
        if (const auto network = one->network_of(key))
          FarEnd::limit(*network, way == network::Fabric::Way::sends, most);
    };
    node::NeighbourWatch watch(std::move(o), loop_, *m_.log);
    pass(loop_, seconds(7), [](int) {});  // a node that has been there before its jobs
    std::vector<unsigned> left;
    for (unsigned i = 0; i < count; ++i) left.push_back(seed + i);
    while (!left.empty()) {
      const unsigned first = left.front();
      begin(left, first);
      const auto beside = std::find_if(left.begin(), left.end(), [&](unsigned other) {
        return two && fits_beside(facts_of(first).place, facts_of(other).place);
      });
      if (beside != left.end()) begin(left, *beside);
      play(watch);
    }
    runtime::remove_tree(m_.state_dir);
  }

 private:
  static bool fits_beside(Place a, Place b) {
    return a != Place::alone && b != Place::alone && (a != Place::link || b != Place::link);
  }
  void begin(std::vector<unsigned>& left, unsigned seed) {
    std::erase(left, seed);
    const auto lane = static_cast<unsigned>(now_.size());
    now_.push_back(std::make_unique<Scenario>(seed, m_, lane, disks_[lane], slow_[lane].get()));
  }
  void play(node::NeighbourWatch& watch) {
    const auto ticks = loop_.every(seconds(1), [&] {
      const proto::NodeSharing said = watch.said();
      std::erase_if(now_, [&](const std::unique_ptr<Scenario>& one) {
        if (!one->tick(said)) return false;
        fmt::print("{}\n", one->outcome(said).line());
        std::fflush(stdout);
        return true;
      });
      if (now_.empty()) loop_.stop();
    });
    loop_.run();
    pass(loop_, seconds(4), [](int) {});  // a row without anybody
  }
  std::vector<sampling::WatchedJob> running() const {
    std::vector<sampling::WatchedJob> out;
    for (const auto& one : now_) out.insert(out.end(), one->jobs().begin(), one->jobs().end());
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    return out;
  }

  Machine m_;
  std::array<std::string, 2> disks_;
  std::vector<std::unique_ptr<SlowDisk>> slow_;
  loop::Loop loop_;
  std::vector<std::unique_ptr<Scenario>> now_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--sum") return sum(argv[2]);
  const bool two = argc == 5 && std::string(argv[4]) == "two";
  if (argc != 4 && !two) {
    fmt::print(stderr, "usage: vm_scenarios DISK SEED COUNT [two], or vm_scenarios --sum FILE\n");
    return 2;
  }
  Node node(argv[1]);
  if (const auto lack = node.prepare()) {
    fmt::print(stderr, "vm_scenarios: it needs {}\n", *lack);
    return 77;
  }
  node.run(static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)),
           static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)), two);
  return 0;
}
