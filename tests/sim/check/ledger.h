// The ledger: an independent account of everything that was committed. It is kept from the events
// alone and by rules of its own, so that the core's state can be compared with it.
//
// With each committed event it checks the following. Only legal moves happen. No core, memory or
// exclusive node is given twice. The components of a heterogeneous job are placed in one commit and
// on different nodes. A job whose cancel was acknowledged is never placed again. One request makes
// one job. No job starts before its begin time or its dependencies (other tests cover singleton,
// after and after_corr). A node is released only when nothing of the attempt lives there, with the
// exit and usage that its machine recorded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/proto/job_change.h"
#include "common/proto/node_report.h"
#include "ctld/core/event/event.h"
#include "ctld/core/event/events.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/state/moves.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/state.h"
#include "ctld/sched/change.h"
#include "ctld/store/memory_store.h"
#include "ctld/store/store.h"
#include "tests/sim/check/book.h"
#include "tests/sim/check/takings.h"
#include "tests/sim/check/truth.h"

namespace gantry::sim {

struct Held {  // one node's part of an attempt
  sched::NodeGrant grant;
  bool released = false;
  proto::ExitCause cause = proto::ExitCause::exited;
  ExitStatus exit;
};

struct Account {  // of one job, array or separate task of an array
  JobId id{}, array{};
  std::uint32_t ordinal = 0;
  Phase phase = Phase::queued;
  bool forgotten = false;
  Attempt attempt{};
  std::vector<Held> nodes;
  bool exclusive = false;
  Usage usage;
  Instant placed{};
  std::optional<Instant> started, ended;
  std::optional<Instant> begin;  // earliest begin; as submitted, or as last changed
  std::optional<Outcome> outcome;
  std::vector<Outcome> ends;  // outcome of each end: the job may have been requeued
  // For each job that it depends on, the number of earlier ends that do not count, because they
  // were before the submit.
  std::map<JobId, std::size_t> before;
  ExitStatus exit;
  std::uint32_t restarts = 0;
  // If the job is a victim, no node may kill it between `chosen` and `spared_until` (world's
  // clock).
  Instant chosen{};
  std::optional<Instant> spared_until;
  std::optional<Instant> revived;      // when it was last requeued after its end (world's clock)
  bool final = false;                  // a cancel of it was acknowledged
  bool ending = false;                 // it ends by itself, so a cancel changes nothing any more
  core::StoredSpec spec;               // a separate task has the spec of its array
  std::vector<std::uint32_t> indexes;  // for an array: the index of each ordinal
  std::set<std::uint32_t> split, cancelled;  // for an array: ordinals
  std::set<std::uint32_t> final_tasks;       // for an array: indexes whose cancel was acknowledged
};

class Ledger {
 public:
  Ledger(const Queue& queue, Trace& trace, const Truth& truth, const Config& config)
      : queue_(queue),
        trace_(trace),
        truth_(truth),
        config_(config),
        book_(queue, trace, config),
        takings_(queue, trace, config) {}

  // Takes what the store has committed since the last call.
  void read(const store::MemoryStore& store);
  // Compares the core's state with the account.
  void compare(const core::State& state);
  void controller_starts();  // a new controller may have another clock

  // Replies that have left the controller.
  void submitted(const std::string& user, const std::string& request_id, JobId job);
  void cancelled(const proto::CancelJobs& asked, const proto::JobsDone& done);

  [[nodiscard]] const Book& book() const { return book_; }
  [[nodiscard]] const Takings& takings() const { return takings_; }
  [[nodiscard]] const std::map<JobId, Account>& jobs() const { return jobs_; }
  [[nodiscard]] const std::vector<JobId>& acknowledged() const { return acknowledged_; }
  [[nodiscard]] const std::string& node_name(NodeId id) const { return nodes_.at(id.value()); }

 private:
  struct NodeAccount {
    std::map<std::uint16_t, JobId> cpus;
    std::int64_t memory = 0;
    std::map<JobId, bool> jobs;  // true for an exclusive job
  };

  void take(Instant at, core::EventRef event);
  void move(Account& job, core::Trigger trigger);
  void declared(const core::event::NodeDeclared& e);
  void submitted(const core::event::JobSubmitted& e);
  void split(const core::event::TaskSplit& e);
  void tasks_cancelled(const core::event::TasksCancelled& e);
  void placed(Instant at, const core::event::JobPlaced& e);
  void may_start(Instant at, const Account& job);
  void check_together();
  void exited(Instant at, const core::event::NodeExited& e);
  void check_exit(const core::event::NodeExited& e, const Account& job);
  void check_times(Instant at, const core::event::NodeExited& e, Account& job);
  void ended(Instant at, const core::event::JobEnded& e);
  void requeued(const core::event::JobRequeued& e);
  void revived(const core::event::JobRevived& e);
  void compare(const core::Job& job, const Account& account) const;
  Account& account(JobId id);
  [[noreturn]] void broken(const std::string& promise) const {
    trace_.broken(queue_.now(), promise);
  }

  const Queue& queue_;
  Trace& trace_;
  const Truth& truth_;
  const Config& config_;
  Book book_;
  Takings takings_;
  std::uint64_t compared_ = 0;
  std::size_t events_read_ = 0, specs_read_ = 0;
  std::map<JobId, Bytes> specs_;
  std::vector<std::string> nodes_;
  std::vector<NodeAccount> held_;
  std::map<JobId, Account> jobs_;
  std::size_t known_ = 0;                                             // jobs that are not forgotten
  std::map<std::pair<std::string, std::string>, JobId> made_, told_;  // by user and request id
  std::vector<JobId> acknowledged_;
  std::map<JobId, std::uint32_t> placed_parts_;  // jobs of the present commit, by the leader's id
};

}  // namespace gantry::sim
