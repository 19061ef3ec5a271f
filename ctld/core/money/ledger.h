// The ledger: who held what for how long, and what it cost. apply() derives it from the events of
// jobs, so it is the same however often the journal is replayed.
//
// - Charges are for what was held, from the placement until each node is released. For an exclusive
//   node that is all that the node offers to jobs.
// - A bill has a line for each thing and node pool. A line is rounded once (common/money/money.h).
// - Time is cut where prices, hours of the day, months or weeks change (prices.h). Each piece is
//   posted to the sums of its month and of its week, in the tenant's time zone.
// - A bill is brought up to date when what it holds, its account or prices change, and when it
//   ends. In between, readers add the rest themselves (accrue, cost_of).
// - Waste is what an attempt held and did not use. It is known when the attempt has ended, and is
//   posted to that period; an attempt that was credited or that a fault ended has none. For cores
//   it is the time in which they did not run for the job; for memory the part above its peak, as
//   long as it was held; for GPUs the time in which they were not busy, if the driver tells.
// - A credit belongs to the period in which it is given. It is not taken off the cost there; both
//   are kept. The price book in force at that time decides it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/proto/ledger.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

namespace event {
struct JobPlaced;
}

// The bill of a start that is not recorded yet: its lines, and what each grant adds to them.
struct Holding {
  std::vector<BillItem> items;
  std::vector<std::vector<HeldPart>> held;  // by grant
};
Holding holding_of(const State& state, const std::vector<sched::NodeGrant>& grants, bool exclusive);
// The plan of the price book that the job gets if it starts now.
std::string plan_of(const State& state, const Job& job, Instant now);

// The unit of `Held` for this item: thousandths, or MiB.
std::int64_t held_unit(std::string_view item);

// ---- for apply() only

void open_bill(MutableState& state, const event::JobPlaced& e, Job& job, Instant at);
void charge(MutableState& state, Job& job,
            Instant to);  // does nothing without a bill, or if `to` is past
// From a suspension to its end nothing is charged, although everything is held.
void stop_charging(MutableState& state, Job& job, Instant at);
void go_on_charging(MutableState& state, Job& job, Instant at);
void release_held(MutableState& state, Job& job, const NodeRun& run, Instant at);
void save_bill(MutableState& state, Job& job, Instant saved);  // at a checkpoint
// Call it after the last node is released, before the attempt is forgotten.
enum class EndedBy : std::uint8_t { itself, preemption, node_failure, launch_failure };
void settle_bill(MutableState& state, Job& job, Instant at, EndedBy why);
void charge_all(MutableState& state, Instant at);  // call it before prices change
void post_charge(MutableState& state, const proto::PostedCharge& charge);

// ---- reading

struct JobCost {
  Money cost;                 // cost of all attempts, up to now
  Money credit;               // the part of `cost` that is credited
  std::optional<Money> rate;  // per hour, while the job holds something
};
// nullopt if there are no prices, or if the job has never been placed.
std::optional<JobCost> cost_of(const State& state, const Job& job, Instant now);

// The total of a bill at `to` if what it holds stays the same.
Money cost_until(const PriceTable& prices, const TimeZone& zone, Bill bill, Instant to);
// Cost per hour at `at`, of a bill or of a job that holds something.
Money rate_at(const PriceTable& prices, const TimeZone& zone, const Bill& bill, Instant at);

// Calls `take` with what jobs that hold something now will add to the sums, up to `now`.
using Accrual = std::function<void(const LedgerParts& parts, const LedgerSum& more)>;
void accrue(const State& state, Instant now, const Accrual& take);
// The same for one job, with each piece of time by itself.
using PieceCost = std::function<void(const Piece& piece, Money cost)>;
void accrue(const State& state, const Job& job, Instant now, const PieceCost& take);

// Adds a loaded sum to the derived values: totals, and labels of the tenant.
void add_total(LedgerState& ledger, const std::string& key, const LedgerSum& sum);

// Jobs that hold something, each once.
std::vector<JobId> jobs_on_nodes(const State& state);

}  // namespace gantry::core
