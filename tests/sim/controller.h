// The controller: the shipped core on a MemoryStore, with the scheduler's replica inline. Its turns
// are those of ctld/server.cc: steps, commit, then replies, orders, the scheduler's changes.
//
// After each turn every property that can be seen here is checked: the ledger against the state,
// the audits of core and replica, the changes against the full view. At recovery and from time to
// time the records are also compared with a replay of every event from empty.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/proto/job_query.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/cycle/replica.h"
#include "ctld/sched/cycle/schedule.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/policy.h"
#include "ctld/store/memory_store.h"
#include "ctld/store/store.h"
#include "tests/sim/check/ledger.h"
#include "tests/sim/check/view.h"
#include "tests/sim/network.h"

namespace gantry::sim {

class Controller {
 public:
  Controller(Queue& queue, Random& random, Network& network, Trace& trace, Ledger& ledger,
             const Settings& settings);

  // Called for each delivery at the other end of a link.
  std::function<void(const std::string& node, core::OrderMessage)> to_node;
  std::function<void(core::ConnectionId, std::uint64_t request, core::ReplyMessage)> to_client;

  core::ConnectionId connect(const std::string& client);
  void take(core::Input input);  // an input arrives; it is lost if no controller runs

  void start();
  void crash(std::string_view why);
  // the process stands still, and reads messages that arrive meanwhile when it continues
  void pause(Duration length);
  void resume();
  void crash_next_commit(store::CrashPoint point) { store_.crash_next_append(point); }
  void crash_next_fold(store::CrashPoint point) { store_.crash_next_fold(point); }
  void crash_while_sending() { dies_after_ = random_.below(3); }
  void fill_disk();
  void empty_disk() { store_.limit_space(std::nullopt); }
  void calm();  // switches planned faults off

  [[nodiscard]] bool runs() const { return core_ != nullptr; }
  [[nodiscard]] const core::Core& core() const { return *core_; }
  [[nodiscard]] const store::MemoryStore& store() const { return store_; }
  [[nodiscard]] sched::Replica& replica() { return *replica_; }
  // Returns true if nothing is on its way between core and scheduler and the last plan has looked
  // at everything, so that every verdict is about the present facts.
  [[nodiscard]] bool settled() const {
    return core_ && !paused_until_ && !stepped_ && !plan_wanted_ && !handed_over_ && looked_at_all_;
  }
  [[nodiscard]] sched::Policy policy() const;
  [[nodiscard]] Instant clock() const { return std::max(floor_, queue_.now() + clock_offset_); }
  // Returns what a listing shows to an administrator; call it only when settled().
  std::vector<proto::JobRow> list_jobs();
  [[nodiscard]] std::uint64_t turns() const { return turns_; }
  [[nodiscard]] std::uint64_t lives() const { return life_; }
  [[nodiscard]] std::uint64_t plans() const { return plans_; }

 private:
  std::unique_ptr<core::Core> load();
  bool postponed(std::function<void()> call);
  void end_of_turn();
  void check_turn(const core::Turn& turn);
  void check_replay(core::Core* recovered);  // nullptr compares with the running core
  bool send(core::Turn& turn);               // returns false if the controller died while sending
  void answered(const core::Reply& reply);
  void set_wake(std::optional<Instant> at);
  void plan_soon();
  void plan();
  void take_plan(const sched::Plan& plan);
  struct Kept {  // what earlier plans have kept for waiting jobs
    std::vector<sched::Reservation> promises;
    std::vector<sched::MigKept> slices;
  };
  void check_plan(const sched::Plan& plan, const Kept& kept, sched::Policy policy);
  void fold();
  void fold_later();
  [[noreturn]] void broken(const std::string& promise) { trace_.broken(queue_.now(), promise); }

  Queue& queue_;
  Random& random_;
  Network& network_;
  Trace& trace_;
  Ledger& ledger_;
  const Settings& settings_;
  store::MemoryStore store_;
  std::unique_ptr<core::Core> core_;  // nullptr if no process runs
  std::unique_ptr<sched::Replica> replica_;
  View view_;
  std::uint64_t life_ = 0;
  std::uint64_t turns_ = 0, plans_ = 0;
  std::optional<Instant> paused_until_;
  std::vector<std::function<void()>> postponed_;  // calls to be made when the pause ends
  bool stepped_ = false;
  bool plan_wanted_ = false;
  bool handed_over_ = false;    // a plan that has not been applied yet
  bool looked_at_all_ = false;  // the last plan looked at everything
  Instant estimated_{};
  bool planned_ = false;     // a plan is applied in this turn
  bool plan_again_ = false;  // a plan is wanted after that
  bool faults_ = true;
  Instant floor_{};
  Duration clock_offset_{};
  std::optional<Instant> armed_;
  std::optional<std::uint64_t> dies_after_;  // number of messages
  std::uint64_t next_connection_ = 1;
  std::map<core::ConnectionId, std::string> connections_;
  std::map<std::pair<core::ConnectionId, std::uint64_t>, core::ClientRequest> requests_;
};

}  // namespace gantry::sim
