// The job state machine: one table, trigger by phase. A move that is not in it is illegal. The
// source of the trigger decides what follows: a client gets an error, our own code asserts, and a
// node's report is logged and ignored. The docs print this table with moves_as_markdown().
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "common/job/job_state.h"
#include "common/result.h"

namespace gantry::core {

enum class Trigger : std::uint8_t {
  place,
  finish,
  end,
  requeued,
  forget,  // the controller's own trigger: illegal = assertion
  ready,
  started,
  exited,  // a node's report: illegal = logged and ignored
  cancel,
  signal,
  hold,
  release,
  requeue,
  update,
  step,
  checkpoint,
  end_allocation,
  suspend,
  resume,  // a client's: illegal = error
  revive,  // the controller's own trigger
};
enum class Source : std::uint8_t { us, node, client };

struct TriggerRow {
  Trigger trigger;
  std::string_view name;
  Source source;
  std::string_view what;
  // Next phase from queued, starting, running, finishing, ended; unset = illegal.
  std::array<std::optional<Phase>, 5> next;
};

inline constexpr std::optional<Phase> kIllegal = std::nullopt;

inline constexpr std::array<TriggerRow, 20> kMoves = [] {
  using enum Phase;
  constexpr auto no = kIllegal;
  return std::array<TriggerRow, 20>{{
      {Trigger::place,
       "place",
       Source::us,
       "a plan's start was accepted",
       {starting, no, no, no, no}},
      {Trigger::finish,
       "finish",
       Source::us,
       "how it ends (or is requeued) is decided",
       {no, finishing, finishing, finishing, no}},
      {Trigger::end, "end", Source::us, "no node holds it any more", {ended, no, no, ended, no}},
      {Trigger::requeued,
       "requeued",
       Source::us,
       "no node holds it, and it waits again",
       {no, no, no, queued, no}},
      {Trigger::forget, "forget", Source::us, "min_job_age after its end", {no, no, no, no, ended}},
      {Trigger::ready,
       "ready",
       Source::node,
       "a node has prepared it",
       {no, starting, running, no, no}},
      {Trigger::started,
       "started",
       Source::node,
       "the batch node runs it",
       {no, running, no, no, no}},
      {Trigger::exited,
       "exited",
       Source::node,
       "nothing of it is left on a node",
       {no, starting, running, finishing, no}},
      {Trigger::cancel,
       "cancel",
       Source::client,
       "gcancel",
       {ended, finishing, finishing, finishing, no}},
      {Trigger::signal,
       "signal",
       Source::client,
       "gcancel --signal",
       {no, starting, running, finishing, no}},
      {Trigger::hold, "hold", Source::client, "gctl hold", {queued, no, no, no, no}},
      {Trigger::release, "release", Source::client, "gctl release", {queued, no, no, no, no}},
      {Trigger::requeue,
       "requeue",
       Source::client,
       "gctl requeue",
       {no, finishing, finishing, finishing, queued}},
      {Trigger::update,
       "update",
       Source::client,
       "gctl update",
       {queued, starting, running, no, no}},
      {Trigger::step, "step", Source::client, "grun asks for a step", {no, no, running, no, no}},
      {Trigger::checkpoint,
       "checkpoint",
       Source::client,
       "gctl checkpointed",
       {no, starting, running, no, no}},
      {Trigger::end_allocation,
       "end_allocation",
       Source::client,
       "the owner is done with it",
       {ended, finishing, finishing, finishing, no}},
      {Trigger::suspend, "suspend", Source::client, "scontrol suspend", {no, no, running, no, no}},
      {Trigger::resume, "resume", Source::client, "scontrol resume", {no, no, running, no, no}},
      {Trigger::revive,
       "revive",
       Source::us,
       "gctl requeue of a job that has ended",
       {no, no, no, no, queued}},
  }};
}();

constexpr std::optional<Phase> next_phase(Trigger trigger, Phase from) {
  return kMoves[static_cast<std::size_t>(trigger)].next[static_cast<std::size_t>(from) - 1];
}

// Moves by a trigger of the controller itself; asserts if the move is illegal.
Phase must_move(Trigger trigger, Phase from);
// Looks up the move for a client's request; the error is wrong_state and names the job and its
// phase.
Result<Phase> may_move(Trigger trigger, Phase from, std::string_view job);

std::string moves_as_markdown();

static_assert([] {
  for (std::size_t i = 0; i < kMoves.size(); ++i)
    if (static_cast<std::size_t>(kMoves[i].trigger) != i) return false;
  return true;
}());

}  // namespace gantry::core
