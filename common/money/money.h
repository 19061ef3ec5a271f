// Money: an integer number of millionths of the cluster's currency. Floating point is never used.
//
// A charge is an exact product (amount x price x time). It is rounded once for each thing that one
// attempt of a job held, to the nearest millionth, halves up (Exact, below); every other figure is
// a sum of those. Tables show fewer decimal places, and round when they print.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/fields.h"
#include "common/result.h"
#include "common/time/time.h"

namespace gantry {

inline constexpr std::int64_t kMoneyUnit = 1'000'000;            // millionths in 1.00
inline constexpr std::int64_t kMostPrice = 10'000 * kMoneyUnit;  // per unit and hour
// Microseconds of a Duration.
inline constexpr std::int64_t kMicrosecondsPerHour = 3'600 * 1'000'000LL;
inline constexpr std::int64_t kFactorUnit = 1'000;  // a factor of 1

struct Money {
  std::int64_t micros = 0;  // negative: a credit
  friend constexpr auto operator<=>(Money, Money) = default;
  Money& operator+=(Money o);  // asserts on overflow
  friend Money operator+(Money a, Money b) { return a += b; }
  friend Money operator-(Money a, Money b) { return a += Money{-b.micros}; }
};

// Reads "2.50" or "0.000001": digits with at most six decimal places, not negative, at most
// 9,000,000,000,000.
Result<Money> parse_money(std::string_view text);
// Writes at least two decimal places, and as many as the amount has: "2.50", "0.004", "-1.25".
std::string format_money(Money money);
// Writes 0..6 decimal places, halves rounded away from zero: "2.5000".
std::string format_money(Money money, int places);

// The part `thousandths` of `price`, to the nearest millionth, halves up. A slice without a price
// of its own costs this part of the GPU's price. Neither argument is negative.
Money part_of(Money price, std::int64_t thousandths);

// How much of an amount in the ledger is one unit. Amounts are thousandths of a core and of a GPU,
// MiB of a GiB (each node's memory and scratch rounded up to whole MiB), and MB/s of a GB/s and
// Mbit/s of a Gbit/s (each node's io and net rounded up to whole ones).
inline constexpr std::int64_t kThousandthsUnit = 1000;
inline constexpr std::int64_t kMebibyteUnit = 1024;

// An amount held over time, exactly: unit-hours, and the rest of an hour of one unit. The unit is
// what a price is for (a GPU, a core, a GiB).
struct Held {
  std::int64_t hours = 0;
  std::int64_t rest = 0;  // amount x microseconds; 0 <= rest < unit x kMicrosecondsPerHour
  friend constexpr auto operator<=>(const Held&, const Held&) = default;
  GANTRY_FIELDS(FIELD(1, hours), FIELD(2, rest))
};
// Adds `amount`, of which `unit` make one, held for `length`. No argument is negative; unit is at
// least 1.
void add_held(Held& sum, std::int64_t amount, Duration length, std::int64_t unit);
void add_held(Held& sum, const Held& more, std::int64_t unit);
void take_held(Held& sum, const Held& less, std::int64_t unit);  // `hours` may become negative
// The nearest thousandth of an hour, halves up: 12345 for "12.345".
std::int64_t thousandths_of_hours(const Held& held, std::int64_t unit);
std::string format_hours(const Held& held, std::int64_t unit);

// A charge that grows: its whole millionths, and the exact rest of one. The booked sum is rounded.
// Parts that are booked one after the other therefore always add up to the rounded whole, however
// the time was divided.
struct Exact {
  Money whole;
  std::int64_t rest = 0;  // rest of a millionth, in parts of divisor(unit)
  friend constexpr auto operator<=>(const Exact&, const Exact&) = default;
  GANTRY_FIELDS(FIELD(1, whole), FIELD(2, rest))
  // Unit x microseconds of an hour x both factors; this fits for a unit of up to 2500.
  static constexpr std::int64_t divisor(std::int64_t unit) {
    return unit * kMicrosecondsPerHour * kFactorUnit * kFactorUnit;
  }
  [[nodiscard]] Money booked(std::int64_t unit) const {
    return {whole.micros + (rest >= divisor(unit) - rest ? 1 : 0)};
  }
};
// Adds amount / unit x price per hour x length x factor x other factor (both in thousandths). unit
// is 1..2500, the price at most kMostPrice, factors at most 100 x kFactorUnit. Returns by how much
// the booked sum grew.
Money add_charge(Exact& sum, std::int64_t amount, std::int64_t unit, Money price, Duration length,
                 std::int64_t factor, std::int64_t other_factor);

}  // namespace gantry
