// One scenario: three jobs on the watched machine, a victim that works alone first, then a flood,
// and what the node says of it. It runs by being asked each second, so several can run at once.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/neighbours/vm_kinds.h"
#include "tests/neighbours/vm_loads.h"

namespace gantry::vm {

// The result of one scenario, as a line of text, from which sums are made later.
struct Seen {
  unsigned seed = 0;
  std::string kind;
  bool has_truth = false;
  std::optional<int> named;          // seconds after the flood began
  int right = 0, wrong = 0;          // findings about the scenario's jobs
  std::optional<int> flooded, back;  // what the victim got done, in percent of alone
  std::string text;                  // text of wrong findings

  [[nodiscard]] std::string line() const;
  static std::optional<Seen> of(const std::string& line);
};

class Scenario {
 public:
  // `lane` is the number of its disk, 0 or 1.
  Scenario(unsigned seed, Machine& machine, unsigned lane, std::string disk, SlowDisk* slow);
  ~Scenario();
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;

  [[nodiscard]] const std::vector<sampling::WatchedJob>& jobs() const { return jobs_; }
  [[nodiscard]] Place place() const { return facts_.place; }
  // After the next second; true once it is over.
  bool tick(const proto::NodeSharing& said);
  [[nodiscard]] Seen outcome(const proto::NodeSharing& said) const;
  [[nodiscard]] std::optional<unsigned> network_of(const proto::AttemptKey& key) const;

 private:
  [[nodiscard]] std::uint64_t work() const;
  [[nodiscard]] double percent_since(std::uint64_t before, int seconds) const;
  [[nodiscard]] std::string pressure() const;
  void limit_node(const std::string& bytes) const;
  void make_jobs();
  void start_victim();
  void start_flood();
  template <class Work>
  void start(unsigned job, const Work& work);
  void run(unsigned job, const Words& words);
  unsigned between(unsigned low, unsigned high);
  [[nodiscard]] bool is_true(const proto::SharingFinding& f) const;
  [[nodiscard]] std::optional<unsigned> index_of(const proto::AttemptKey& key) const;

  unsigned seed_, lane_;
  Machine& m_;
  const Facts& facts_;
  std::string disk_;
  SlowDisk* slow_;
  std::mt19937 random_;
  std::vector<sampling::WatchedJob> jobs_;
  std::vector<pid_t> pids_;
  int second_ = 0;
  std::uint64_t mark_ = 0;  // the work that was done when what is measured now began
  double alone_ = 0;        // per second
  std::optional<int> named_, held_, flooded_, back_;  // the first two in seconds of the flood
};

}  // namespace gantry::vm
