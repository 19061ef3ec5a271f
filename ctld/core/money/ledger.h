// The ledger: who held what for how long, and what it cost. Derived by apply() from the events that
// are there anyway, so it is the same however often the journal is told.
//
// - What is charged is what was held, from the placement until each node has let go: an exclusive
//   node with all that it has for jobs.
// - A bill has a line for each thing and node pool. A line is rounded once (common/money/money.h).
// - Time is cut where prices, hours of the day, months or weeks change (prices.h), and each piece
//   is posted to the sums of its month and of its week, in the tenant's time zone.
// - A bill is brought up to date when what it holds changes, when its account does, when prices do,
//   and when it ends. Between, whoever asks reckons the rest (accrue, cost_of).
// - What an attempt held and did not use is waste, known when it has ended, and of that period. Of
//   cores: the time that they did not run for it. Of memory: what its peak left, for as long as it
//   was held. Of GPUs: the time that they were not busy, if the driver tells.
// - A credit belongs to the period in which it is given, and is not taken off the cost there: both
//   are kept. What is credited follows the price book in force then.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ctld/core/event/events_attempt.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

// Of a start, before it is recorded: the lines of its bill, and what each grant adds to them.
struct Holding {
  std::vector<BillItem> items;
  std::vector<std::vector<HeldPart>> held;  // by grant
};
Holding holding_of(const State& state, const std::vector<sched::NodeGrant>& grants, bool exclusive);
// The plan of the price book that the job has when it starts now.
std::string plan_of(const State& state, const Job& job, Instant now);

// An item's unit of `Held`: thousandths, or MiB.
std::int64_t held_unit(std::string_view item);

// ---- apply() only

void open_bill(MutableState& state, const event::JobPlaced& e, Job& job, Instant at);
void charge(MutableState& state, Job& job, Instant to);  // nothing without a bill, or to the past
// From a suspension to its end nothing is charged, although all is held.
void stop_charging(MutableState& state, Job& job, Instant at);
void go_on_charging(MutableState& state, Job& job, Instant at);
void release_held(MutableState& state, Job& job, const NodeRun& run, Instant at);
void save_bill(MutableState& state, Job& job, Instant saved);  // a checkpoint
// After the last node has let go, before the attempt is forgotten.
enum class EndedBy : std::uint8_t { itself, preemption, node_failure, launch_failure };
void settle_bill(MutableState& state, Job& job, Instant at, EndedBy why);
void charge_all(MutableState& state, Instant at);  // before prices change
void post_charge(MutableState& state, const proto::PostedCharge& charge);

// ---- reading

struct JobCost {
  Money cost;                 // of all attempts, up to now
  Money credit;               // of that
  std::optional<Money> rate;  // per hour, while it holds something
};
// Nothing where there are no prices, or the job has never been placed.
std::optional<JobCost> cost_of(const State& state, const Job& job, Instant now);

// What a bill comes to at `to` if it goes on as it is.
Money cost_until(const PriceTable& prices, const TimeZone& zone, Bill bill, Instant to);
// Per hour at `at`, of a bill or of a job that holds something.
Money rate_at(const PriceTable& prices, const TimeZone& zone, const Bill& bill, Instant at);

// What jobs that hold something now will add to the sums, up to `now`.
using Accrual = std::function<void(const LedgerParts& parts, const LedgerSum& more)>;
void accrue(const State& state, Instant now, const Accrual& take);
// The same of one job, by pieces of time.
using PieceCost = std::function<void(const Piece& piece, Money cost)>;
void accrue(const State& state, const Job& job, Instant now, const PieceCost& take);

// A sum that was loaded, into the totals.
void add_total(LedgerState& ledger, const std::string& key, const LedgerSum& sum);

// Jobs that hold something, each once.
std::vector<JobId> jobs_on_nodes(const State& state);

}  // namespace gantry::core
