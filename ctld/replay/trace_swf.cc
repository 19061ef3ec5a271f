// Reads Standard Workload Format, version 2.2 (Chapin et al. 1999): 18 numbers on a line, ';'
// comments, and -1 for unknown values.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "ctld/replay/trace.h"

namespace gantry::replay {
namespace {

constexpr std::array<std::string_view, 18> kNames{
    "job number",     "submit time",      "wait time",   "run time",
    "processors",     "cpu time used",    "memory used", "processors requested",
    "time requested", "memory requested", "status",      "user",
    "group",          "executable",       "queue",       "partition",
    "preceding job",  "think time"};
constexpr std::size_t kNeeded = 9;  // fields that a line must have
constexpr std::string_view kBlanks = " \t\r\v\f";

using Numbers = std::array<double, 18>;

struct Reader {
  const std::string& name;
  std::int64_t line = 0;
  std::size_t longer = 0;  // lines with more than 18 fields

  Result<Numbers> numbers(std::string_view text) {
    Numbers f;
    f.fill(-1);
    std::size_t count = 0;
    std::size_t from = text.find_first_not_of(kBlanks);
    for (; from != std::string_view::npos && count < f.size(); ++count) {
      const std::size_t to = std::min(text.find_first_of(kBlanks, from), text.size());
      std::string_view word = text.substr(from, to - from);
      if (word.starts_with('+')) word.remove_prefix(1);
      const auto [last, error] = std::from_chars(word.data(), word.data() + word.size(), f[count]);
      if (error != std::errc{} || last != word.data() + word.size() || !std::isfinite(f[count]) ||
          std::abs(f[count]) > 1e15)
        return wrong_line(
            name, line, kNames[count],
            fmt::format("must be a number, not \"{}\"", text.substr(from, to - from)));
      from = text.find_first_not_of(kBlanks, to);
    }
    if (count < kNeeded)
      return wrong_line(name, line, kNames[count],
                        fmt::format("is missing: a line has 18 numbers, this one {}", count));
    longer += from != std::string_view::npos ? 1 : 0;
    if (f[1] < 0) return wrong_line(name, line, kNames[1], "must not be negative");
    for (const std::size_t i : {1u, 2u, 3u, 8u})
      if (f[i] > kMostSeconds)
        return wrong_line(
            name, line, kNames[i],
            fmt::format("must be seconds, at most {:.0f}, not {:.0f}", kMostSeconds, f[i]));
    return f;
  }
};

TraceJob job_of(const Numbers& f, std::int64_t line, std::size_t position, TenantField tenant) {
  TraceJob job;
  job.id = f[0] > 0 ? static_cast<std::uint64_t>(f[0]) : position;
  job.line = line;
  job.submit = Instant{std::llround(f[1] * 1e6)};
  job.logged_wait = seconds(std::llround(std::max(f[2], 0.0)));
  job.run = Duration{std::llround(std::max(f[3], 0.0) * 1e6)};
  if (f[8] > 0) job.limit = Duration{std::llround(f[8] * 1e6)};
  job.processors = static_cast<std::uint32_t>(std::clamp(std::max(f[4], f[7]), 0.0, 1e7));
  const double of = f[tenant == TenantField::user ? 11 : tenant == TenantField::group ? 12 : 14];
  if (of >= 0) job.tenant = fmt::format("{:.0f}", of);
  if (f[11] >= 0) job.user = fmt::format("{:.0f}", f[11]);
  return job;
}

}  // namespace

Result<Trace> parse_swf(std::string_view text, const std::string& name, TenantField tenant) {
  Trace trace;
  trace.name = name;
  Reader reader{name};
  // A job that was swapped out or saved has one line for the whole job and one for each part
  // (status 2 to 4). If the line for the whole job is there, the others add nothing.
  std::vector<TraceJob> parts;
  std::set<std::uint64_t> whole;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++reader.line;
    const std::size_t first = line.find_first_not_of(kBlanks);
    if (first == std::string_view::npos || line[first] == ';') continue;
    ASSIGN(f, reader.numbers(line));
    TraceJob job = job_of(*f, reader.line, trace.jobs.size() + parts.size() + 1, tenant);
    const bool part = (*f)[10] >= 2 && (*f)[10] <= 4;
    if (!part && (*f)[0] > 0) whole.insert(job.id);
    (part ? parts : trace.jobs).push_back(std::move(job));
  }
  const std::size_t of_whole =
      std::erase_if(parts, [&](const TraceJob& j) { return whole.contains(j.id); });
  if (of_whole > 0)
    trace.notes.push_back(fmt::format(
        "{} lines are parts of jobs that have a line for all of it, and were left out", of_whole));
  if (reader.longer > 0)
    trace.notes.push_back(
        fmt::format("{} lines have more than 18 numbers; the rest was left out", reader.longer));
  std::move(parts.begin(), parts.end(), std::back_inserter(trace.jobs));
  std::stable_sort(trace.jobs.begin(), trace.jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.id < b.id; });
  return trace;
}

}  // namespace gantry::replay
