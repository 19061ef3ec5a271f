// A job of a trace during a replay, and how it is made from the trace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctld/replay/replay.h"
#include "ctld/replay/share_book.h"
#include "ctld/replay/site.h"
#include "ctld/sched/change.h"

namespace gantry::replay {

enum class Phase : std::uint8_t { coming, waiting, running, leaving, done };
struct Live {
  Phase phase = Phase::coming;
  std::uint32_t epoch = 0;
  sched::ClassKey key;
  std::optional<sched::ShareId> share;
  Duration run{};        // run time, cut off at the time limit
  Duration saved{};      // the part of `run` that was saved before this attempt began
  Duration saved_now{};  // the part that was saved at the last checkpoint of this attempt
  std::optional<Duration> every;
  Instant started{};  // start of this attempt
  Instant ends_by{};  // if it is leaving: its latest end
  std::optional<Instant> checkpoint;
  std::vector<sched::NodeGrant> grants;
  double rate = 0;  // charge rate at present
  std::optional<std::uint32_t> leaves_for;
  bool took_room = false;  // other jobs were preempted for it
};

// Gives the job its queue, class, limit and user; its shape is already set. Fails if the site does
// not know its tenant or class.
Result<void> enrol(const std::string& trace, const TraceJob& job, const Site& site,
                   ShareBook& shares, Live& live);

// Makes all jobs of the trace, by index, and writes what is known of their results into `out`,
// which must have the tenants and a result for each job. A job larger than the cluster is left out,
// with a note. `checkpoint_every` is for jobs that do not tell how often they save their state.
Result<std::vector<Live>> enrol_all(const Trace& trace, const Cluster& cluster, const Site& site,
                                    std::optional<Duration> checkpoint_every, ShareBook& shares,
                                    Outcome& out);

}  // namespace gantry::replay
