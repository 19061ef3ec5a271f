#include "common/policy/pattern.h"

#include <charconv>
#include <limits>
#include <optional>

#include <fmt/core.h>

#include "common/text/text.h"

namespace gantry::policy {
namespace {

bool measured(Measure measure) {
  return measure == Measure::number || measure == Measure::memory || measure == Measure::duration;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Result<std::int64_t> operand(Measure measure, std::string_view text) {
  text = trim(text);
  if (measure == Measure::memory) return parse_memory(text);
  if (measure == Measure::number)
    return parse_integer("the number", text, 0, std::numeric_limits<std::int64_t>::max());
  ASSIGN(duration, parse_duration(text));
  if (!*duration) return fail(ErrorCode::invalid_argument, "\"unlimited\" is written as \"\"");
  return (*duration)->seconds();
}

std::optional<std::int64_t> number_of(std::string_view value) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (error != std::errc{} || end != value.data() + value.size()) return std::nullopt;
  return out;
}

// A part of a pattern: an operator and the value after it.
struct Part {
  enum class Op : std::uint8_t {
    equal,
    not_equal,
    above,
    at_least,
    below,
    at_most,
    within,
    without
  };
  Op op = Op::equal;
  std::string_view first, second;  // both ends of a range
};

Part part_of(Measure measure, std::string_view text) {
  using Op = Part::Op;
  text = trim(text);
  if (measured(measure)) {
    if (text.starts_with(">=")) return {Op::at_least, text.substr(2), {}};
    if (text.starts_with("<=")) return {Op::at_most, text.substr(2), {}};
    if (text.starts_with(">")) return {Op::above, text.substr(1), {}};
    if (text.starts_with("<")) return {Op::below, text.substr(1), {}};
  }
  const bool negated = text.starts_with("!");
  if (negated) text.remove_prefix(1);
  // A duration such as "2-00" has a hyphen of its own, so its ranges are written with "..".
  const std::string_view between = measure == Measure::duration ? ".." : "-";
  const auto at = measured(measure) ? text.find(between, 1) : std::string_view::npos;
  if (at != std::string_view::npos)
    return {negated ? Op::without : Op::within, text.substr(0, at),
            text.substr(at + between.size())};
  return {negated ? Op::not_equal : Op::equal, text, {}};
}

bool holds_number(Measure measure, const Part& part, std::string_view value) {
  using Op = Part::Op;
  const bool anything = part.first == "?*" || part.first == "*";
  if (part.op == Op::equal || part.op == Op::not_equal) {
    const bool equal = part.op == Op::equal;
    if (anything) return (part.first == "*" || !value.empty()) == equal;
    if (part.first.empty()) return value.empty() == equal;
  }
  const auto number = number_of(value);
  const auto first = operand(measure, part.first);
  if (!first) return false;
  // An empty value means no limit (a time) or no request (an amount): it differs from each number.
  if (!number) return part.op == Op::not_equal || part.op == Op::without;
  switch (part.op) {
    case Op::equal: return *number == *first;
    case Op::not_equal: return *number != *first;
    case Op::above: return *number > *first;
    case Op::at_least: return *number >= *first;
    case Op::below: return *number < *first;
    case Op::at_most: return *number <= *first;
    case Op::within:
    case Op::without: break;
  }
  const auto second = operand(measure, part.second);
  if (!second) return false;
  return (*number >= *first && *number <= *second) == (part.op == Op::within);
}

bool holds(Measure measure, std::string_view text, std::string_view value) {
  const Part part = part_of(measure, text);
  if (measured(measure)) return holds_number(measure, part, value);
  return glob(part.first, value) == (part.op == Part::Op::equal);
}

// Calls f for each piece of the text between separators, until it returns false.
template <class F>
bool all_pieces(std::string_view text, char separator, F f) {
  while (true) {
    const auto at = text.find(separator);
    if (!f(text.substr(0, at))) return false;
    if (at == std::string_view::npos) return true;
    text.remove_prefix(at + 1);
  }
}

}  // namespace

bool glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  std::size_t star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<void> check_pattern(Measure measure, std::string_view pattern) {
  if (pattern.size() > kMostPatternBytes)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the pattern has {} bytes; at most {} are allowed", pattern.size(),
                            kMostPatternBytes));
  Result<void> out;
  all_pieces(pattern, '|', [&](std::string_view alternative) {
    return all_pieces(alternative, '&', [&](std::string_view text) {
      const Part part = part_of(measure, text);
      if (measure == Measure::flag && part.first != "true" && part.first != "false") {
        out = fail(ErrorCode::invalid_argument,
                   fmt::format("\"{}\" is neither true nor false", part.first));
        return false;
      }
      const bool word = part.first.empty() || part.first == "*" || part.first == "?*";
      const bool compares = part.op != Part::Op::equal && part.op != Part::Op::not_equal;
      if (!measured(measure) || (word && !compares)) return true;
      for (const std::string_view one : {part.first, part.second}) {
        const bool range = part.op == Part::Op::within || part.op == Part::Op::without;
        if (one.data() == part.second.data() && !range) continue;
        if (const auto r = operand(measure, one); !r) {
          out = tl::unexpected(r.error());
          return false;
        }
      }
      return true;
    });
  });
  return out;
}

bool matches(Measure measure, std::string_view pattern, std::string_view value) {
  bool any = false;
  all_pieces(pattern, '|', [&](std::string_view alternative) {
    any = all_pieces(alternative, '&',
                     [&](std::string_view text) { return holds(measure, text, value); });
    return !any;
  });
  return any;
}

}  // namespace gantry::policy
