#include "common/proto/job_text.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "common/limits.h"
#include "common/text/text.h"

namespace gantry {
namespace {

// Takes a number off the front of `text`. Returns nullopt if there is none, or if it is above
// `high`.
std::optional<std::uint64_t> take_number(std::string_view& text, std::uint64_t high) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value > high) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return value;
}

bool take_char(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// Takes "5", "0-9" or "0-9:2" off the front. The last index becomes one that the step really
// reaches.
std::optional<IndexRange> take_range(std::string_view& text) {
  const auto first = take_number(text, kMaxArrayIndex);
  if (!first) return std::nullopt;
  std::uint64_t last = *first;
  std::uint64_t step = 1;
  if (take_char(text, '-')) {
    const auto given = take_number(text, kMaxArrayIndex);
    if (!given || *given < *first) return std::nullopt;
    last = *given;
    if (take_char(text, ':')) {
      const auto written = take_number(text, kMaxArrayIndex);
      if (!written || *written == 0) return std::nullopt;
      step = *written;
    }
  }
  last -= (last - *first) % step;
  if (last == *first) step = 1;
  return IndexRange{static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(last),
                    static_cast<std::uint32_t>(step)};
}

bool sorted_and_disjoint(const std::vector<IndexRange>& ranges) {
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first <= ranges[i - 1].last) return false;
  return true;
}

// Ranges that overlap or interleave are expanded, sorted, and compressed again.
std::vector<IndexRange> untangle(const std::vector<IndexRange>& ranges) {
  std::vector<std::uint32_t> all;
  for (const IndexRange& range : ranges)
    for (std::uint64_t i = range.first; i <= range.last; i += range.step)
      all.push_back(static_cast<std::uint32_t>(i));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return compress_indexes(all);
}

// Takes comma-separated ranges off the front of `text`; sorted and disjoint.
Result<std::vector<IndexRange>> take_ranges(std::string_view whole, std::string_view& text) {
  std::vector<IndexRange> ranges;
  std::uint64_t count = 0;
  do {
    const std::optional<IndexRange> range = take_range(text);
    if (!range)
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("array \"{}\": expected an index or a range such as 0-9 or 0-9:2, with "
                      "indexes up to {}, at position {}",
                      whole, kMaxArrayIndex, whole.size() - text.size() + 1));
    count += count_indexes({&*range, 1});
    if (count > kMaxArrayTasks)
      return fail(ErrorCode::limit_exceeded,
                  fmt::format("array \"{}\" has more than {} tasks", whole, kMaxArrayTasks));
    ranges.push_back(*range);
  } while (take_char(text, ','));
  if (!sorted_and_disjoint(ranges)) ranges = untangle(ranges);
  return ranges;
}

// Takes "%4" off the front if it is there.
Result<std::optional<std::uint32_t>> take_limit(std::string_view whole, std::string_view& text) {
  if (!take_char(text, '%')) return std::optional<std::uint32_t>{};
  const auto limit = take_number(text, kMaxArrayTasks);
  if (!limit || *limit == 0)
    return fail(ErrorCode::invalid_argument,
                fmt::format("array \"{}\": after % comes the number of tasks that may run at once, "
                            "1 to {}",
                            whole, kMaxArrayTasks));
  return std::optional(static_cast<std::uint32_t>(*limit));
}

}  // namespace

Result<ArraySpec> parse_index_ranges(std::string_view text) {
  std::string_view rest = text;
  ArraySpec spec;
  Result<std::vector<IndexRange>> ranges = take_ranges(text, rest);
  if (!ranges) return tl::unexpected(ranges.error());
  spec.ranges = std::move(*ranges);
  const Result<std::optional<std::uint32_t>> limit = take_limit(text, rest);
  if (!limit) return tl::unexpected(limit.error());
  spec.max_running = *limit;
  if (!rest.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("array \"{}\": unexpected '{}' at position {}", text, rest.front(),
                            text.size() - rest.size() + 1));
  return spec;
}

std::string format_index_ranges(std::span<const IndexRange> ranges) {
  std::string out;
  for (const IndexRange& range : ranges) {
    if (!out.empty()) out += ',';
    out += std::to_string(range.first);
    if (range.last == range.first) continue;
    out += fmt::format("-{}", range.last);
    if (range.step != 1) out += fmt::format(":{}", range.step);
  }
  return out;
}

std::string format_array_spec(const ArraySpec& spec) {
  std::string out = format_index_ranges(spec.ranges);
  if (spec.max_running) out += fmt::format("%{}", *spec.max_running);
  return out;
}

std::vector<IndexRange> compress_indexes(std::span<const std::uint32_t> indexes) {
  std::vector<IndexRange> ranges;
  for (std::size_t i = 0; i < indexes.size();) {
    // Finds the longest run with one step from here. Two indexes are a run only if they are
    // neighbours.
    std::size_t end = i + 1;
    const std::uint32_t step = end < indexes.size() ? indexes[end] - indexes[i] : 1;
    while (end < indexes.size() && indexes[end] - indexes[end - 1] == step) ++end;
    if (step != 1 && end - i < 3) end = i + 1;
    ranges.push_back({indexes[i], indexes[end - 1], end - i == 1 ? 1 : step});
    i = end;
  }
  return ranges;
}

std::uint64_t count_indexes(std::span<const IndexRange> ranges) {
  std::uint64_t count = 0;
  for (const IndexRange& range : ranges) count += (range.last - range.first) / range.step + 1;
  return count;
}

bool contains_index(std::span<const IndexRange> ranges, std::uint32_t index) {
  return std::any_of(ranges.begin(), ranges.end(), [index](const IndexRange& range) {
    return index >= range.first && index <= range.last && (index - range.first) % range.step == 0;
  });
}

Result<proto::JobRef> parse_job_ref(std::string_view text) {
  const auto wrong = [text] {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("\"{}\" is not a job id: write 123, 123_7, 123_[1-10,12] or 123+1", text));
  };
  std::string_view rest = text;
  const auto id = take_number(rest, UINT64_MAX);
  if (!id || *id == 0) return wrong();
  proto::JobRef ref{.job = JobId(*id), .tasks = {}};
  if (rest.empty()) return ref;
  if (take_char(rest, '+')) {
    const auto component = take_number(rest, kMaxHetParts - 1);
    if (!component || !rest.empty()) return wrong();
    ref.component = static_cast<std::uint32_t>(*component);
    return ref;
  }
  if (!take_char(rest, '_')) return wrong();
  const bool bracket = take_char(rest, '[');
  Result<std::vector<IndexRange>> ranges = take_ranges(text, rest);
  if (!ranges) return tl::unexpected(ranges.error());
  ref.tasks = std::move(*ranges);
  if (bracket) {
    TRY(take_limit(text, rest));
    if (!take_char(rest, ']')) return wrong();
  }
  if (!rest.empty()) return wrong();
  return ref;
}

std::string format_job_ref(const proto::JobRef& ref) {
  if (ref.component) return fmt::format("{}+{}", ref.job.value(), *ref.component);
  if (ref.tasks.empty()) return std::to_string(ref.job.value());
  const bool single = ref.tasks.size() == 1 && ref.tasks[0].first == ref.tasks[0].last;
  return fmt::format("{}_{}{}{}", ref.job.value(), single ? "" : "[",
                     format_index_ranges(ref.tasks), single ? "" : "]");
}

Result<WarnSignal> parse_warn_signal(std::string_view text) {
  constexpr std::int64_t kDefaultBefore = 60;
  constexpr std::int64_t kMaxBefore = 65'535;
  std::string_view rest = text;
  WarnSignal warn;
  if (rest.size() >= 2 && rest[1] == ':') {
    if (rest[0] != 'B' && rest[0] != 'b')
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--signal \"{}\": only the prefix B: is supported", text));
    warn.batch_shell_only = true;
    rest.remove_prefix(2);
  }
  std::int64_t before = kDefaultBefore;
  if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
    const Result<std::int64_t> given =
        parse_integer("the time before --signal", rest.substr(at + 1), 0, kMaxBefore);
    if (!given) return tl::unexpected(given.error());
    before = *given;
    rest = rest.substr(0, at);
  }
  const Result<std::int32_t> signal = parse_signal(rest);
  if (!signal) return tl::unexpected(signal.error());
  warn.signal = *signal;
  warn.before = seconds(before);
  return warn;
}

}  // namespace gantry
