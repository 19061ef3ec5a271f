// Money: the tests check how amounts are read and written, and that a charge is rounded only once,
// even if it is booked in pieces.
#include <doctest/doctest.h>

#include <random>

#include "common/money/money.h"

using namespace gantry;

TEST_CASE("money is read and written to the millionth") {
  CHECK(parse_money("2.50")->micros == 2'500'000);
  CHECK(parse_money("0.000001")->micros == 1);
  CHECK(parse_money("7")->micros == 7'000'000);
  for (const char* bad : {"", ".5", "1.", "-1", "1,5", "1e3", "0.0000001", "2.5 EUR", "1.2.3"})
    CHECK_FALSE(parse_money(bad));
  CHECK_FALSE(parse_money("9000000000001"));
  CHECK(format_money(Money{2'500'000}) == "2.50");
  CHECK(format_money(Money{4'000}) == "0.004");
  CHECK(format_money(Money{1}) == "0.000001");
  CHECK(format_money(Money{-1'250'000}) == "-1.25");
  CHECK(format_money(Money{}) == "0.00");
}

TEST_CASE("money with few decimal places is rounded, and halves go away from zero") {
  CHECK(format_money(Money{1'234'550}, 4) == "1.2346");
  CHECK(format_money(Money{1'234'549}, 4) == "1.2345");
  CHECK(format_money(Money{-1'234'550}, 4) == "-1.2346");
  CHECK(format_money(Money{-40}, 4) == "0.0000");
  CHECK(format_money(Money{1'500'000}, 0) == "2");
}

TEST_CASE("a slice costs its part of the GPU, to the nearest millionth") {
  CHECK(part_of(Money{2'500'000}, 142).micros == 355'000);
  CHECK(part_of(Money{1'000'001}, 500).micros == 500'001);
  CHECK(part_of(Money{1}, 499).micros == 0);
}

TEST_CASE("an amount over time is kept exactly") {
  Held held;
  add_held(held, 1500, minutes(40), kThousandthsUnit);  // This is 1.5 GPUs for 40 minutes.
  CHECK(held == Held{1, 0});
  add_held(held, 1, microseconds(1), kThousandthsUnit);
  CHECK(held == Held{1, 1});
  take_held(held, Held{0, 2}, kThousandthsUnit);
  CHECK(held == Held{0, 1000 * kMicrosecondsPerHour - 1});
  CHECK(format_hours(held, kThousandthsUnit) == "1.000");
  Held third;
  add_held(third, 1000, minutes(20), kThousandthsUnit);
  CHECK(format_hours(third, kThousandthsUnit) == "0.333");
}

TEST_CASE("a charge booked in pieces is the exact product, rounded once") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 2000; ++round) {
    static constexpr std::int64_t kUnits[] = {1000, 1024, 142, 1};
    const std::int64_t unit = kUnits[random() % 4];
    const auto amount = static_cast<std::int64_t>(random() % 100'000);
    const Money price{static_cast<std::int64_t>(random() % 3'000'000)};
    const auto factor = static_cast<std::int64_t>(random() % 2'000);
    const auto other = static_cast<std::int64_t>(random() % 2'000);
    Exact whole;
    Exact cut;
    Money sum;
    Duration total;
    for (int piece = 0; piece < 7; ++piece) {
      const Duration length{static_cast<std::int64_t>(random() % 10'000'000'000)};
      total = total + length;
      sum += add_charge(cut, amount, unit, price, length, factor, other);
    }
    const Money once = add_charge(whole, amount, unit, price, total, factor, other);
    CHECK(cut == whole);
    CHECK(sum == once);
    // The charge agrees with wider arithmetic: |booked x divisor - product| <= divisor / 2.
    const __int128 product = static_cast<__int128>(amount) * price.micros * factor * other;
    const long double exact = static_cast<long double>(product) * total.us / Exact::divisor(unit);
    CHECK(std::abs(static_cast<long double>(once.micros) - exact) <= 0.5L + exact * 1e-17L);
  }
}

TEST_CASE("the largest cluster for a month at the highest price stays within bounds") {
  Exact sum;
  // The cluster has 10,000 nodes of 16 GPUs for 31 days, at 10,000.00 an hour and without factors.
  add_charge(sum, 160'000'000, kThousandthsUnit, Money{kMostPrice}, hours(24 * 31), 1000, 1000);
  CHECK(format_money(sum.booked(kThousandthsUnit)) == "1190400000000.00");
  // One GPU for half an hour at 2.50 an hour, with a factor of one half.
  Exact half;
  CHECK(add_charge(half, 1000, kThousandthsUnit, Money{2'500'000}, minutes(30), 500, 1000).micros ==
        625'000);
}
