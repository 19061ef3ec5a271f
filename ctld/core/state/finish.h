// The hold of a job, the reason of a requeue, and the end of an attempt: parts of a job (job.h).
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "common/fields.h"
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

// What happens to a finishing job when its last node is released.
struct Finish {
  Instant since{};
  Outcome outcome = Outcome::completed;
  std::optional<ExitStatus> exit;     // unset: the exit status of the batch node
  std::optional<RequeueWhy> requeue;  // set: the job goes back to the queue instead of ending
  std::optional<Hold> hold;           // only with `requeue`
  std::optional<Duration> grace;      // time from signal to kill; unset: the controller's kill_wait
  bool for_own = false;               // preempted for a job of its own tenant
  GANTRY_FIELDS(FIELD(1, since), FIELD(2, outcome), FIELD(3, exit), FIELD(4, requeue),
                FIELD(5, hold), FIELD(6, grace), FIELD(7, for_own))
};

}  // namespace gantry::core
