// The state of the node core, and the functions that change it; included only by noded/core/*.cc.
//
//   core.cc      start, dispatch, the end of a turn; registration, stamps, heartbeats, fencing
//   attempts.cc  orders about attempts, events of the runtime, ending, exit reports, timers
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/assert.h"
#include "common/proto/node_report.h"
#include "noded/core/core.h"

namespace gantry::node {

// The state machine of an attempt on a node, as one table: stage and trigger give the next stage. A
// pair that is absent from the table has no effect and is counted; it is no bug, because a repeated
// order or a late event can cause it.
//
//   waiting     found on disk after a restart, proved never to have started; waits for the
//               controller
//   preparing   Begin or Resume issued, nothing heard yet
//   held        ready, waits for Go
//   starting    Release issued
//   running     user code may run
//   ending      ordered to end: signals sent, SIGKILL when its grace is over
//   ended       nothing runs; the exit is reported until acknowledged
enum class Stage : std::uint8_t { waiting, preparing, held, starting, running, ending, ended };
constexpr auto enum_names(Stage) {
  using enum Stage;
  return std::array<std::pair<Stage, std::string_view>, 7>{{{waiting, "waiting"},
                                                            {preparing, "preparing"},
                                                            {held, "held"},
                                                            {starting, "starting"},
                                                            {running, "running"},
                                                            {ending, "ending"},
                                                            {ended, "ended"}}};
}

enum class Trigger : std::uint8_t { resume, held, go, running, terminate, drop, ended };
constexpr auto enum_names(Trigger) {
  using enum Trigger;
  return std::array<std::pair<Trigger, std::string_view>, 7>{
      {{resume, "resume"},        // the controller wants to keep a recovered attempt
       {held, "held"},            // the runtime has prepared it
       {go, "go"},                // order Go
       {running, "running"},      // the runtime says that it runs
       {terminate, "terminate"},  // order Terminate, kill at registration, or fencing
       {drop, "drop"},            // like terminate, for an attempt that never started
       {ended, "ended"}}};        // the runtime reports that nothing of it runs
}

struct Move {
  Stage from;
  Trigger trigger;
  Stage to;
};

inline constexpr std::array kMoves{
    Move{Stage::waiting, Trigger::resume, Stage::preparing},
    Move{Stage::waiting, Trigger::drop, Stage::ended},
    Move{Stage::preparing, Trigger::held, Stage::held},
    Move{Stage::preparing, Trigger::running, Stage::running},
    Move{Stage::preparing, Trigger::terminate, Stage::ending},
    Move{Stage::preparing, Trigger::ended, Stage::ended},
    Move{Stage::held, Trigger::go, Stage::starting},
    Move{Stage::held, Trigger::terminate, Stage::ending},
    Move{Stage::held, Trigger::ended, Stage::ended},
    Move{Stage::starting, Trigger::running, Stage::running},
    Move{Stage::starting, Trigger::terminate, Stage::ending},
    Move{Stage::starting, Trigger::ended, Stage::ended},
    Move{Stage::running, Trigger::terminate, Stage::ending},
    Move{Stage::running, Trigger::ended, Stage::ended},
    Move{Stage::ending, Trigger::held, Stage::ending},
    Move{Stage::ending, Trigger::running, Stage::ending},
    Move{Stage::ending, Trigger::terminate, Stage::ending},
    Move{Stage::ending, Trigger::ended, Stage::ended},
};

constexpr std::optional<Stage> next_stage(Stage from, Trigger trigger) {
  for (const auto& move : kMoves)
    if (move.from == from && move.trigger == trigger) return move.to;
  return std::nullopt;
}

// The phase that a registration reports to the controller for this stage.
constexpr proto::AttemptPhase phase_of(Stage stage) {
  switch (stage) {
    case Stage::waiting:
    case Stage::preparing:
    case Stage::starting: return proto::AttemptPhase::preparing;
    case Stage::held: return proto::AttemptPhase::held;
    case Stage::running: return proto::AttemptPhase::running;
    case Stage::ending: return proto::AttemptPhase::finishing;
    case Stage::ended: return proto::AttemptPhase::exited;
  }
  return proto::AttemptPhase::exited;
}

inline constexpr Duration kRegisterFirst = milliseconds(250);  // wait before registering again
inline constexpr Duration kRegisterMost = seconds(15);         // longer than any answer takes
// After this many unanswered heartbeats the node registers again.
inline constexpr int kSilentBeats = 3;
// The first pause before an exit report is sent again.
inline constexpr Duration kResendFirst = seconds(1);
inline constexpr Duration kResendMost = seconds(30);
// The pause before SIGKILL is repeated for processes that it did not end.
inline constexpr Duration kKillAgain = seconds(10);
// Limit of attempts on one node, including those whose exit is not acknowledged.
inline constexpr std::size_t kMaxAttempts = 100'000;
inline constexpr int kTimersPerTurn = 1000;

struct Ending {  // how and when an ordered end continues
  proto::ExitCause cause = proto::ExitCause::ordered;
  Instant kill_at{};
  std::string why;  // the reason for the report; "" = none
  Instant since{};
};

struct OneAttempt {
  Stage stage = Stage::preparing;
  std::optional<Instant> started;
  std::optional<Instant>
      start_heard;  // when this daemon learned of the start; unset after a restart
  std::optional<Ending> ending;
  Exit exit;                   // stage ended
  bool frozen = false;         // stopped by order; nothing of it runs until an order continues it
  std::optional<Instant> due;  // when its timer fires: for SIGKILL, or for the next report
  Duration backoff = kResendFirst;
};

inline constexpr std::uint32_t kTellGpus = 3;

struct Link {
  enum class Phase : std::uint8_t { down, registering, registered } phase = Phase::down;
  // While registering
  Instant asked{};  // `sent` of the last NodeRegister; NodeAccept must carry it back
  Instant ask_again{};
  Duration backoff = kRegisterFirst;
  // While registered
  std::uint64_t session = 0;
  std::uint64_t last_seq = 0;
  Duration heartbeat = seconds(5);
  Instant next_beat{};
  Instant last_word{};  // when the last message of the session came
  // The GPUs are sent this many more times, now and with heartbeats, because one message may be
  // lost.
  std::uint32_t tell_gpus = 0;
};

struct Core::State {
  proto::NodeRegister facts;
  Memory memory;
  JobId kept_job{};  // highest job id that is on disk; 0 = a write has failed
  Link link;
  bool stopped = false;
  std::map<AttemptKey, OneAttempt> attempts;
  std::set<std::pair<Instant, AttemptKey>> timers;
  Counters counters;
  Turn turn;

  using Entry = std::map<AttemptKey, OneAttempt>::value_type;

  // core.cc
  void link_up(Instant now);
  void link_down();
  void ask(Instant now);  // sends NodeRegister
  bool newest_epoch(Instant now,
                    Epoch epoch);  // returns false if the epoch is too old and was refused
  bool in_order(Instant now, const proto::OrderStamp& stamp);
  bool in_session(Instant now, const proto::OrderStamp& stamp);
  void accept(Instant now, proto::NodeAccept&& order);
  void contact(Instant heard);
  void remember();      // saves the epoch and the fence
  void remember_job();  // saves the highest job id if it is not durable yet
  void link_timers(Instant now);
  void tell_gpus();
  void fence(Instant now);
  [[nodiscard]] std::optional<Instant> fence_at() const;
  [[nodiscard]] std::optional<Instant> link_wake() const;
  [[nodiscard]] bool registered() const { return link.phase == Link::Phase::registered; }

  // attempts.cc
  void order(Instant now, Order&& order);
  void launch(Instant now, proto::Launch&& launch);
  void go(Instant now, const AttemptKey& key);
  void terminate(Instant now, const proto::Terminate& order);
  void signal(const proto::SignalAttempt& order);
  void limit_step(const proto::LimitStep& order);
  void tell(proto::TellAttempt&& order);
  void freeze(const proto::Freeze& order);
  void write_tokens(proto::IdentityTokens&& answer);
  [[nodiscard]] bool has_tokens(const AttemptKey& key) const;
  void acknowledged(const AttemptKey& key);

  // attempts.cc Returns false if the table has no such move, which is then counted.
  bool move(OneAttempt& attempt, Trigger trigger);
  void end_now(Instant now, Entry& entry, Ending ending, Duration grace, std::string notice);
  void held(Instant now, const AttemptKey& key);
  void running(Instant now, const Running& event);
  void ended(Instant now, const AttemptKey& key, Exit exit);
  void begin_failed(Instant now, const BeginFailed& event);
  void settle(Instant now, Entry& entry, Exit exit);  // the stage is `ended` now: report the exit
  void report_status(Instant now, Entry& entry);
  void report_exit(Instant now, Entry& entry);
  void report_unknown(Instant now, const AttemptKey& key);
  void report_not_run(Instant now, const AttemptKey& key, proto::ExitCause cause, const char* why);
  void arm(Entry& entry, std::optional<Instant> due);
  void attempt_timers(Instant now);
};

}  // namespace gantry::node
