// The bill of an attempt: what it holds, by thing and node pool, and what that has cost so far; and
// the sums of the ledger, to which bills are posted. Only apply() changes them (ledger.h has the
// rules).
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/money/money.h"
#include "common/time/time.h"

namespace gantry::core {

// An item with a price: its node pool, and the amount of it that one price is for.
struct BillItem {
  std::string pool;           // "" = none
  std::string item;           // "cpu", "memory", "scratch", "io", "net", "gpu:MODEL[:PROFILE]"
  std::uint32_t unit = 1000;  // amount that one price is for; for a slice its part of a GPU
  friend bool operator==(const BillItem&, const BillItem&) = default;
  GANTRY_FIELDS(FIELD(1, pool), FIELD(2, item), FIELD(3, unit))
};

// The amount that one node adds to a line of the bill: thousandths (cores, GPUs) or MiB.
struct HeldPart {
  std::uint32_t line = 0;
  std::int64_t amount = 0;
  friend bool operator==(const HeldPart&, const HeldPart&) = default;
  GANTRY_FIELDS(FIELD(1, line), FIELD(2, amount))
};

struct BillLine {
  BillItem what;
  std::int64_t amount = 0;  // held now, on all nodes
  Held held;                // sum so far, in units of held_unit(item)
  Exact cost;               // cost so far
  Exact list;               // `cost` at list price, without factors of plans and hours of the day
  Held held_saved;          // value of `held` at the newest checkpoint
  Money cost_saved;
  [[nodiscard]] Money booked() const { return cost.booked(what.unit); }
  GANTRY_FIELDS(FIELD(1, what), FIELD(2, amount), FIELD(3, held), FIELD(4, cost),
                FIELD(5, held_saved), FIELD(6, cost_saved), FIELD(7, list))
};

struct Bill {
  std::string plan;      // plan of the price book; "" = on demand
  Instant since{};       // charged up to here
  bool settled = false;  // the attempt is over and its sum was added to the job
  std::vector<BillLine> lines;
  std::string labels;         // as in LedgerParts
  std::optional<Money> most;  // highest possible cost; set with a budget and a time limit
  [[nodiscard]] Money booked() const {
    Money sum;
    for (const BillLine& line : lines) sum += line.booked();
    return sum;
  }
  // The part of `most` that is still set aside, as of `since`.
  [[nodiscard]] Money reserved() const {
    return most && !settled ? std::max(Money{}, *most - booked()) : Money{};
  }
  GANTRY_FIELDS(FIELD(1, plan), FIELD(2, since), FIELD(3, settled), FIELD(4, lines), FIELD(5, most),
                FIELD(6, labels))
};

// One sum of the ledger, by ledger_key().
struct LedgerSum {
  Held held;
  Held credited;           // the part of `held` that was credited
  Money cost;              // cost of `held`
  Money credit;            // the part of `cost` that was credited
  Money list;              // cost of `held` at list prices
  Held wasted;             // the part of `held` that ended attempts did not use
  Money waste;             // the part of `cost` that was paid for `wasted`
  std::uint64_t runs = 0;  // ended attempts; this and the next two only for item cpu
  std::uint64_t starts = 0;
  Duration waited{};      // time in the queue before these starts, without what users caused
                          // themselves
  std::string labels;     // as in LedgerParts; the key has a word for them
  bool fold_due = false;  // set if State's Unfolded lists it; not durable
  GANTRY_FIELDS(FIELD(1, held), FIELD(2, credited), FIELD(3, cost), FIELD(4, credit),
                FIELD(5, runs), FIELD(6, list), FIELD(7, wasted), FIELD(8, waste), FIELD(9, starts),
                FIELD(10, waited), FIELD(11, labels))
};
// `unit` is held_unit(item).
void add_sum(LedgerSum& sum, const LedgerSum& more, std::int64_t unit);

}  // namespace gantry::core
