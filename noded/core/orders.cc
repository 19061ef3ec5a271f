// The controller's orders about attempts. Every order may come twice, late, or for an attempt that
// this node does not have; in_order() has already dropped those that are stale.
#include <csignal>

#include "noded/core/state.h"

#include "common/overloaded.h"

namespace gantry::node {

void Core::State::order(Instant now, Order&& order) {
  std::visit(
      Overloaded{
          [&](proto::NodeAccept& o) { accept(now, std::move(o)); },
          [&](proto::RegisterAgain& o) {
            if (!newest_epoch(now, o.epoch)) return;
            if (registered()) ask(now);  // otherwise a registration is under way already
          },
          [&](proto::HeartbeatAck& o) {
            if (in_session(now, o.stamp)) contact(o.heard);
          },
          [&](proto::Launch& o) {
            if (in_order(now, o.stamp)) launch(now, std::move(o));
          },
          [&](proto::Go& o) {
            if (in_order(now, o.stamp)) go(now, o.key);
          },
          [&](proto::Terminate& o) {
            if (in_order(now, o.stamp)) terminate(now, o);
          },
          [&](proto::SignalAttempt& o) {
            if (in_order(now, o.stamp)) signal(o);
          },
          [&](proto::TellAttempt& o) {
            if (in_order(now, o.stamp)) tell(std::move(o));
          },
          [&](proto::ResumeGpu& o) {
            if (in_order(now, o.stamp)) turn.actions.emplace_back(RepairGpu{std::move(o.uuid)});
          },
          [&](proto::AckExit& o) {
            if (in_order(now, o.stamp)) acknowledged(o.key);
          },
          [&](proto::Freeze& o) {
            if (in_order(now, o.stamp)) freeze(o);
          },
          [&](proto::LimitStep& o) {
            if (in_order(now, o.stamp)) limit_step(o);
          },
          [&](proto::ProbeAttempt& o) { turn.actions.emplace_back(ProbeNetwork{std::move(o)}); },
          [&](proto::IdentityTokens& o) { write_tokens(std::move(o)); },
          [&](proto::FetchLog& o) { turn.actions.emplace_back(ReadFile{std::move(o)}); },
      },
      order);
}

void Core::State::launch(Instant now, proto::Launch&& launch) {
  const AttemptKey key = launch.key;
  memory.highest_job = std::max(memory.highest_job, key.job);
  const auto known = attempts.find(key);
  if (known != attempts.end()) {  // the order was repeated because our answer was lost
    report_status(now, *known);
    return;
  }
  if (attempts.size() >= kMaxAttempts) {
    proto::ExitReport report;
    report.key = key;
    report.cause = proto::ExitCause::launch_failed;
    report.message = facts.node + " has too many attempts that are not acknowledged";
    report.ended = now;
    turn.messages.emplace_back(std::move(report));
    return;
  }
  attempts.emplace(key, OneAttempt{});
  turn.actions.emplace_back(Begin{std::move(launch)});
}

void Core::State::go(Instant now, const AttemptKey& key) {
  const auto it = attempts.find(key);
  if (it == attempts.end()) {
    ++counters.no_effect;
    return;
  }
  OneAttempt& attempt = it->second;
  if (attempt.stage == Stage::running) {  // the order was repeated because Started was lost
    report_status(now, *it);
    return;
  }
  if (!move(attempt, Trigger::go)) return;
  turn.actions.emplace_back(Release{key});
}

void Core::State::terminate(Instant now, const proto::Terminate& order) {
  const auto it = attempts.find(order.key);
  if (it == attempts.end()) {
    report_unknown(now, order.key);
    return;
  }
  if (it->second.stage == Stage::ended) {
    report_exit(now, *it);
    return;
  }
  end_now(now, *it, Ending{}, std::max(order.grace, Duration{}), order.notice);
}

void Core::State::signal(const proto::SignalAttempt& order) {
  const auto it = attempts.find(order.key);
  const bool runs = it != attempts.end() &&
                    (it->second.stage == Stage::running || it->second.stage == Stage::ending);
  if (!runs) {
    ++counters.no_effect;
    return;
  }
  turn.actions.emplace_back(Signal{order.key, order.signal, order.scope, order.step});
}

void Core::State::limit_step(const proto::LimitStep& order) {
  const auto it = attempts.find(order.key);
  if (it == attempts.end() || it->second.stage != Stage::running) {
    ++counters.no_effect;
    return;
  }
  turn.actions.emplace_back(SetStepLimit{order.key, order.step, order.time_limit});
}

// An attempt that is being ended is never stopped: it must run so that it can end.
void Core::State::freeze(const proto::Freeze& order) {
  const auto it = attempts.find(order.key);
  if (it == attempts.end() || it->second.stage != Stage::running) {
    ++counters.no_effect;
    return;
  }
  it->second.frozen = order.frozen;
  turn.actions.emplace_back(SetFrozen{order.key, order.frozen});
  turn.messages.emplace_back(proto::Frozen{order.key, order.frozen});
}

void Core::State::tell(proto::TellAttempt&& order) {
  const auto it = attempts.find(order.key);
  if (it == attempts.end() || it->second.stage != Stage::running) {
    ++counters.no_effect;
    return;
  }
  turn.actions.emplace_back(Notice{order.key, std::move(order.text)});
}

void Core::State::write_tokens(proto::IdentityTokens&& answer) {
  if (!has_tokens(answer.key)) {
    ++counters.no_effect;
    return;
  }
  turn.actions.emplace_back(WriteTokens{std::move(answer)});
}

// Somebody who ends needs no new tokens.
bool Core::State::has_tokens(const AttemptKey& key) const {
  const auto it = attempts.find(key);
  return it != attempts.end() && it->second.stage != Stage::ending &&
         it->second.stage != Stage::ended;
}

void Core::State::acknowledged(const AttemptKey& key) {
  const auto it = attempts.find(key);
  if (it == attempts.end()) return;
  if (it->second.stage != Stage::ended) {
    ++counters.no_effect;
    return;
  }
  arm(*it, std::nullopt);
  attempts.erase(it);
  turn.actions.emplace_back(Forget{key});
}

}  // namespace gantry::node
