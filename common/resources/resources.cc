// Arithmetic and text of Resources. A sum that overflows and a difference below zero are bugs of
// ours.
#include "common/resources/resources.h"

#include <fmt/format.h>

#include <charconv>

#include "common/assert.h"
#include "common/resources/gpu.h"
#include "common/resources/gres.h"
#include "common/text/text.h"

namespace gantry {

Resources& Resources::operator+=(const Resources& o) {
  for (std::size_t i = 0; i < kResourceCount; ++i)
    GANTRY_ASSERT(!__builtin_add_overflow(v_[i], o.v_[i], &v_[i]), kResourceTable[i].name);
  return *this;
}

Resources& Resources::operator-=(const Resources& o) {
  for (std::size_t i = 0; i < kResourceCount; ++i) {
    GANTRY_ASSERT(!__builtin_sub_overflow(v_[i], o.v_[i], &v_[i]), kResourceTable[i].name);
    GANTRY_ASSERT(v_[i] >= 0, kResourceTable[i].name);
  }
  return *this;
}

// Writes thousandths as a decimal number: 4000 -> "4", 500 -> "0.5", 1250 -> "1.25".
std::string format_thousandths(std::int64_t thousandths) {
  std::string text = fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

namespace {

std::string format_amount(const ResourceRow& row, std::int64_t amount) {
  switch (row.id) {
    case Resource::cpu:
    case Resource::gpu: return format_thousandths(amount);
    case Resource::memory:
    case Resource::scratch: return format_memory(amount);
    case Resource::io:
    case Resource::net: return format_rate(amount);
  }
  return std::to_string(amount);
}

// A rate to three decimal places, in the largest unit of which it is at least one.
std::string in_rate(std::int64_t rate, std::string_view unit) {
  constexpr std::int64_t kGiga = 1'000'000'000, kMega = 1'000'000;
  const bool large = rate >= kGiga || rate <= -kGiga;
  std::string text =
      fmt::format("{:.3f}", static_cast<double>(rate) / static_cast<double>(large ? kGiga : kMega));
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return fmt::format("{} {}{}/s", text, large ? 'G' : 'M', unit);
}

std::string in_bytes(std::int64_t bytes) {
  constexpr std::int64_t kMiB = 1 << 20, kGiB = 1 << 30;
  const bool large = bytes >= kGiB || bytes <= -kGiB;
  std::string text =
      fmt::format("{:.2f}", static_cast<double>(bytes) / static_cast<double>(large ? kGiB : kMiB));
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text + (large ? " GiB" : " MiB");
}

}  // namespace

std::optional<std::int64_t> parse_rate(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  constexpr std::int64_t kMost = 1'000'000'000'000'000'000;
  std::string_view number = text;
  std::int64_t unit = 1;
  const auto at = number.empty() ? std::string_view::npos : kUnits.find(number.back());
  if (at != std::string_view::npos) {
    for (std::size_t i = 0; i <= at; ++i) unit *= 1000;
    number.remove_suffix(1);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || number.empty() ||
      value <= 0 || value > kMost / unit)
    return std::nullopt;
  return value * unit;
}

std::string format_rate(std::int64_t rate) {
  std::size_t steps = 0;
  for (; steps < 4 && rate != 0 && rate % 1000 == 0; ++steps) rate /= 1000;
  return std::to_string(rate) +
         std::string(std::string_view("KMGT").substr(0, steps).substr(steps == 0 ? 0 : steps - 1));
}

std::string amount_words(Resource r, std::int64_t amount) {
  switch (r) {
    case Resource::cpu:
      return fmt::format("{} core{}", format_thousandths(amount), amount == 1000 ? "" : "s");
    case Resource::memory: return in_bytes(amount);
    case Resource::gpu:
      return fmt::format("{} GPU{}", format_thousandths(amount), amount == 1000 ? "" : "s");
    case Resource::scratch: return in_bytes(amount) + " of scratch";
    case Resource::io: return in_rate(amount, "B") + " of io";
    case Resource::net: return in_rate(amount, "bit") + " of net";
  }
  return std::to_string(amount);
}

std::string to_string(const std::vector<GresCount>& gres) {
  std::string text;
  for (const GresCount& g : gres)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", g.name, g.count);
  return text;
}

std::string to_string(const Resources& r) {
  std::string text;
  for (const ResourceRow& row : kResourceTable) {
    if (r[row.id] == 0) continue;
    if (!text.empty()) text += ',';
    text += fmt::format("{}={}", row.name, format_amount(row, r[row.id]));
  }
  return text;
}

GANTRY_DEFINE_SPECIAL_MEMBERS(GpuDevice)
GANTRY_DEFINE_SPECIAL_MEMBERS(GpuInventory)

}  // namespace gantry
