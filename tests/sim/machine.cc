// See machine.h.
#include "tests/sim/machine.h"

#include <csignal>

#include <fmt/core.h>

#include "common/proto/attempt.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "tests/sim/gpus.h"

namespace gantry::sim {

using proto::ExitCause;

Machine::Machine(Queue& queue, Random& random, Truth& truth, const Settings& settings,
                 const NodeConfig& config, Duration clock_offset)
    : queue_(queue),
      random_(random),
      truth_(truth),
      settings_(settings),
      config_(config),
      clock_offset_(clock_offset) {
  if (settings.gpus) gpus_ = draw_inventory(random, config);
}

void Machine::later(const Attempt& attempt, Duration delay, std::function<void(Attempt&)> call) {
  queue_.after(delay,
               [this, key = attempt.launch.key, serial = attempt.serial, call = std::move(call)] {
                 when_awake([this, key, serial, call] {
                   const auto it = attempts_.find(key);
                   if (it != attempts_.end() && it->second.serial == serial) call(it->second);
                 });
               });
}

void Machine::when_awake(std::function<void()> call) {
  if (!sleeps()) return call();
  queue_.at(awake_from_, [this, call = std::move(call)] { when_awake(call); });
}

void Machine::fall_asleep(Duration length, bool clock_stops) {
  if (sleeps()) return;
  awake_from_ = queue_.now() + length;
  slept_ = slept_ + length;
  clock_stops_ = clock_stops;
  if (!clock_stops) return;
  clock_offset_ = clock_offset_ - length;
  truth_.clock_stops(config_.name, length);
}

// Wakes the machine up before its time.
void Machine::wake_up() {
  if (!sleeps()) return;
  const Duration rest = awake_from_ - queue_.now();
  slept_ = slept_ - rest;
  if (clock_stops_) {
    clock_offset_ = clock_offset_ + rest;
    truth_.clock_stops(config_.name, Duration{} - rest);
  }
  awake_from_ = queue_.now();
}

std::vector<proto::AttemptSleep> Machine::asleep() const {
  std::vector<proto::AttemptSleep> out;
  if (clock_stops_) return out;  // the machine does not know that it slept
  for (const auto& [key, attempt] : attempts_) {
    if (attempt.stage != Stage::running) continue;
    const Duration slept = clock() - *attempt.started - (awake() - attempt.awake_before);
    if (slept > Duration{}) out.push_back({key, slept});
  }
  return out;
}

void Machine::enter(Attempt& attempt, Stage stage) {
  attempt.stage = stage;
  attempt.serial = next_serial_++;
}

// The driver tells the daemon, or the next daemon finds the fault.
bool Machine::break_gpu() {
  if (!sim::break_gpu(random_, gpus_, clock())) return false;
  tell(node::GpusChanged{gpus_});
  return true;
}

bool Machine::repair_gpus() {
  if (!sim::repair_gpus(gpus_)) return false;
  tell(node::GpusChanged{gpus_});
  return true;
}

void Machine::tell(node::Input event) {
  if (!daemon_) return;
  told_.push_back(std::move(event));
  if (on_event) on_event();
}

Usage Machine::usage(const Attempt& attempt) {
  Usage u;
  if (!attempt.started) return u;
  u.cpu_user_us = (awake() - attempt.awake_before).us;
  u.cpu_system_us = random_.between(0, 1'000'000);
  u.memory_peak_bytes = random_.between(1 << 20, 1 << 30);
  u.io_read_bytes = random_.between(0, 1 << 20);
  return u;
}

void Machine::begin(proto::Launch&& launch, std::vector<node::Input>& events) {
  const AttemptKey key = launch.key;
  if (random_.chance(settings_.failing_start / 2)) {
    events.emplace_back(node::BeginFailed{key, fmt::format("{}: no space for it", config_.name)});
    return;
  }
  Attempt& attempt = attempts_[key];
  attempt.launch = std::move(launch);
  enter(attempt, Stage::recorded);
  spawn_soon(key);
}

// The shim is another process: the daemon may die before the shim exists.
void Machine::spawn_soon(const AttemptKey& key) {
  later(attempts_.at(key), random_.between(microseconds(0), milliseconds(5)),
        [this](Attempt& a) { spawn(a); });
}

void Machine::spawn(Attempt& attempt) {
  truth_.begins(config_, gpus_, attempt.launch);
  enter(attempt, Stage::preparing);
  const Duration takes = random_.chance(settings_.slow_start)
                             ? random_.between(seconds(20), seconds(200))
                             : random_.spread(seconds(2));
  later(attempt, takes, [this](Attempt& a) { prepared(a); });
}

void Machine::prepared(Attempt& attempt) {
  if (random_.chance(settings_.failing_start))
    return end(attempt, ExitCause::launch_failed, {}, config_.name + ": no such image");
  if (settings_.refused_start > 0 && random_.chance(settings_.refused_start))
    return end(attempt, ExitCause::refused, {}, "there is no directory /home/sim/none");
  if (!attempt.launch.hold) return run(attempt);
  enter(attempt, Stage::held);
  tell(node::Held{attempt.launch.key});
}

void Machine::run(Attempt& attempt) {
  if (fence_at_ && *fence_at_ <= clock()) return end(attempt, ExitCause::fenced, {0, SIGKILL}, {});
  enter(attempt, Stage::running);
  attempt.started = clock();
  attempt.awake_before = awake();
  truth_.user_code_starts(config_.name, attempt.launch);
  tell(node::Running{attempt.launch.key, clock()});
  on_user_code();
  if (!attempt.launch.runs_batch) return;  // this job holds the node until it is told to end
  const auto how = random_.below(100);
  ExitStatus status;
  ExitCause cause = ExitCause::exited;
  if (how < 6) cause = ExitCause::out_of_memory;
  if (how < 12)
    status.signal = how < 6 ? SIGKILL : SIGSEGV;
  else if (how < 30)
    status.code = static_cast<std::int32_t>(random_.between(1, 255));
  later(attempt, random_.spread(minutes(12), 12),
        [this, cause, status](Attempt& a) { end(a, cause, status, {}); });
}

void Machine::signal(Attempt& attempt, int number) {
  if (attempt.stage != Stage::running) return;
  if (number == SIGKILL) return kill(attempt);
  if (number == SIGCONT) return;
  if (!random_.chance(number == SIGTERM ? 800 : 200)) return;  // the job handles this signal itself
  later(attempt, random_.spread(seconds(8)), [this, number](Attempt& a) {
    end(a, ExitCause::exited, {0, number}, {});
  });
}

// SIGKILL cannot be withdrawn: it ends the attempt in whatever stage it is by then.
void Machine::kill(Attempt& attempt) {
  if (attempt.stage == Stage::ended) return;
  if (attempt.stage == Stage::recorded) return end(attempt, ExitCause::exited, {0, SIGKILL}, {});
  const Duration takes = random_.chance(50) ? random_.between(seconds(1), seconds(12))
                                            : random_.between(microseconds(100), milliseconds(50));
  if (attempt.stage == Stage::without_shim) return;  // it is being ended already
  if (attempt.stage == Stage::running) truth_.kills(config_.name, attempt.launch.key);
  queue_.after(takes, [this, key = attempt.launch.key, boot = boots_] {
    when_awake([this, key, boot] {
      const auto it = attempts_.find(key);
      if (boot != boots_ || it == attempts_.end()) return;
      if (it->second.stage != Stage::ended && it->second.stage != Stage::without_shim)
        end(it->second, ExitCause::exited, {0, SIGKILL}, {});
    });
  });
}

void Machine::end(Attempt& attempt, ExitCause cause, ExitStatus status, std::string message) {
  attempt.exit.cause = cause;
  attempt.exit.status = status;
  attempt.exit.message = std::move(message);
  attempt.exit.usage = usage(attempt);
  attempt.exit.started = attempt.started;
  attempt.exit.ended = clock();
  if (attempt.started && cause != ExitCause::node_rebooted)
    attempt.exit.ran = awake() - attempt.awake_before;
  enter(attempt, Stage::ended);
  truth_.gone(config_.name, attempt.launch.key);
  truth_.exit_recorded(config_.name, attempt.launch.key, attempt.exit, slept_);
  tell(node::Ended{attempt.launch.key, attempt.exit});
}

void Machine::fence_at(std::optional<Instant> at) {
  fence_at_ = at;
  if (!at || watched_) return;
  watched_ = true;
  queue_.after(*at - clock(), [this] {
    watched_ = false;
    when_awake([this] { fence(); });
  });
}

void Machine::fence() {
  if (!fence_at_) return;
  if (clock() < *fence_at_) return fence_at(fence_at_);
  for (auto& [key, attempt] : attempts_)
    if (attempt.stage != Stage::recorded && attempt.stage != Stage::without_shim &&
        attempt.stage != Stage::ended)
      end(attempt, ExitCause::fenced, {0, SIGKILL}, config_.name + ": no contact");
}

void Machine::act(Instant, node::Action&& action, std::vector<node::Input>& events) {
  if (auto* begin_it = std::get_if<node::Begin>(&action))
    return begin(std::move(begin_it->launch), events);
  const auto attempt_of = [&](const AttemptKey& key) -> Attempt* {
    const auto it = attempts_.find(key);
    return it == attempts_.end() ? nullptr : &it->second;
  };
  if (const auto* a = std::get_if<node::Resume>(&action)) {
    if (attempt_of(a->key) != nullptr) spawn_soon(a->key);
  } else if (const auto* a = std::get_if<node::Release>(&action)) {
    Attempt* attempt = attempt_of(a->key);
    if (attempt == nullptr || attempt->stage != Stage::held) return;
    enter(*attempt, Stage::starting);
    later(*attempt, random_.between(microseconds(0), milliseconds(20)),
          [this](Attempt& x) { run(x); });
  } else if (const auto* a = std::get_if<node::Signal>(&action)) {
    if (Attempt* attempt = attempt_of(a->key)) signal(*attempt, a->signal);
  } else if (const auto* a = std::get_if<node::Kill>(&action)) {
    if (Attempt* attempt = attempt_of(a->key)) kill(*attempt);
  } else if (const auto* a = std::get_if<node::Forget>(&action)) {
    // A launch that was only written down, by a daemon that died, has no shim that could write
    // more.
    const Attempt* attempt = attempt_of(a->key);
    if (attempt != nullptr && (attempt->stage == Stage::ended || attempt->stage == Stage::recorded))
      attempts_.erase(a->key);
  }
}

void Machine::poll(Instant, std::vector<node::Input>& events) {
  for (node::Input& event : told_) events.push_back(std::move(event));
  told_.clear();
}

std::vector<node::Recovered> Machine::recover() {
  using RecoveredStage = node::Recovered::Stage;
  std::vector<node::Recovered> out;
  daemon_ = false;  // events found here go into the list, and are not reported separately
  for (auto& [key, attempt] : attempts_) {
    if (rebooted_ && attempt.stage != Stage::ended)
      end(attempt, ExitCause::node_rebooted, {}, "node " + config_.name + " was rebooted");
    if (attempt.stage == Stage::without_shim)
      end(attempt, ExitCause::shim_lost, {}, config_.name + ": its shim was killed");
    node::Recovered r;
    r.key = key;
    r.started = attempt.started;
    switch (attempt.stage) {
      case Stage::recorded: r.stage = RecoveredStage::never_started; break;
      case Stage::preparing:
      case Stage::starting: r.stage = RecoveredStage::preparing; break;
      case Stage::held: r.stage = RecoveredStage::held; break;
      case Stage::running: r.stage = RecoveredStage::running; break;
      case Stage::without_shim:
      case Stage::ended: r.stage = RecoveredStage::ended; break;
    }
    r.exit = attempt.exit;
    out.push_back(std::move(r));
  }
  rebooted_ = false;
  daemon_ = true;
  return out;
}

void Machine::daemon_died() {
  daemon_ = false;
  told_.clear();
  for (auto& [key, attempt] : attempts_)
    if (attempt.stage == Stage::recorded || attempt.stage == Stage::without_shim)
      enter(attempt, attempt.stage);  // whatever was planned for the attempt is void
}

void Machine::power_off() {
  wake_up();
  daemon_died();
  fence_at_.reset();
  rebooted_ = true;
  ++boots_;
  for (auto it = attempts_.begin(); it != attempts_.end();) {
    Attempt& attempt = it->second;
    if (attempt.stage == Stage::ended) {  // its record is durable
      ++it;
      continue;
    }
    truth_.gone(config_.name, it->first);
    enter(attempt, attempt.stage);
    // the record may not have reached the disk
    it = random_.chance(300) ? attempts_.erase(it) : std::next(it);
  }
}

bool Machine::kill_a_shim() {
  std::vector<Attempt*> live;
  for (auto& [key, attempt] : attempts_)
    if (attempt.stage != Stage::recorded && attempt.stage != Stage::without_shim &&
        attempt.stage != Stage::ended)
      live.push_back(&attempt);
  if (live.empty()) return false;
  Attempt& attempt = *random_.pick(live);
  enter(attempt, Stage::without_shim);
  queue_.after(random_.between(milliseconds(1), milliseconds(100)), [this, key = attempt.launch.key,
                                                                     boot = boots_] {
    const auto it = attempts_.find(key);
    if (boot == boots_ && it != attempts_.end() && it->second.stage == Stage::without_shim)
      truth_.gone(config_.name, key);
  });
  if (daemon_)
    later(attempt, random_.between(milliseconds(1), milliseconds(500)), [this](Attempt& a) {
      end(a, ExitCause::shim_lost, {}, config_.name + ": its shim was killed");
    });
  return true;
}

}  // namespace gantry::sim
