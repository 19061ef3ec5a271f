// The life of an attempt after its order: events of the runtime, how the attempt is ended, and the
// report of its exit, which is repeated with growing pauses until the controller has acknowledged
// it.
#include <csignal>

#include "common/overloaded.h"
#include "noded/core/state.h"

namespace gantry::node {

namespace {
// The exit of an attempt that never ran.
Exit nothing_ran(Instant now, proto::ExitCause cause, std::string message) {
  Exit exit;
  exit.cause = cause;
  exit.message = std::move(message);
  exit.ended = now;
  return exit;
}

// Whether the attempt ended because of the order. It did not if it was over before the order came:
// a daemon that was stopped for a while may learn of the two in either order. Two comparisons must
// both show that it was over before: one of wall clock times, and one of run times. The wall clock
// may have been set since, and a run time does not count the time for which the machine slept. The
// run time also gets a margin, because this daemon's own clock may be up to 5 % too fast or slow
// while it follows a clock that was set (common/loop/clock.h).
bool is_ended_by(const OneAttempt& attempt, const Exit& exit) {
  const Ending& ending = *attempt.ending;
  if (ending.cause == proto::ExitCause::fenced || exit.ended >= ending.since) return true;
  if (!exit.ran || !attempt.start_heard) return true;
  const Duration known{exit.ran->us + exit.ran->us / 10};
  return known + seconds(1) >= ending.since - *attempt.start_heard;
}

}  // namespace

bool Core::State::move(OneAttempt& attempt, Trigger trigger) {
  const auto to = next_stage(attempt.stage, trigger);
  if (!to) {
    ++counters.no_effect;
    return false;
  }
  attempt.stage = *to;
  return true;
}

// Sends SIGCONT and SIGTERM now, and SIGKILL after `grace`. A repeated order can only bring the
// SIGKILL forward.
void Core::State::end_now(Instant now, Entry& entry, Ending ending, Duration grace,
                          std::string notice) {
  auto& [key, attempt] = entry;
  ending.kill_at = now + grace;
  ending.since = now;
  if (attempt.stage == Stage::waiting) {  // nothing of the attempt runs, and nothing will
    attempt.ending = std::move(ending);
    if (move(attempt, Trigger::drop))
      settle(now, entry, nothing_ran(now, proto::ExitCause::ordered, {}));
    return;
  }
  const bool first = attempt.stage != Stage::ending;
  if (!move(attempt, Trigger::terminate)) return;
  if (first) {
    attempt.ending = std::move(ending);
    if (!notice.empty()) turn.actions.emplace_back(Notice{key, std::move(notice)});
  } else {
    if (ending.cause == proto::ExitCause::fenced) attempt.ending->cause = ending.cause;
    if (ending.kill_at >= attempt.ending->kill_at) return;
    attempt.ending->kill_at = ending.kill_at;
  }
  if (std::exchange(attempt.frozen, false)) turn.actions.emplace_back(SetFrozen{key, false});
  if (grace <= Duration{}) {
    turn.actions.emplace_back(Kill{key});
    arm(entry, now + kKillAgain);
    return;
  }
  if (first) {
    turn.actions.emplace_back(Signal{key, SIGCONT, proto::SignalScope::full, {}});
    turn.actions.emplace_back(Signal{key, SIGTERM, proto::SignalScope::full, {}});
  }
  arm(entry, attempt.ending->kill_at);
}

void Core::State::held(Instant now, const AttemptKey& key) {
  const auto it = attempts.find(key);
  if (it == attempts.end() || !move(it->second, Trigger::held)) return;
  if (it->second.stage == Stage::ending) {
    turn.actions.emplace_back(Kill{key});  // no user process runs yet, so no grace time is needed
    return;
  }
  report_status(now, *it);
}

void Core::State::running(Instant now, const Running& event) {
  const auto it = attempts.find(event.key);
  if (it == attempts.end()) return;
  OneAttempt& attempt = it->second;
  if (!move(attempt, Trigger::running)) return;
  attempt.started = std::min(event.at, now);
  attempt.start_heard = now;
  if (attempt.stage == Stage::ending) {  // the signal may have come before there was a process
    turn.actions.emplace_back(
        now >= attempt.ending->kill_at
            ? Action{Kill{event.key}}
            : Action{Signal{event.key, SIGTERM, proto::SignalScope::full, {}}});
    return;
  }
  report_status(now, *it);
}

void Core::State::ended(Instant now, const AttemptKey& key, Exit exit) {
  const auto it = attempts.find(key);
  if (it == attempts.end() || !move(it->second, Trigger::ended)) return;
  settle(now, *it, std::move(exit));
}

void Core::State::begin_failed(Instant now, const BeginFailed& event) {
  ended(now, event.key, nothing_ran(now, proto::ExitCause::launch_failed, event.message));
}

// The reported cause is that of the order; the text of the exit record is added to the message.
void Core::State::settle(Instant now, Entry& entry, Exit exit) {
  auto& [key, attempt] = entry;
  if (attempt.ending && is_ended_by(attempt, exit)) {
    exit.cause = attempt.ending->cause;
    if (exit.message.empty())
      exit.message = attempt.ending->why;
    else if (!attempt.ending->why.empty())
      exit.message = attempt.ending->why + "; " + exit.message;
  }
  if (!exit.started) exit.started = attempt.started;
  if (exit.started) exit.started = std::min(*exit.started, now);
  exit.ended = std::min(exit.ended, now);
  if (exit.ran) exit.ran = std::max(*exit.ran, Duration{});
  attempt.exit = std::move(exit);
  attempt.backoff = kResendFirst;
  arm(entry, std::nullopt);
  report_exit(now, entry);
}

void Core::State::report_status(Instant now, Entry& entry) {
  auto& [key, attempt] = entry;
  if (attempt.stage == Stage::ended) {
    report_exit(now, entry);
    return;
  }
  if (!registered()) return;  // otherwise the next registration reports it
  if (attempt.stage == Stage::held) turn.messages.emplace_back(proto::LaunchReady{key});
  if (attempt.stage == Stage::running)
    turn.messages.emplace_back(proto::Started{key, attempt.started.value_or(now)});
  if (attempt.frozen) turn.messages.emplace_back(proto::Frozen{key, true});
}

void Core::State::report_exit(Instant now, Entry& entry) {
  auto& [key, attempt] = entry;
  if (!registered()) return;  // accept() sends all exits after the registration
  proto::ExitReport report;
  report.key = key;
  report.cause = attempt.exit.cause;
  report.exit = attempt.exit.status;
  report.message = attempt.exit.message;
  report.usage = attempt.exit.usage;
  report.started = attempt.exit.started;
  report.ended = attempt.exit.ended;
  report.ran = attempt.exit.ran;
  turn.messages.emplace_back(std::move(report));
  arm(entry, now + attempt.backoff);
  attempt.backoff = std::min(attempt.backoff * 2, kResendMost);
}

// The controller wants to close an attempt that this node does not have. The node may report its
// end: an older order to start it that is still on its way will be dropped because of its sequence
// number.
void Core::State::report_unknown(Instant now, const AttemptKey& key) {
  report_not_run(now, key, proto::ExitCause::ordered, " never got this attempt");
}

void Core::State::report_not_run(Instant now, const AttemptKey& key, proto::ExitCause cause,
                                 const char* why) {
  proto::ExitReport report;
  report.key = key;
  report.cause = cause;
  report.message = facts.node + why;
  report.ended = now;
  turn.messages.emplace_back(std::move(report));
}

void Core::State::arm(Entry& entry, std::optional<Instant> due) {
  if (entry.second.due) timers.erase({*entry.second.due, entry.first});
  entry.second.due = due;
  if (due) timers.insert({*due, entry.first});
}

void Core::State::attempt_timers(Instant now) {
  for (int n = 0; n < kTimersPerTurn && !timers.empty() && timers.begin()->first <= now; ++n) {
    const AttemptKey key = timers.begin()->second;
    const auto it = attempts.find(key);
    GANTRY_ASSERT(it != attempts.end(), "a timer belongs to an attempt");
    if (it->second.stage == Stage::ended) {
      arm(*it, std::nullopt);
      report_exit(now, *it);
    } else {
      turn.actions.emplace_back(Kill{key});
      arm(*it, now + kKillAgain);
    }
  }
}

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
  if (known != attempts.end()) {  // the order was repeated because the answer was lost
    report_status(now, *known);
    return;
  }
  if (attempts.size() >= kMaxAttempts)
    return report_not_run(now, key, proto::ExitCause::launch_failed,
                          " has too many attempts that are not acknowledged");
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
  if (attempt.stage ==
      Stage::running) {  // the order was repeated because the Started report was lost
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

// An attempt that is ending needs no new tokens.
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
