#include "common/money/money.h"

#include <fmt/core.h>

#include "common/assert.h"

namespace gantry {
namespace {

using Wide = __int128;

constexpr std::int64_t kMostMoney = 9'000'000'000'000 * kMoneyUnit;
constexpr int kPlaces = 6;

std::int64_t power_of_ten(int n) {
  std::int64_t out = 1;
  while (n-- > 0) out *= 10;
  return out;
}

std::int64_t narrow(Wide value) {
  GANTRY_ASSERT(value >= INT64_MIN && value <= INT64_MAX, "an amount that fits");
  return static_cast<std::int64_t>(value);
}

}  // namespace

Money& Money::operator+=(Money o) {
  micros = narrow(static_cast<Wide>(micros) + o.micros);
  return *this;
}

Result<Money> parse_money(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is not an amount of money; use digits with at most six places "
                            "behind the point, such as 2.50",
                            text));
  };
  Wide micros = 0;
  int places = -1;  // -1 = no decimal point yet
  std::size_t digits = 0;
  for (const char c : text) {
    if (c == '.' && places < 0 && digits > 0) {
      places = 0;
      continue;
    }
    if (c < '0' || c > '9' || places == kPlaces || ++digits > 20) return bad();
    micros = micros * 10 + (c - '0');
    if (places >= 0) ++places;
  }
  if (digits == 0 || places == 0) return bad();
  micros *= power_of_ten(kPlaces - (places < 0 ? 0 : places));
  if (micros > kMostMoney)
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is too much money", text));
  return Money{narrow(micros)};
}

std::string format_money(Money money, int places) {
  GANTRY_ASSERT(places >= 0 && places <= kPlaces, "places of money");
  const bool negative = money.micros < 0;
  const Wide size = negative ? -static_cast<Wide>(money.micros) : Wide{money.micros};
  const std::int64_t step = power_of_ten(kPlaces - places);
  const std::int64_t rounded = narrow((size + step / 2) / step);
  const std::int64_t unit = power_of_ten(places);
  std::string out = fmt::format("{}{}", negative && rounded != 0 ? "-" : "", rounded / unit);
  if (places > 0) out += fmt::format(".{:0{}}", rounded % unit, places);
  return out;
}

std::string format_money(Money money) {
  std::string out = format_money(money, kPlaces);
  while (out.ends_with('0') && out.size() - out.find('.') > 3) out.pop_back();
  return out;
}

Money part_of(Money price, std::int64_t thousandths) {
  GANTRY_ASSERT(price.micros >= 0 && thousandths >= 0, "a price and a part of it");
  return {narrow((static_cast<Wide>(price.micros) * thousandths + 500) / 1000)};
}

namespace {

void carry(Held& sum, Wide rest, std::int64_t unit) {
  const Wide per_hour = static_cast<Wide>(unit) * kMicrosecondsPerHour;
  Wide hours = rest / per_hour;
  rest -= hours * per_hour;
  if (rest < 0) {
    rest += per_hour;
    --hours;
  }
  sum.hours = narrow(sum.hours + hours);
  sum.rest = narrow(rest);
}

}  // namespace

void add_held(Held& sum, std::int64_t amount, Duration length, std::int64_t unit) {
  GANTRY_ASSERT(amount >= 0 && length.us >= 0 && unit >= 1, "an amount held for some time");
  carry(sum, sum.rest + static_cast<Wide>(amount) * length.us, unit);
}

void add_held(Held& sum, const Held& more, std::int64_t unit) {
  sum.hours = narrow(static_cast<Wide>(sum.hours) + more.hours);
  carry(sum, static_cast<Wide>(sum.rest) + more.rest, unit);
}

void take_held(Held& sum, const Held& less, std::int64_t unit) {
  sum.hours = narrow(static_cast<Wide>(sum.hours) - less.hours);
  carry(sum, static_cast<Wide>(sum.rest) - less.rest, unit);
}

std::int64_t thousandths_of_hours(const Held& held, std::int64_t unit) {
  const Wide per_hour = static_cast<Wide>(unit) * kMicrosecondsPerHour;
  const Wide rest = (static_cast<Wide>(held.rest) * 1000 + per_hour / 2) / per_hour;
  return narrow(static_cast<Wide>(held.hours) * 1000 + rest);
}

std::string format_hours(const Held& held, std::int64_t unit) {
  return format_money(Money{thousandths_of_hours(held, unit) * 1000}, 3);
}

Money add_charge(Exact& sum, std::int64_t amount, std::int64_t unit, Money price, Duration length,
                 std::int64_t factor, std::int64_t other_factor) {
  GANTRY_ASSERT(amount >= 0 && unit >= 1 && unit <= 2500 && length.us >= 0, "a thing that is held");
  GANTRY_ASSERT(price.micros >= 0 && price.micros <= kMostPrice, "a price");
  const Money before = sum.booked(unit);
  const Wide divisor = Exact::divisor(unit);
  // The product is made in two steps, so that none needs more than 128 bits: price and factors are
  // below 2^70, amount and length together below 2^96. Whole millionths of the first step are split
  // off before the second.
  const Wide rate = static_cast<Wide>(price.micros) * factor * other_factor;
  const Wide span = static_cast<Wide>(amount) * length.us;
  const Wide high = rate / divisor;
  const Wide low = rate % divisor;
  const Wide span_high = span / divisor;
  const Wide span_low = span % divisor;
  // Exactly: rate x span / divisor = high x span + low x span_high + low x span_low / divisor.
  const Wide last = low * span_low + sum.rest;
  sum.whole.micros = narrow(sum.whole.micros + high * span + low * span_high + last / divisor);
  sum.rest = narrow(last % divisor);
  return sum.booked(unit) - before;
}

}  // namespace gantry
