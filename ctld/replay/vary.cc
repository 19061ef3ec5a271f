#include "ctld/replay/vary.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "config/values.h"

namespace gantry::replay {
namespace {

Result<double> number(std::string_view key, std::string_view text, double low, double high) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= low) ||
      !(value <= high))
    return fail(ErrorCode::usage, fmt::format("variation: {}: must be a number of {} to {}, not "
                                              "\"{}\"",
                                              key, low, high, text));
  return value;
}

Result<void> set_value(Variation& v, std::string_view key, std::string_view text) {
  if (key == "from" || key == "length") {
    const auto d = config::parse_length(text);
    if (!d) return fail(ErrorCode::usage, fmt::format("variation: {}: {}", key, d.error().message));
    if (key == "from")
      v.from = *d;
    else
      v.length = *d;
    return {};
  }
  if (key == "arrivals" || key == "large") {
    ASSIGN(n, key == "large" ? number(key, text, 0, 1) : number(key, text, 0.01, 100));
    (key == "large" ? v.large : v.arrivals) = *n;
    return {};
  }
  if (key != "seed")
    return fail(ErrorCode::usage, fmt::format("variation: \"{}\": there are seed=N, permute, "
                                              "arrivals=X, from=T, length=T and large=X",
                                              key));
  ASSIGN(n, number(key, text, 0, 1e9));
  v.seed = static_cast<std::uint64_t>(*n);
  return {};
}

// Spreads the work of one GPU over several: the time becomes shorter in proportion, but stays at
// least a second.
void make_large(TraceJob& job, std::uint32_t gpus) {
  const auto shorter = [&](Duration d) { return std::max(seconds(1), Duration{d.us / gpus}); };
  if (job.processors > 0) job.processors = gpus;
  if (job.gpus > 0) job.gpus = gpus;
  job.cpus *= gpus;
  job.nodes = 0;
  job.run = shorter(job.run);
  if (job.limit) job.limit = shorter(*job.limit);
}

}  // namespace

std::uint64_t scrambled(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

double drawn(std::uint64_t seed, std::uint64_t n) {
  return static_cast<double>(scrambled(scrambled(seed) + n) >> 11) * 0x1p-53;
}

Result<Variation> parse_variation(const std::string& text) {
  Variation v;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view word = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (word == "permute") {
      v.permute = true;
      continue;
    }
    const std::size_t equals = std::min(word.find('='), word.size());
    const auto set =
        set_value(v, word.substr(0, equals), word.substr(std::min(equals + 1, word.size())));
    if (!set) return tl::unexpected(set.error());
  }
  return v;
}

Result<void> vary(Trace& trace, const Variation& v) {
  auto& jobs = trace.jobs;
  const Instant first = jobs.front().submit;
  std::erase_if(jobs, [&](const TraceJob& j) {
    const Duration at = j.submit - first;
    return at < v.from || (v.length && at >= v.from + *v.length);
  });
  if (jobs.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: no job in that part of it", trace.name));
  if (v.permute)  // Fisher and Yates; each limit stays with its run time
    for (std::size_t i = jobs.size() - 1; i > 0; --i) {
      const auto other = static_cast<std::size_t>(drawn(v.seed, i) * static_cast<double>(i + 1));
      std::swap(jobs[i].run, jobs[other].run);
      std::swap(jobs[i].limit, jobs[other].limit);
      std::swap(jobs[i].unlimited, jobs[other].unlimited);
    }
  const Instant begin = jobs.front().submit;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    TraceJob& job = jobs[i];
    if (v.arrivals != 1)
      job.submit =
          begin + Duration{std::llround(static_cast<double>((job.submit - begin).us) * v.arrivals)};
    const std::uint64_t n = jobs.size() + 2 * i;
    if (std::max(job.processors, job.gpus) == 1 && drawn(v.seed, n) < v.large)
      make_large(job, 8 * (1 + static_cast<std::uint32_t>(drawn(v.seed, n + 1) * 4)));
  }
  return {};
}

}  // namespace gantry::replay
