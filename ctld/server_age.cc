// Whether the store is older than what is known of it (ctld/age): asked at start, at each commit
// and at each registration of a node.
//
// One node that claims to know more is left alone: nothing is ordered there, and its jobs run on.
// Two (or the only one) are believed, and the controller stops: a stolen node key alone cannot do
// that.
#include <algorithm>

#include <fmt/core.h>

#include "ctld/age/newer.h"
#include "ctld/server.h"

namespace gantry::ctld {
namespace {

constexpr std::size_t kClaimsBelieved = 2;
// What a node says of ids is believed so far above ours.
constexpr std::uint64_t kMostIdsAhead = 100'000'000;
constexpr std::size_t kHoldAtOnce = 1'000;
constexpr std::string_view kReason = "runs jobs that are newer than the store: ";

core::ClientRequest order_of_ours(core::ClientMessage message) {
  core::ClientRequest request;  // from nobody's connection: its reply goes nowhere
  request.who.role = proto::Role::admin;
  request.who.owner.user = "(store)";
  request.message = std::move(message);
  return request;
}

Error too_old(const std::string& state_dir, const std::string& why) {
  return {ErrorCode::malformed,
          fmt::format("{}/data.mdb is older than what is known of it: {}. With it newer jobs would "
                      "be ended and job ids given again: put the newest copy in place, or go on "
                      "with this one by `gantry-ctld --accept-old-store` (docs/store.md)",
                      state_dir, why)};
}

}  // namespace

Result<Server::Age> Server::load_age(const std::string& state_dir, Epoch epoch, EventSeq last) {
  Age age;
  const auto mark = age::load_high_water(state_dir);
  if (!mark) return tl::unexpected(mark.error());
  if (*mark) {
    age.mark = **mark;
    if (const std::string why = age::behind(age.mark, epoch, last); !why.empty())
      return tl::unexpected(too_old(state_dir, why));
  }
  auto strangers = age::Strangers::load(state_dir);
  if (!strangers) return tl::unexpected(strangers.error());
  age.strangers = std::move(*strangers);
  return age;
}

// After an old store was accepted: what waits may have run since.
void Server::hold_waiting_jobs() {
  if (!age_.mark.hold) return;
  std::vector<proto::JobRef> waiting;
  core_->state().jobs.walk(JobId{}, [&](const core::Job& job) {
    if (job.phase == Phase::queued && job.hold == core::Hold::none)
      waiting.push_back({job.id, {}, {}});
    return true;
  });
  log_.write(LogLevel::warning, "an old store was accepted: jobs that wait are held",
             {{"jobs", waiting.size()}});
  for (std::size_t i = 0; i < waiting.size(); i += kHoldAtOnce) {
    const auto from = waiting.begin() + static_cast<std::ptrdiff_t>(i);
    const std::size_t count = std::min(kHoldAtOnce, waiting.size() - i);
    step(order_of_ours(proto::HoldJobs{{from, from + static_cast<std::ptrdiff_t>(count)}}));
  }
}

Result<void> Server::note_start() {
  age_.mark.epoch = core_->epoch();
  age_.mark.event = store_->stats().last;
  age_.mark.job = std::max(age_.mark.job, JobId(core_->state().last_job.value() + age::kJobBlock));
  age_.mark.hold = false;
  age_.noted = clock_.now();
  return age::save_high_water(config_.controller.state_dir, age_.mark);
}

// Before ids above the mark leave. False: it could not be raised.
bool Server::keep_mark_ahead() {
  const JobId last = core_->state().last_job;
  if (last <= age_.mark.job) return true;
  age_.mark.job = JobId(last.value() + age::kJobBlock);
  const auto saved = age::save_high_water(config_.controller.state_dir, age_.mark);
  if (!saved) fatal(saved.error());
  return saved.has_value();
}

void Server::note_events() {
  const EventSeq last = store_->stats().last;
  if (last == age_.mark.event || clock_.now() - age_.noted < age::kNoteEvents) return;
  age_.mark.event = last;
  age_.noted = clock_.now();
  if (auto saved = age::save_high_water(config_.controller.state_dir, age_.mark); !saved)
    fatal(saved.error());
}

void Server::note_claim(const std::string& node, const proto::NodeRegister& message,
                        const std::string& why) {
  const bool fresh = age_.claims.insert_or_assign(node, why).second;
  if (fresh)
    log_.write(LogLevel::error, "a node knows more than the store: it is left alone",
               {{"node", node}, {"why", why}});
  JobId& job = age_.mark.job;
  for (const proto::AttemptStatus& status : message.attempts)
    if (status.key.job.value() <= core_->state().last_job.value() + kMostIdsAhead)
      job = std::max(job, status.key.job);
  if (age_.claims.size() < std::min(kClaimsBelieved, config_.nodes.size())) return;
  // Higher than the store's, so that the next start sees it as well.
  age_.mark.epoch = std::max(Epoch(core_->epoch().value() + 1), message.highest_epoch);
  if (auto saved = age::save_high_water(config_.controller.state_dir, age_.mark); !saved) {
    fatal(saved.error());
    return;
  }
  std::string all;
  for (const auto& [name, text] : age_.claims)
    all += fmt::format("{}node {}: {}", all.empty() ? "" : "; ", name, text);
  fatal(too_old(config_.controller.state_dir, all));
}

// Takes what runs and is newer than an accepted store out of the list: the core would end it.
Result<bool> Server::set_strangers_aside(const std::string& node, proto::NodeRegister& message) {
  const core::Node* known = core_->state().node_named(node);
  const bool before = message.highest_epoch < age_.mark.accepted;
  std::vector<proto::AttemptStatus> others;
  bool found = false;
  for (const proto::AttemptStatus& status : message.attempts) {
    const bool runs = status.phase == proto::AttemptPhase::running ||
                      status.phase == proto::AttemptPhase::finishing;
    if (before && runs && known != nullptr && !age::is_placed(core_->state(), *known, status.key)) {
      if (auto added = age_.strangers.add(node, status.key); !added)
        return tl::unexpected(added.error());
    }
    if (!age_.strangers.has(node, status.key)) {
      others.push_back(status);
    } else if (status.phase == proto::AttemptPhase::exited) {
      age_.ended.push_back(status);
    } else {
      found = true;
    }
  }
  message.attempts = std::move(others);
  return found;
}

bool Server::admit_registration(const std::string& node, proto::NodeRegister& message) {
  const bool before = message.highest_epoch < age_.mark.accepted;
  age_.ended.clear();
  const auto found = set_strangers_aside(node, message);
  if (!found) {
    fatal(found.error());
    return false;
  }
  if (!before) {
    const std::string why =
        age::newer_than_us(core_->state(), message, age_.heard_us.contains(node));
    if (!why.empty()) {
      note_claim(node, message, why);
      return false;
    }
    age_.claims.erase(node);
  }
  for (const proto::AttemptStatus& status : age_.ended) {
    stranger_ended(node, status.key);
    message.attempts.push_back(status);  // the core has the node forget it
  }
  const core::Node* known = core_->state().node_named(node);
  if (*found && known != nullptr && known->intent == NodeIntent::open) {
    proto::UpdateNodes drain{{node}, proto::NodeAction::drain, {}};
    drain.reason = std::string(kReason) + age_.strangers.on(node);
    log_.write(LogLevel::warning, "a node is drained until newer jobs have ended",
               {{"node", node}, {"jobs", age_.strangers.on(node)}});
    step(order_of_ours(std::move(drain)));
  }
  return true;
}

void Server::stranger_ended(const std::string& node, const proto::AttemptKey& key) {
  const auto removed = age_.strangers.remove(node, key);
  if (!removed) return fatal(removed.error());
  if (!*removed) return;
  log_.write(LogLevel::info, "a job that is newer than the store has ended",
             {{"node", node}, {"job", key.job}});
  const core::Node* known = core_->state().node_named(node);
  if (age_.strangers.any_on(node) || known == nullptr || !known->reason.starts_with(kReason))
    return;
  step(order_of_ours(proto::UpdateNodes{{node}, proto::NodeAction::resume, {}}));
}

// False: this message is not for the core.
bool Server::admit(const std::string& node, core::NodeMessage& message) {
  if (auto* registration = std::get_if<proto::NodeRegister>(&message)) {
    if (!admit_registration(node, *registration)) return false;
  } else if (!age_.heard_us.contains(node)) {
    // The node speaks in a session of another controller. If that one started as often as we did or
    // more often, its answers and ours look alike to the node, so nothing but its registration is
    // taken; it registers when its heartbeats stay unanswered. Only a heartbeat names its session:
    // in one of an earlier start it is answered, and the node registers at once. What else it
    // reports comes again after that.
    const auto* beat = std::get_if<proto::Heartbeat>(&message);
    if (beat == nullptr || (beat->session >> 32) >= core_->epoch().value()) return false;
  } else if (const auto* report = std::get_if<proto::ExitReport>(&message)) {
    if (age_.strangers.has(node, report->key)) stranger_ended(node, report->key);
  }
  age_.heard_us.insert(node);
  return !failed_;
}

}  // namespace gantry::ctld
