#include "config/tenancy/amounts.h"

#include <fmt/core.h>

#include <array>

#include "common/text/text.h"

namespace gantry::tenancy {
namespace {

using Wide = __int128;

tl::unexpected<Error> wrong(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

struct Decimal {  // digits / 10^places
  Wide digits = 0;
  int places = 0;
};

// Takes a number like "12.5" off the front of `text`; at most 18 digits.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal out;
  std::size_t at = 0;
  std::size_t digits = 0;
  bool point = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      if (++digits > 18) return std::nullopt;
      out.digits = out.digits * 10 + (c - '0');
      if (point) ++out.places;
    } else {
      break;
    }
  }
  if (digits == 0) return std::nullopt;
  text.remove_prefix(at);
  return out;
}

Wide power_of_ten(int n) {
  Wide out = 1;
  while (n-- > 0) out *= 10;
  return out;
}

struct Suffix {
  std::string_view text;
  Wide factor;  // in thousand-millionths
};
constexpr Wide kOne = 1'000'000'000;
constexpr std::array<Suffix, 16> kSuffixes{{{"", kOne},
                                            {"n", 1},
                                            {"u", 1'000},
                                            {"m", 1'000'000},
                                            {"k", kOne * 1'000},
                                            {"M", kOne * 1'000'000},
                                            {"G", kOne * 1'000'000'000},
                                            {"T", kOne * 1'000'000'000'000},
                                            {"P", kOne * 1'000'000'000'000'000},
                                            {"E", kOne * 1'000'000'000'000'000'000},
                                            {"Ki", kOne << 10},
                                            {"Mi", kOne << 20},
                                            {"Gi", kOne << 30},
                                            {"Ti", kOne << 40},
                                            {"Pi", kOne << 50},
                                            {"Ei", kOne << 60}}};

// The exponent in "e3" or "E-2"; nullopt if the text is none.
std::optional<int> exponent_of(std::string_view text) {
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  text.remove_prefix(1);
  const bool negative = text[0] == '-';
  if (text[0] == '-' || text[0] == '+') text.remove_prefix(1);
  if (text.empty() || text.size() > 2) return std::nullopt;
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  if (value > 18) return std::nullopt;
  return negative ? -value : value;
}

tl::unexpected<Error> not_a_quantity(std::string_view text) {
  return wrong(fmt::format(
      "\"{}\" is not a quantity; use a number, or one with m, k, M, G, T, P, Ki, Mi, Gi, Ti or Pi",
      text));
}

Result<std::int64_t> fitting(Wide value, std::string_view text) {
  if (value > kMostAmount) return wrong(fmt::format("\"{}\" is too much", text));
  return static_cast<std::int64_t>(value);
}

Wide divide_up(Wide value, Wide by) {
  return (value + by - 1) / by;
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  if (text == "0") return 0;
  std::string full(text);
  if (full.ends_with("B") && full.size() > 1 && full[full.size() - 2] >= '0' &&
      full[full.size() - 2] <= '9') {  // bytes
    std::string_view rest = text.substr(0, text.size() - 1);
    return parse_integer("memory", rest, 0, kMostAmount);
  }
  if (full.ends_with('i')) full += 'B';
  const bool has_unit = !full.empty() && (full.back() < '0' || full.back() > '9');
  const auto parsed = parse_memory(full);
  if (!has_unit || !parsed)
    return wrong(fmt::format(
        "\"{}\" is not an amount of memory; use a whole number with Ki, Mi, Gi or Ti", text));
  return *parsed;
}

Result<std::int64_t> parse_cores(std::string_view text) {
  const auto bad = [&] {
    return wrong(fmt::format("\"{}\" is not a number of cores; use 4, 0.5 or 500m", text));
  };
  if (text.ends_with('m')) {
    std::string_view rest = text.substr(0, text.size() - 1);
    const auto number = take_decimal(rest);
    if (!number || !rest.empty() || number->places > 0) return bad();
    return fitting(number->digits, text);
  }
  const auto number = parse_thousandths(text);
  if (!number) return bad();
  return number->value();  // thousandths of a core
}

}  // namespace

Result<Thousandths> parse_thousandths(std::string_view text) {
  std::string_view rest = text;
  const auto number = take_decimal(rest);
  if (!number || !rest.empty() || number->places > 3)
    return wrong(fmt::format("\"{}\" is not a number with at most three decimal places", text));
  ASSIGN(thousandths, fitting(number->digits * power_of_ten(3 - number->places), text));
  return Thousandths{*thousandths};
}

std::string show_thousandths(std::int64_t thousandths) {
  std::string text = fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

// Returns thousandths, because quotas of MIG slices are parts of a GPU.
Result<std::int64_t> parse_gpus(std::string_view text) {
  std::string_view rest = text;
  const auto number = take_decimal(rest);
  if (!number || !rest.empty() || number->places > 3)
    return wrong(fmt::format("\"{}\" is not a number of GPUs; at most three decimal places", text));
  return fitting(number->digits * power_of_ten(3 - number->places), text);
}

Result<std::int64_t> parse_rate_of(std::string_view of, std::string_view text) {
  if (text == "0") return 0;
  const auto rate = parse_rate(text);
  if (rate) return *rate;
  return wrong(fmt::format("\"{}\" is not a rate of {} per second, such as 500M or 10G", text, of));
}

Result<std::int64_t> parse_amount(Resource resource, std::string_view text) {
  switch (resource) {
    case Resource::cpu: return parse_cores(text);
    case Resource::gpu: return parse_gpus(text);
    case Resource::memory:
    case Resource::scratch: return parse_bytes(text);
    case Resource::io: return parse_rate_of("bytes", text);
    case Resource::net: return parse_rate_of("bits", text);
  }
  return wrong("no such resource");
}

std::string show_amount(Resource resource, std::int64_t amount) {
  if (resource == Resource::cpu || resource == Resource::gpu) return show_thousandths(amount);
  if (resource == Resource::io || resource == Resource::net) return format_rate(amount);
  std::string text = format_memory(amount);
  if (text.back() >= 'C') text += 'i';
  return text;
}

Result<std::optional<std::int64_t>> parse_part(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  std::string_view rest = text.substr(0, text.size() - 1);
  while (rest.ends_with(' ')) rest.remove_suffix(1);
  const auto number = take_decimal(rest);
  if (!number || !rest.empty() || number->places > 4 ||
      number->digits > 100 * power_of_ten(number->places))
    return wrong(fmt::format("\"{}\" is not a part of the cluster; use 0% to 100%", text));
  return static_cast<std::int64_t>(number->digits * power_of_ten(4 - number->places));
}

Result<Thousandths> parse_quantity(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with('+')) rest.remove_prefix(1);
  const auto number = take_decimal(rest);
  if (!number) return not_a_quantity(text);
  Wide factor = 0;
  Wide divisor = 1;
  if (const auto exponent = exponent_of(rest)) {
    factor = kOne * power_of_ten(std::max(*exponent, 0));
    divisor = power_of_ten(std::max(-*exponent, 0));
  } else {
    for (const Suffix& suffix : kSuffixes)
      if (suffix.text == rest) factor = suffix.factor;
    if (factor == 0) return not_a_quantity(text);
  }
  // The value is counted in thousand-millionths. An amount that does not fit into 128 bits would be
  // refused anyway.
  Wide value = 0;
  if (__builtin_mul_overflow(number->digits, factor, &value))
    return wrong(fmt::format("\"{}\" is too much", text));
  value = divide_up(value, divisor * power_of_ten(number->places));
  const Wide thousandths = divide_up(value, 1'000'000);
  if (thousandths > INT64_MAX) return wrong(fmt::format("\"{}\" is too much", text));
  return Thousandths{static_cast<std::int64_t>(thousandths)};
}

Result<std::int64_t> amount_of_quantity(Resource resource, std::string_view text) {
  ASSIGN(number, parse_quantity(text));
  if (resource == Resource::gpu && thousandths_of(times_in(*number)) != *number)
    return wrong(fmt::format("\"{}\" is not a whole number of GPUs", text));
  if (resource == Resource::cpu || resource == Resource::gpu) return fitting(number->value(), text);
  return fitting(divide_up(number->value(), 1000), text);  // bytes
}

}  // namespace gantry::tenancy
