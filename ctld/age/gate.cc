#include "ctld/age/gate.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/proto/attempt.h"
#include "common/proto/cluster.h"
#include "common/proto/job_change.h"
#include "common/proto/job_ref.h"
#include "common/proto/node_report.h"
#include "common/proto/session.h"
#include "ctld/age/newer.h"
#include "ctld/core/request.h"

namespace gantry::age {
namespace {

constexpr std::size_t kClaimsBelieved = 2;
constexpr std::size_t kHoldAtOnce = 1'000;
constexpr std::string_view kReason = "runs jobs that are newer than the store: ";

core::ClientRequest order_of_ours(core::ClientMessage message) {
  core::ClientRequest request;  // an input of no connection, so its reply is dropped
  request.who.role = proto::Role::admin;
  request.who.owner.user = "(store)";
  request.message = std::move(message);
  return request;
}

Error too_old(const std::string& place, const std::string& why) {
  return {ErrorCode::malformed,
          fmt::format("{} is older than what is known of it: {}. With it newer jobs would be ended "
                      "and job ids given again: put the newest copy in place, or go on with this "
                      "one by `gantry-ctld --accept-old-store` (docs/store.md)",
                      place, why)};
}

}  // namespace

Result<void> Gate::check(const HighWater& mark, Epoch epoch, EventSeq last,
                         const std::string& place) {
  const std::string why = behind(mark, epoch, last);
  if (!why.empty()) return tl::unexpected(too_old(place, why));
  return {};
}

void Gate::hold_waiting(const core::State& state) {
  if (!mark_.hold) return;
  std::vector<proto::JobRef> waiting;
  state.jobs.walk(JobId{}, [&](const core::Job& job) {
    if (job.phase == Phase::queued && job.hold == core::Hold::none)
      waiting.push_back({job.id, {}, {}});
    return true;
  });
  doors_.say(LogLevel::warning,
             fmt::format("an old store was accepted; jobs that wait and are held now: {}",
                         waiting.size()));
  for (std::size_t i = 0; i < waiting.size(); i += kHoldAtOnce) {
    const auto from = waiting.begin() + static_cast<std::ptrdiff_t>(i);
    const std::size_t count = std::min(kHoldAtOnce, waiting.size() - i);
    doors_.order(order_of_ours(proto::HoldJobs{{from, from + static_cast<std::ptrdiff_t>(count)}}));
  }
}

Result<void> Gate::started(const core::State& state, EventSeq last, Instant now) {
  mark_.epoch = state.epoch;
  mark_.event = last;
  mark_.job = std::max(mark_.job, JobId(state.last_job.value() + kJobBlock));
  mark_.hold = false;
  noted_ = now;
  return doors_.save(mark_);
}

Result<void> Gate::turn_taken(const core::State& state) {
  hold_returned(state);
  const JobId last = state.last_job;
  if (last <= mark_.job) return {};
  mark_.job = JobId(last.value() + kJobBlock);
  return doors_.save(mark_);
}

Result<void> Gate::note_events(EventSeq last, Instant now) {
  if (last == mark_.event || now - noted_ < kNoteEvents) return {};
  mark_.event = last;
  noted_ = now;
  return doors_.save(mark_);
}

// A job that waits in this store, although the node has been told to start it, must not start a
// second time. The same applies to a job that this store has placed in an older attempt and that
// then returns to the queue, because that attempt never started. A node cannot run more jobs than
// it has cores, so somebody with a stolen node key cannot hold more than that.
void Gate::hold_listed(const core::State& state, const std::string& node,
                       const proto::NodeRegister& message) {
  const core::Node* known = state.node_named(node);
  if (known == nullptr) return;
  std::set<JobId>& held = held_for_[node];
  proto::HoldJobs order;
  for (const proto::AttemptStatus& status : message.attempts) {
    const core::Job* job = state.jobs.find(status.key.job);
    if (job == nullptr || job->phase == Phase::ended || job->hold != core::Hold::none ||
        status.key.attempt <= job->attempt || held.size() >= known->facts.cpus)
      continue;
    if (!held.insert(job->id).second) continue;
    if (job->phase == Phase::queued)
      order.jobs.push_back({job->id, {}, {}});
    else
      placed_.insert_or_assign(job->id, status.key.attempt);
  }
  if (order.jobs.empty()) return;
  doors_.say(LogLevel::error,
             fmt::format("node {} says that it has started jobs that wait here; they are held: {}",
                         node, order.jobs.size()));
  doors_.order(order_of_ours(std::move(order)));
}

void Gate::hold_returned(const core::State& state) {
  proto::HoldJobs order;
  std::erase_if(placed_, [&](const auto& claimed) {
    const core::Job* job = state.jobs.find(claimed.first);
    if (job == nullptr || job->phase == Phase::ended || job->attempt >= claimed.second) return true;
    if (job->phase != Phase::queued) return false;
    if (job->hold == core::Hold::none) order.jobs.push_back({job->id, {}, {}});
    return true;
  });
  if (order.jobs.empty()) return;
  doors_.say(LogLevel::error,
             fmt::format("{} jobs that went back to the queue are held, because a node says that "
                         "it has started them since",
                         order.jobs.size()));
  doors_.order(order_of_ours(std::move(order)));
}

Result<void> Gate::note_claim(const core::State& state, const std::string& node,
                              const proto::NodeRegister& message, const std::string& why) {
  if (claims_.insert_or_assign(node, why).second)
    doors_.say(LogLevel::error,
               fmt::format("node {} knows more than the store and is left alone: {}", node, why));
  hold_listed(state, node, message);
  JobId highest = message.highest_job;
  for (const proto::AttemptStatus& status : message.attempts)
    highest = std::max(highest, status.key.job);
  if (highest.value() <= state.last_job.value() + proto::kMostIdsAhead)
    mark_.job = std::max(mark_.job, highest);
  if (claims_.size() < std::min(kClaimsBelieved, nodes_)) return {};
  // The mark's epoch becomes higher than the store's, so that the next start also sees that the
  // store is old.
  mark_.epoch = std::max(Epoch(state.epoch.value() + 1), message.highest_epoch);
  if (auto saved = doors_.save(mark_); !saved) return saved;
  std::string all;
  for (const auto& [name, text] : claims_)
    all += fmt::format("{}node {}: {}", all.empty() ? "" : "; ", name, text);
  return tl::unexpected(too_old(place_, all));
}

// Takes attempts that run on the node and are newer than an accepted store out of the list, because
// the core would end them.
Result<bool> Gate::set_strangers_aside(const core::State& state, const std::string& node,
                                       proto::NodeRegister& message) {
  const core::Node* known = state.node_named(node);
  const bool before = message.highest_epoch < mark_.accepted;
  std::vector<proto::AttemptStatus> others;
  bool found = false;
  for (const proto::AttemptStatus& status : message.attempts) {
    const bool runs = status.phase == proto::AttemptPhase::running ||
                      status.phase == proto::AttemptPhase::finishing;
    if (before && runs && known != nullptr && !is_placed(state, *known, status.key)) {
      TRY(strangers_.add(node, status.key));
    }
    if (!strangers_.has(node, status.key)) {
      others.push_back(status);
    } else if (status.phase == proto::AttemptPhase::exited) {
      ended_.push_back(status);
    } else {
      found = true;
    }
  }
  message.attempts = std::move(others);
  return found;
}

// An ended attempt is no stranger any more, but its node lists it until the order to forget it
// arrives. So after an old store was accepted, an ended attempt proves nothing.
proto::NodeRegister Gate::proving(const proto::NodeRegister& message) const {
  proto::NodeRegister out;
  out.highest_epoch = message.highest_epoch;
  out.highest_job = message.highest_job;
  for (const proto::AttemptStatus& status : message.attempts)
    if (mark_.accepted == Epoch{} || status.phase != proto::AttemptPhase::exited)
      out.attempts.push_back(status);
  return out;
}

Result<bool> Gate::admit_registration(const core::State& state, const std::string& node,
                                      proto::NodeRegister& message) {
  const bool before = message.highest_epoch < mark_.accepted;
  ended_.clear();
  // A node that knows of the accepted store lists all strangers that it still has.
  std::vector<proto::AttemptKey> unlisted;
  if (!before) unlisted = strangers_.of(node);
  std::erase_if(unlisted, [&](const proto::AttemptKey& key) {
    return std::any_of(message.attempts.begin(), message.attempts.end(),
                       [&](const proto::AttemptStatus& status) { return status.key == key; });
  });
  ASSIGN(found, set_strangers_aside(state, node, message));
  if (!before) {
    const std::string why = newer_than_us(state, proving(message), heard_us_.contains(node));
    if (!why.empty()) return note_claim(state, node, message, why).map([] { return false; });
    claims_.erase(node);
  }
  for (const proto::AttemptKey& key : unlisted) TRY(stranger_ended(state, node, key));
  for (const proto::AttemptStatus& status : ended_) {
    TRY(stranger_ended(state, node, status.key));
    message.attempts.push_back(status);  // the core then orders the node to forget it
  }
  const core::Node* known = state.node_named(node);
  if (*found && known != nullptr && known->intent == NodeIntent::open) {
    proto::UpdateNodes drain{{node}, proto::NodeAction::drain, {}};
    drain.reason = std::string(kReason) + strangers_.on(node);
    doors_.say(LogLevel::warning, fmt::format("node {} is drained until newer jobs have ended: {}",
                                              node, strangers_.on(node)));
    doors_.order(order_of_ours(std::move(drain)));
  }
  return true;
}

Result<void> Gate::stranger_ended(const core::State& state, const std::string& node,
                                  const proto::AttemptKey& key) {
  ASSIGN(removed, strangers_.remove(node, key));
  if (!*removed) return {};
  doors_.say(LogLevel::info, fmt::format("job {} on node {}, which is newer than the store, ended",
                                         key.job.value(), node));
  const core::Node* known = state.node_named(node);
  if (strangers_.any_on(node) || known == nullptr || !known->reason.starts_with(kReason)) return {};
  doors_.order(order_of_ours(proto::UpdateNodes{{node}, proto::NodeAction::resume, {}}));
  return {};
}

Result<bool> Gate::admit(const core::State& state, const std::string& node,
                         core::NodeMessage& message) {
  if (auto* registration = message.get_if<proto::NodeRegister>()) {
    const auto admitted = admit_registration(state, node, *registration);
    if (!admitted || !*admitted) return admitted;
  } else if (!heard_us_.contains(node)) {
    // The node is in a session of another controller. If that controller has an equal or higher
    // epoch, the node cannot tell the answers of the two apart. So only its registration is
    // accepted; it registers when its heartbeats are not answered. Only a heartbeat names its
    // session: if the session is of an earlier start, the heartbeat is passed on and answered, and
    // the node registers at once. The answer does not contain this controller's epoch. The node's
    // other reports are sent again after that.
    const auto* beat = message.get_if<proto::Heartbeat>();
    return beat != nullptr && (beat->session >> 32) < state.epoch.value();
  } else if (const auto* report = message.get_if<proto::ExitReport>()) {
    if (strangers_.has(node, report->key)) TRY(stranger_ended(state, node, report->key));
  }
  heard_us_.insert(node);
  return true;
}

}  // namespace gantry::age
