// The node core: how it starts, which function handles which input, and the end of a turn.
#include "noded/core/core.h"

#include <utility>

#include "common/overloaded.h"
#include "noded/core/state.h"

namespace gantry::node {

namespace {

Stage stage_of(const Recovered& r) {
  switch (r.stage) {
    case Recovered::Stage::never_started: return Stage::waiting;
    case Recovered::Stage::preparing: return Stage::preparing;
    case Recovered::Stage::held: return Stage::held;
    case Recovered::Stage::running: return Stage::running;
    case Recovered::Stage::ended: return Stage::ended;
  }
  return Stage::ended;
}

}  // namespace

Core::Core(proto::NodeRegister facts, Memory memory, std::vector<Recovered> recovered, Instant now)
    : state_(std::make_unique<State>()) {
  state_->facts = std::move(facts);
  state_->memory = memory;
  if (auto& contact = state_->memory.last_contact; contact && *contact > now) contact = now;
  state_->kept_job = memory.highest_job;
  for (auto& r : recovered) {
    state_->memory.highest_job = std::max(state_->memory.highest_job, r.key.job);
    OneAttempt attempt;
    attempt.stage = stage_of(r);
    attempt.started = r.started;
    attempt.frozen = r.frozen;
    auto [it, fresh] = state_->attempts.emplace(r.key, std::move(attempt));
    GANTRY_ASSERT(fresh, "an attempt has one directory");
    if (it->second.stage == Stage::ended) state_->settle(now, *it, std::move(r.exit));
  }
  state_->fence(now);
}

Core::~Core() = default;

void Core::step(Instant now, Input input) {
  State& s = *state_;
  std::visit(Overloaded{
                 [&](FromController& i) { s.order(now, std::move(i.order)); },
                 [&](LinkUp&) { s.link_up(now); },
                 [&](LinkDown&) { s.link_down(); },
                 [&](Wake&) {},
                 [&](Stop& i) {
                   s.remember_job();
                   if (s.registered() && !i.makes_way)
                     s.turn.messages.emplace_back(proto::Goodbye{s.link.session});
                   s.stopped = true;
                   s.link_down();
                 },
                 [&](Held& i) { s.held(now, i.key); },
                 [&](Running& i) { s.running(now, i); },
                 [&](Ended& i) { s.ended(now, i.key, std::move(i.exit)); },
                 [&](BeginFailed& i) { s.begin_failed(now, i); },
                 [&](FileRead& i) { s.turn.messages.emplace_back(std::move(i.reply)); },
                 [&](NetworkProbed& i) { s.turn.messages.emplace_back(std::move(i.reply)); },
                 [&](TokensDue& i) {  // without a connection, TokensDue comes again later
                   if (s.registered() && s.has_tokens(i.key))
                     s.turn.messages.emplace_back(proto::RenewIdentity{i.key});
                 },
                 [&](GpusChanged& i) {
                   s.facts.gpus = std::move(i.gpus);  // later registrations send the GPUs as well
                   s.link.tell_gpus = kTellGpus;
                   s.tell_gpus();
                 },
                 [&](NotRemembered&) { s.kept_job = JobId{}; },
             },
             input);
  s.link_timers(now);
  s.fence(now);
  s.attempt_timers(now);
}

Turn Core::take_turn() {
  State& s = *state_;
  Turn turn = std::exchange(s.turn, Turn{});
  const auto earlier = [&turn](std::optional<Instant> at) {
    if (at && (!turn.wake || *at < *turn.wake)) turn.wake = at;
  };
  earlier(s.link_wake());
  if (!s.timers.empty()) earlier(s.timers.begin()->first);
  const auto live = [](const auto& entry) {
    return entry.second.stage != Stage::ended &&
           !(entry.second.ending && entry.second.ending->cause == proto::ExitCause::fenced);
  };
  if (const auto at = s.fence_at(); at && std::ranges::any_of(s.attempts, live)) earlier(at);
  return turn;
}

bool Core::registered() const {
  return state_->registered();
}

std::vector<proto::AttemptStatus> Core::attempts() const {
  std::vector<proto::AttemptStatus> out;
  out.reserve(state_->attempts.size());
  for (const auto& [key, attempt] : state_->attempts) out.push_back({key, phase_of(attempt.stage)});
  return out;
}

const Counters& Core::counters() const {
  return state_->counters;
}

Order::Order() = default;
Order::Order(variant order) : variant(std::move(order)) {}
Order::Order(const Order&) = default;
Order::Order(Order&&) noexcept = default;
Order& Order::operator=(const Order&) = default;
Order& Order::operator=(Order&&) noexcept = default;
Order::~Order() = default;

Input::Input() = default;
Input::Input(const Input&) = default;
Input::Input(Input&&) noexcept = default;
Input& Input::operator=(const Input&) = default;
Input& Input::operator=(Input&&) noexcept = default;
Input::~Input() = default;

Action::Action() = default;
Action::Action(const Action&) = default;
Action::Action(Action&&) noexcept = default;
Action& Action::operator=(const Action&) = default;
Action& Action::operator=(Action&&) noexcept = default;
Action::~Action() = default;

Report::Report() = default;
Report::Report(const Report&) = default;
Report::Report(Report&&) noexcept = default;
Report& Report::operator=(const Report&) = default;
Report& Report::operator=(Report&&) noexcept = default;
Report::~Report() = default;

void Core::State::link_up(Instant now) {
  link.backoff = kRegisterFirst;
  ask(now);
}

void Core::State::link_down() {
  link.phase = Link::Phase::down;
  link.session = 0;
}

void Core::State::ask(Instant now) {
  if (stopped) return;
  // No two registrations have the same time, so that the node can tell which one an answer is for.
  link.asked = std::max(now, link.asked + microseconds(1));
  link.phase = Link::Phase::registering;
  link.session = 0;
  link.ask_again = now + link.backoff;
  link.backoff = std::min(link.backoff * 2, kRegisterMost);
  proto::NodeRegister message = facts;
  message.highest_epoch = memory.epoch;
  message.highest_job = memory.highest_job;
  message.sent = link.asked;
  message.attempts.reserve(attempts.size());
  for (const auto& [key, attempt] : attempts)
    message.attempts.push_back({key, phase_of(attempt.stage), attempt.started});
  turn.messages.emplace_back(std::move(message));
}

void Core::State::remember() {
  turn.actions.emplace_back(RememberEpoch{memory.epoch, memory.fence_after});
}

void Core::State::remember_job() {
  if (memory.highest_job <= kept_job) return;
  kept_job = memory.highest_job;
  turn.actions.emplace_back(RememberJob{memory.highest_job});
}

bool Core::State::newest_epoch(Instant now, Epoch epoch) {
  if (epoch < memory.epoch) {
    ++counters.old_epoch;
    return false;
  }
  if (epoch > memory.epoch) {
    memory.epoch = epoch;
    remember();
    // A session belongs to one controller; with a new controller there is none until it has
    // answered.
    if (registered()) {
      link.backoff = kRegisterFirst;
      ask(now);
    }
  }
  return true;
}

bool Core::State::in_session(Instant now, const proto::OrderStamp& stamp) {
  if (!newest_epoch(now, stamp.epoch)) return false;
  if (!registered() || stamp.session != link.session) {
    ++counters.other_session;
    return false;
  }
  link.last_word = now;
  return true;
}

bool Core::State::in_order(Instant now, const proto::OrderStamp& stamp) {
  if (!in_session(now, stamp)) return false;
  if (stamp.seq <= link.last_seq) {
    ++counters.old_seq;
    return false;
  }
  link.last_seq = stamp.seq;
  return true;
}

void Core::State::accept(Instant now, proto::NodeAccept&& order) {
  if (order.stamp.epoch < memory.epoch) {
    ++counters.old_epoch;
    return;
  }
  if (link.phase != Link::Phase::registering || order.heard != link.asked) {
    ++counters.other_session;
    return;
  }
  if (order.stamp.epoch > memory.epoch || order.fence_after != memory.fence_after) {
    memory.epoch = order.stamp.epoch;
    memory.fence_after = order.fence_after;
    remember();
  }
  link.phase = Link::Phase::registered;
  link.session = order.stamp.session;
  link.last_seq = order.stamp.seq;
  link.heartbeat = std::max(order.heartbeat, milliseconds(10));
  link.next_beat = now + link.heartbeat;
  link.last_word = now;
  link.backoff = kRegisterFirst;
  contact(order.heard);

  for (auto& entry : attempts)  // the timers send the exit reports, a limited number per turn
    if (entry.second.stage == Stage::ended) arm(entry, now);
  for (const auto& key : order.forget) {
    const auto it = attempts.find(key);
    if (it != attempts.end() && it->second.stage == Stage::ended)
      acknowledged(key);
    else if (it != attempts.end())
      order.kill.push_back(key);  // it still runs here: end it, then report it
  }
  for (const auto& key : order.kill) {
    const auto it = attempts.find(key);
    if (it == attempts.end())
      report_unknown(now, key);
    else if (it->second.stage != Stage::ended)
      end_now(now, *it, Ending{}, Duration{}, {});
  }
  for (auto& entry : attempts) {
    if (entry.second.stage == Stage::waiting && move(entry.second, Trigger::resume))
      turn.actions.emplace_back(Resume{entry.first});
    else if (entry.second.stage != Stage::ended)
      report_status(now, entry);
  }
}

// The controller confirms that it received what this node sent at `heard`. The controller counts
// the node's silence from then, and the node does the same.
void Core::State::contact(Instant heard) {
  if (memory.last_contact && heard <= *memory.last_contact) return;
  memory.last_contact = heard;
  if (memory.fence_after) turn.actions.emplace_back(RememberContact{heard});
}

std::optional<Instant> Core::State::fence_at() const {
  if (!memory.fence_after) return std::nullopt;
  return memory.last_contact.value_or(Instant{}) + *memory.fence_after;
}

void Core::State::fence(Instant now) {
  const auto at = fence_at();
  if (!at || now < *at) return;
  for (auto& entry : attempts) {
    OneAttempt& attempt = entry.second;
    if (attempt.stage == Stage::ended) continue;
    if (attempt.ending && attempt.ending->cause == proto::ExitCause::fenced) continue;
    end_now(
        now, entry,
        Ending{proto::ExitCause::fenced,
               {},
               facts.node + " heard nothing from the controller for so long that it ended the job"},
        Duration{}, "the node lost its controller");
  }
}

void Core::State::link_timers(Instant now) {
  if (stopped) return;
  if (link.phase == Link::Phase::registering && now >= link.ask_again) ask(now);
  if (!registered()) return;
  if (now >= link.last_word + link.heartbeat * kSilentBeats) {
    ask(now);
    return;
  }
  if (now >= link.next_beat) {
    link.next_beat = now + link.heartbeat;
    // The highest job id is saved at each heartbeat and not at each order, because each save costs
    // a sync of the disk. Jobs that are still here are known by their directories in any case.
    remember_job();
    proto::Heartbeat beat;
    beat.session = link.session;
    beat.sent = now;
    turn.messages.emplace_back(beat);
    tell_gpus();
  }
}

void Core::State::tell_gpus() {
  if (!registered() || link.tell_gpus == 0) return;
  --link.tell_gpus;
  turn.messages.emplace_back(proto::GpuReport{link.session, facts.gpus});
}

std::optional<Instant> Core::State::link_wake() const {
  if (stopped || link.phase == Link::Phase::down) return std::nullopt;
  if (link.phase == Link::Phase::registering) return link.ask_again;
  return std::min(link.next_beat, link.last_word + link.heartbeat * kSilentBeats);
}

}  // namespace gantry::node
