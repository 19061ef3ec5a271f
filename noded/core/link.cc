// The link to the controller: registration, sessions, stamps, heartbeats and fencing.
//
// A NodeRegister lists every attempt that this node has, and so promises that there are no others.
// From that moment the node takes no order of an earlier session, and only the NodeAccept that
// answers this very registration (it carries `sent` back) opens the next session.
#include "noded/core/state.h"

namespace gantry::node {

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
  // No two registrations carry the same time, so that the node can tell their answers apart.
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
    // A session belongs to one controller: with a new controller there is none until it has
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

  for (auto& entry : attempts)  // the timers send the exit reports, a limited number in each turn
    if (entry.second.stage == Stage::ended) arm(entry, now);
  for (const auto& key : order.forget) {
    const auto it = attempts.find(key);
    if (it != attempts.end() && it->second.stage == Stage::ended)
      acknowledged(key);
    else if (it != attempts.end())
      order.kill.push_back(key);  // it has not ended here: end it, then report it
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

// The controller says that it heard what this node sent at `heard`. The controller counts the
// node's silence from there, and the node does the same.
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
    // The highest job id is saved once a heartbeat and not at each order, because each save costs a
    // sync of the disk. Jobs that are still here are known by their directories in any case.
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
