// Each seed is one history of a store that was replaced by an older copy while its nodes ran newer
// jobs.
//
//   jobs run ... a copy is made ... more jobs run ... the copy is restored ... the controller
//   notices and stops ... the administrator accepts the copy ... everything runs to its end
//
// It checks that jobs newer than the copy are neither killed nor signalled; that the controller
// does not go on before it is told to; that no job id is given twice; that jobs that wait in the
// copy are held; that jobs the copy knows end and are in the history, once; and that in the end
// every node is open and free. If fewer than two nodes know anything newer, the controller does go
// on: a single node is not believed, and is left alone. If there is no such node, no id that a node
// was ever told is given again.
//
// The history uses the shipped cores of controller and node and the shipped gate (ctld/age), on
// links that lose and double messages; simulation.h has the other faults.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "ctld/age/gate.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/sched/cycle/replica.h"
#include "ctld/store/memory_store.h"
#include "ctld/store/store.h"
#include "tests/sim/node.h"

namespace gantry::sim {

class OldStore {
 public:
  OldStore(std::uint64_t seed, bool print);  // a broken property ends the process
  void run();
  [[nodiscard]] std::uint64_t hash() const { return trace_.hash(); }
  [[nodiscard]] std::string summary() const;

 private:
  struct Disk {  // the controller's state directory
    store::MemoryStore store;
    age::HighWater mark;
    age::Strangers strangers;
  };
  [[nodiscard]] Instant now() const { return std::max(floor_, queue_.now()); }
  void start();
  void stop(std::string_view why);
  void turn();
  void plan();
  void set_wake(std::optional<Instant> at);
  void fold();
  void take(const std::string& node, node::Report report);
  void ask(core::ClientMessage message);
  void replied(const core::ReplyMessage& reply);
  void submit();
  void submit_now_and_then(Instant until);
  void check_unnoticed();
  void run_for(std::int64_t least, std::int64_t most);  // in seconds
  void put_back();
  void accept();
  void operate();
  void resume_nodes();
  void check_newer();
  void expect_twice(JobId job);
  void check_end();
  [[nodiscard]] bool all_ended() const;
  [[noreturn]] void broken(const std::string& promise) { trace_.broken(queue_.now(), promise); }

  static constexpr Instant kBegin{1'767'225'600'000'000};  // 2026-01-01T00:00:00Z
  Trace trace_;
  Random random_;
  Settings settings_;
  Queue queue_;
  Network network_;
  Truth truth_;
  std::vector<std::unique_ptr<Node>> nodes_;
  Disk disk_;
  std::optional<Disk> copy_;
  std::unique_ptr<core::Core> core_;  // nullptr if no process runs
  std::unique_ptr<sched::Replica> replica_;
  std::unique_ptr<age::Gate> gate_;
  std::uint64_t life_ = 0, next_request_ = 1;
  bool stepped_ = false, plan_wanted_ = false;
  Instant floor_{};
  std::optional<Instant> armed_;
  std::string refused_;  // why the last controller stopped by itself

  std::vector<JobId> given_;  // ids acknowledged by any controller
  std::set<JobId> in_copy_;   // the ids acknowledged when the copy was made
  std::size_t lost_ = 0;      // number of ids acknowledged after the copy
  std::set<std::pair<std::string, AttemptKey>> newer_;  // attempts that run and are not in the copy
  std::size_t newer_seen_ = 0;
  std::set<JobId> told_;              // jobs that a node has been told
  std::set<std::string> registered_;  // nodes that have registered with this controller
  bool put_back_ = false, accepted_ = false, proven_ = true;
};

}  // namespace gantry::sim
