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

// A thing with a price: its node pool, and the amount of it that one price is for.
struct BillItem {
  std::string pool;           // "" = none
  std::string item;           // "cpu", "memory", "scratch", "io", "net", "gpu:MODEL[:PROFILE]"
  std::uint32_t unit = 1000;  // amount that one price is for; for a slice its part of a GPU
  friend bool operator==(const BillItem&, const BillItem&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "pool", s.pool);
    v(2, "item", s.item);
    v(3, "unit", s.unit);
  }
};

// The amount that one node adds to a line of the bill: thousandths (cores, GPUs) or MiB.
struct HeldPart {
  std::uint32_t line = 0;
  std::int64_t amount = 0;
  friend bool operator==(const HeldPart&, const HeldPart&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "line", s.line);
    v(2, "amount", s.amount);
  }
};

struct BillLine {
  BillItem what;
  std::int64_t amount = 0;  // held now, on all nodes
  Held held;                // so far, in units of held_unit(item)
  Exact cost;               // so far
  Exact list;               // `cost` at list price, without factors of plans and hours of the day
  Held held_saved;          // value of `held` at the newest checkpoint
  Money cost_saved;
  [[nodiscard]] Money booked() const { return cost.booked(what.unit); }
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "what", s.what);
    v(2, "amount", s.amount);
    v(3, "held", s.held);
    v(4, "cost", s.cost);
    v(5, "held_saved", s.held_saved);
    v(6, "cost_saved", s.cost_saved);
    v(7, "list", s.list);
  }
};

struct Bill {
  std::string plan;      // of the price book; "" = on demand
  Instant since{};       // charged up to here
  bool settled = false;  // the attempt is over: its sum is in the job
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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "plan", s.plan);
    v(2, "since", s.since);
    v(3, "settled", s.settled);
    v(4, "lines", s.lines);
    v(5, "most", s.most);
    v(6, "labels", s.labels);
  }
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
  std::uint64_t runs = 0;  // attempts that ended; this and the next two only for item cpu
  std::uint64_t starts = 0;
  Duration waited{};      // time in the queue before these starts, without what users caused
                          // themselves
  std::string labels;     // as in LedgerParts; the key has a word for them
  bool fold_due = false;  // not durable: it is in Unfolded
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "held", s.held);
    v(2, "credited", s.credited);
    v(3, "cost", s.cost);
    v(4, "credit", s.credit);
    v(5, "runs", s.runs);
    v(6, "list", s.list);
    v(7, "wasted", s.wasted);
    v(8, "waste", s.waste);
    v(9, "starts", s.starts);
    v(10, "waited", s.waited);
    v(11, "labels", s.labels);
  }
};
// `unit` is held_unit(item).
void add_sum(LedgerSum& sum, const LedgerSum& more, std::int64_t unit);

}  // namespace gantry::core
