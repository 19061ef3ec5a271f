// The node core: how it starts, which function handles which input, and the end of a turn.
#include "noded/core/core.h"

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
                 [&](TokensDue& i) {  // without a connection it is told again later
                   if (s.registered() && s.has_tokens(i.key))
                     s.turn.messages.emplace_back(proto::RenewIdentity{i.key});
                 },
                 [&](GpusChanged& i) {
                   s.facts.gpus = std::move(i.gpus);  // each later registration sends them as well
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
  if (const auto at = s.fence_at(); at && std::any_of(s.attempts.begin(), s.attempts.end(), live))
    earlier(at);
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

}  // namespace gantry::node
