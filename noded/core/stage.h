// The state machine of an attempt on a node, as one table: stage and trigger give the next stage. A
// pair that is absent from the table has no effect and is counted; it is no bug, because a doubled
// order or a late event may well ask for it.
//
//   waiting     found on disk after a restart, proved never to have started; wants the controller
//   preparing   Begin or Resume issued, nothing heard yet
//   held        ready, waits for Go
//   starting    Release issued
//   running     user code may run
//   ending      ordered to end: signals sent, SIGKILL when its grace is over
//   ended       nothing runs; the exit is reported until acknowledged
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "common/proto/node_report.h"

namespace gantry::node {

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
       {terminate, "terminate"},  // order Terminate, kill at registration, fencing
       {drop, "drop"},            // like terminate, for an attempt that never started
       {ended, "ended"}}};        // the runtime says that nothing of it runs
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

// The phase that a registration tells the controller for this stage.
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

}  // namespace gantry::node
