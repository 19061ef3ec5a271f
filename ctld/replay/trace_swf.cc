// Standard Workload Format, version 2.2 (Chapin et al. 1999): 18 numbers on a line, ';' comments.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

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

}  // namespace

Result<Trace> parse_swf(const std::string& text, const std::string& name, TenantField tenant) {
  Trace trace;
  trace.name = name;
  std::int64_t line_number = 0;
  std::size_t never_ran = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line(text.data() + at, end - at);
    at = end + 1;
    ++line_number;
    std::array<double, 18> f;
    f.fill(-1);
    std::size_t count = 0;
    std::size_t from = line.find_first_not_of(" \t\r");
    if (from == std::string_view::npos || line[from] == ';') continue;
    while (from != std::string_view::npos && count < f.size()) {
      const std::size_t to = std::min(line.find_first_of(" \t\r", from), line.size());
      const auto [last, error] = std::from_chars(line.data() + from, line.data() + to, f[count]);
      if (error != std::errc{} || last != line.data() + to || std::abs(f[count]) > 1e15)
        return wrong_line(
            name, line_number, kNames[count],
            fmt::format("must be a number, not \"{}\"", line.substr(from, to - from)));
      ++count;
      from = line.find_first_not_of(" \t\r", to);
    }
    if (count < kNeeded)
      return wrong_line(name, line_number, kNames[count],
                        fmt::format("is missing: a line has 18 numbers, this one {}", count));
    if (f[1] < 0) return wrong_line(name, line_number, kNames[1], "must not be negative");
    TraceJob job;
    job.id = static_cast<std::uint64_t>(f[0]);
    job.line = line_number;
    job.submit = Instant{std::llround(f[1] * 1e6)};
    job.logged_wait = seconds(std::llround(std::max(f[2], 0.0)));
    job.run = Duration{std::llround(std::max(f[3], 0.0) * 1e6)};
    if (f[8] > 0) job.limit = Duration{std::llround(f[8] * 1e6)};
    job.processors = static_cast<std::uint32_t>(std::clamp(std::max(f[4], f[7]), 0.0, 1e7));
    const double of = f[tenant == TenantField::user ? 11 : tenant == TenantField::group ? 12 : 14];
    if (of >= 0) job.tenant = fmt::format("{:.0f}", of);
    if (f[11] >= 0) job.user = fmt::format("{:.0f}", f[11]);
    if (job.run.us > 0 && job.processors > 0)
      trace.jobs.push_back(std::move(job));
    else
      ++never_ran;
  }
  if (never_ran > 0)
    trace.notes.push_back(fmt::format("{} jobs that never ran were left out", never_ran));
  std::stable_sort(trace.jobs.begin(), trace.jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.id < b.id; });
  return trace;
}

}  // namespace gantry::replay
