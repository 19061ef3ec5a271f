// The hold of a job, the reason of a requeue, and the end of an attempt: parts of a job (job.h).
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "common/job/job_state.h"
#include "common/time/time.h"

namespace gantry::core {

enum class Hold : std::uint8_t {
  none = 0,
  user = 1,
  admin = 2,
  launch_failed = 3,
  special_exit = 4
};
constexpr auto enum_names(Hold) {
  using enum Hold;
  return std::array<std::pair<Hold, std::string_view>, 5>{{{none, "none"},
                                                           {user, "user"},
                                                           {admin, "admin"},
                                                           {launch_failed, "launch_failed"},
                                                           {special_exit, "special_exit"}}};
}

enum class RequeueWhy : std::uint8_t {
  asked = 1,
  node_failure = 2,
  launch_failure = 3,
  start_timeout = 4,
  preempted = 5,
  idle_gpus = 6
};
constexpr auto enum_names(RequeueWhy) {
  using enum RequeueWhy;
  return std::array<std::pair<RequeueWhy, std::string_view>, 6>{{{asked, "asked"},
                                                                 {node_failure, "node_failure"},
                                                                 {launch_failure, "launch_failure"},
                                                                 {start_timeout, "start_timeout"},
                                                                 {preempted, "preempted"},
                                                                 {idle_gpus, "idle_gpus"}}};
}

// How a finishing job goes on when its last node has let go.
struct Finish {
  Instant since{};
  Outcome outcome = Outcome::completed;
  std::optional<ExitStatus> exit;     // unset: the exit status of the batch node
  std::optional<RequeueWhy> requeue;  // set: the job goes back to the queue instead of ending
  std::optional<Hold> hold;           // only with `requeue`
  std::optional<Duration> grace;      // time from signal to kill; unset: the controller's kill_wait
  bool for_own = false;               // preempted for a job of its own tenant
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "since", s.since);
    v(2, "outcome", s.outcome);
    v(3, "exit", s.exit);
    v(4, "requeue", s.requeue);
    v(5, "hold", s.hold);
    v(6, "grace", s.grace);
    v(7, "for_own", s.for_own);
  }
};

}  // namespace gantry::core
