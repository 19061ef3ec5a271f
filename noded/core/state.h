// What the node core knows, and the functions that change it; included only by noded/core/*.cc.
//
//   core.cc      start, dispatch, the end of a turn
//   link.cc      registration, stamps, heartbeats, fencing
//   orders.cc    orders about attempts
//   attempts.cc  events of the runtime, ending, exit reports, timers
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/assert.h"
#include "noded/core/core.h"
#include "noded/core/stage.h"

namespace gantry::node {

inline constexpr Duration kRegisterFirst = milliseconds(250);  // wait before a second try
inline constexpr Duration kRegisterMost = seconds(15);         // longer than any answer takes
inline constexpr int kSilentBeats = 3;                // unanswered heartbeats, then register again
inline constexpr Duration kResendFirst = seconds(1);  // of an exit report
inline constexpr Duration kResendMost = seconds(30);
inline constexpr Duration kKillAgain = seconds(10);   // what a SIGKILL did not end
inline constexpr std::size_t kMaxAttempts = 100'000;  // on one node, unacknowledged ones included
inline constexpr int kTimersPerTurn = 1000;

struct Ending {  // ordered to end
  proto::ExitCause cause = proto::ExitCause::ordered;
  Instant kill_at{};
  std::string why;  // for the report; "" = none
  Instant since{};
};

struct OneAttempt {
  Stage stage = Stage::preparing;
  std::optional<Instant> started;
  std::optional<Instant> start_heard;  // by this daemon; not after its restart
  std::optional<Ending> ending;
  Exit exit;                   // stage ended
  bool frozen = false;         // by order; nothing of it runs until it is let go on
  std::optional<Instant> due;  // its timer: SIGKILL, or the next report
  Duration backoff = kResendFirst;
};

inline constexpr std::uint32_t kTellGpus = 3;

struct Link {
  enum class Phase : std::uint8_t { down, registering, registered } phase = Phase::down;
  // registering
  Instant asked{};  // `sent` of the last NodeRegister; NodeAccept must carry it back
  Instant ask_again{};
  Duration backoff = kRegisterFirst;
  // registered
  std::uint64_t session = 0;
  std::uint64_t last_seq = 0;
  Duration heartbeat = seconds(5);
  Instant next_beat{};
  Instant last_word{};          // when anything of the session last came
  std::uint32_t tell_gpus = 0;  // so often, now and with the next heartbeats: one may be lost
};

struct Core::State {
  proto::NodeRegister facts;
  Memory memory;
  JobId kept_job{};  // memory.highest_job as it is durable; 0 = a write has failed
  Link link;
  bool stopped = false;
  std::map<AttemptKey, OneAttempt> attempts;
  std::set<std::pair<Instant, AttemptKey>> timers;
  Counters counters;
  Turn turn;

  using Entry = std::map<AttemptKey, OneAttempt>::value_type;

  // link.cc
  void link_up(Instant now);
  void link_down();
  void ask(Instant now);                        // sends NodeRegister
  bool newest_epoch(Instant now, Epoch epoch);  // false: refused
  bool in_order(Instant now, const proto::OrderStamp& stamp);
  bool in_session(Instant now, const proto::OrderStamp& stamp);
  void accept(Instant now, proto::NodeAccept&& order);
  void contact(Instant heard);
  void remember();      // the epoch and the fence
  void remember_job();  // if it is not durable yet
  void link_timers(Instant now);
  void tell_gpus();
  void fence(Instant now);
  [[nodiscard]] std::optional<Instant> fence_at() const;
  [[nodiscard]] std::optional<Instant> link_wake() const;
  [[nodiscard]] bool registered() const { return link.phase == Link::Phase::registered; }

  // orders.cc
  void order(Instant now, Order&& order);
  void launch(Instant now, proto::Launch&& launch);
  void go(Instant now, const AttemptKey& key);
  void terminate(Instant now, const proto::Terminate& order);
  void signal(const proto::SignalAttempt& order);
  void tell(proto::TellAttempt&& order);
  void freeze(const proto::Freeze& order);
  void acknowledged(const AttemptKey& key);

  // attempts.cc
  bool move(OneAttempt& attempt, Trigger trigger);  // false: no effect, counted
  void end_now(Instant now, Entry& entry, Ending ending, Duration grace, std::string notice);
  void held(Instant now, const AttemptKey& key);
  void running(Instant now, const Running& event);
  void ended(Instant now, const AttemptKey& key, Exit exit);
  void begin_failed(Instant now, const BeginFailed& event);
  void settle(Instant now, Entry& entry, Exit exit);  // stage is ended: report
  void report_status(Instant now, Entry& entry);
  void report_exit(Instant now, Entry& entry);
  void report_unknown(Instant now, const AttemptKey& key);
  void arm(Entry& entry, std::optional<Instant> due);
  void attempt_timers(Instant now);
};

}  // namespace gantry::node
