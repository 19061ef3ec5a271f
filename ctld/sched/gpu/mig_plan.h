// MIG from the queue: which waiting jobs get which slices now, which GPUs are partitioned again for
// that and how, which ones are kept free of small slices for a large one that waits, and where MIG
// mode would have to change. plan_mig() is a pure function from a view to a plan: it proposes, and
// does nothing.
//
// Every plan keeps these rules:
//   * A slice in use, or one that has failed, is neither destroyed nor overlapped.
//   * One GPU of a node is changed at a time: changes have turns, and turn n + 1 begins when turn
//     n has ended. The other GPUs continue, and jobs on existing slices start at once.
//   * A change first destroys what is in the way, then creates what a job gets, and no more.
//     Stopped after any step it leaves a legal layout, from which the next plan goes on.
//   * Jobs are served in the order of the queue. A job passes another only on places that the other
//     could not use, or that it leaves (by its time limit) before the other needs them.
//   * A reservation that was held is kept, or moved to an earlier time, until its job starts. A
//     start whose turn has not come by the next plan is planned again, in its place in the queue.
//   * Reservations take no more than a part of the GPUs, so that small jobs do not starve either.
//
// The caller sets as the nodes of a want those that have the cores, memory and partition for its
// jobs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/time/time.h"
#include "common/types.h"
#include "ctld/sched/gpu/mig.h"

namespace gantry::sched {

// ---- the view

struct MigUse {  // use by a job
  JobId job;
  std::optional<Instant> until;  // end by its limit; nullopt = not known
  friend bool operator==(const MigUse&, const MigUse&) = default;
};

struct MigSliceView {
  MigPlacementId at = 0;
  std::optional<MigUse> use;  // nullopt = idle
  bool failed = false;        // not used or changed until it is repaired
};

// With `changing`, `slices` are those that exist after the change.
struct MigGpuView {
  std::uint32_t node = 0, index = 0;   // index: number of the GPU on its node
  std::optional<std::uint32_t> table;  // index into MigView::tables; nullopt: cannot be partitioned
  bool mig = false;                    // MIG mode is on
  bool healthy = true;                 // else nothing is planned on it
  bool fixed = false;                  // partitioned by hand: only its existing slices are used
  bool changing = false;               // a change is under way there
  std::optional<MigUse> whole;         // with MIG mode off: the use of the whole GPU
  std::vector<MigSliceView> slices;    // existing slices, which are a legal layout
};

// A request that several jobs may have in common.
struct MigWant {
  std::string profile;      // "3g.40gb"; empty = whole GPUs
  bool full_slice = false;  // whole GPUs; but for a job of one GPU, one full slice is enough
  std::vector<std::uint32_t> tables;  // for slices: models, the first preferred; none = any
  std::vector<std::uint32_t> nodes;   // ascending; empty = any
};

struct MigJob {
  JobId job;
  std::uint32_t want = 0;         // index into MigView::wants
  std::uint32_t count = 1;        // slices, or whole GPUs, all on one node
  std::optional<Duration> limit;  // nullopt = no time limit
};

struct MigGrant {
  std::uint32_t gpu = 0;             // index into MigView::gpus
  std::optional<MigPlacementId> at;  // nullopt = the whole GPU
  bool exists = false;               // true if the slice exists and is idle
  friend bool operator==(const MigGrant&, const MigGrant&) = default;
};

struct MigReservation {
  JobId job;
  std::vector<MigGrant> grants;
  std::optional<Instant> at;  // nullopt: when jobs without a limit have ended
  friend bool operator==(const MigReservation&, const MigReservation&) = default;
};

struct MigView {
  Instant now{};
  std::vector<const MigTable*> tables;
  std::vector<MigGpuView> gpus;  // ascending by node, then index
  std::vector<MigWant> wants;
  std::vector<MigJob> jobs;  // waiting, in the order of the queue
  // The reservations of the last plan, with GPUs as they are numbered now. Those of jobs that no
  // longer wait, and those on GPUs that can no longer give the place, are dropped.
  std::vector<MigReservation> held;
  // By table and profile: how many slices were asked for lately. Waiting jobs are added to it.
  std::vector<std::vector<std::uint32_t>> asked;
};

struct MigPolicy {
  Duration change = seconds(10);    // time that one change of a GPU takes
  std::uint32_t reservations = 16;  // this many of the first blocked jobs get a reservation
  std::uint32_t reserved_part =
      12;  // percent of the GPUs (of a table; of whole ones) that may be reserved; at least one may
  std::uint32_t mode_switches = 8;  // switches listed in one plan
};

// ---- the plan

struct MigStart {
  JobId job;
  std::vector<MigGrant> grants;  // on one node, ascending by GPU
  std::uint32_t turn = 0;        // 0: all its slices exist; n: after the node's n-th change
};

// The change of one GPU: it destroys these slices in order, then creates these in order.
struct MigChange {
  std::uint32_t gpu = 0;
  std::uint32_t turn = 1;  // turn on its node: 1 may begin now, unless a change is under way there
  bool waits = false;      // true if it waits for a change that is under way
  std::vector<MigPlacementId> destroy, create;
};

struct MigModeSwitch {  // an operator's action; the GPU has no slice in use
  std::uint32_t gpu = 0;
  bool on = false;
  std::uint32_t want = 0;  // the want whose jobs it would help
};

enum class MigWhy : std::uint8_t {
  nowhere,   // no healthy GPU that the job may use could ever give it, in any mode
  mode,      // only GPUs in the other mode could give it
  in_use,    // the GPUs that could give it are in use
  reserved,  // the GPUs are in use, and the job has a reservation
};

struct MigWaiting {  // waiting jobs of one want
  std::uint32_t want = 0;
  std::uint32_t jobs = 0;
  JobId first;
  MigWhy why{};  // reason of the first job
  friend bool operator==(const MigWaiting&, const MigWaiting&) = default;
};

struct MigPlan {
  std::vector<MigStart> starts;    // in the order of the queue
  std::vector<MigChange> changes;  // ascending by node, then turn
  std::vector<MigReservation> reservations;
  std::vector<MigModeSwitch> switches;
  std::vector<MigWaiting> waiting;  // ascending by want
  std::uint64_t attempts = 0;       // nodes and GPUs tried
};

MigPlan plan_mig(const MigView& view, const MigPolicy& policy);

}  // namespace gantry::sched
