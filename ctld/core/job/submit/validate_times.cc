// The checks of a job's times (its limit, when it may begin, its deadline) and of its rates; see
// validate.h.
#include <algorithm>

#include <fmt/core.h>

#include "common/limits.h"
#include "common/text/text.h"
#include "ctld/core/context.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr Duration kLeastTime = minutes(1);  // for a job with a deadline and no limit

tl::unexpected<Error> wrong_time(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

}  // namespace

Result<void> check_instant(const Context& ctx, std::string_view what, std::optional<Instant> t) {
  const Instant most = ctx.now + hours(24 * kMaxDurationDays);
  if (!t || (t->us >= 0 && *t <= most)) return {};
  return wrong_time(fmt::format("{} must be before {}", what, format_time(most)));
}

Result<void> check_rates(const JobSpec& spec) {
  const auto possible = [](std::uint64_t rate) {
    return rate == 0 || (rate >= std::uint64_t{kLeastRate} && rate <= std::uint64_t{kMostRate});
  };
  if (spec.network_rate != 0 && spec.network != NetworkMode::job)
    return fail(ErrorCode::invalid_argument,
                "only the traffic of a job with a network of its own (--network=job) is limited");
  if (!possible(spec.network_rate))
    return fail(ErrorCode::invalid_argument, "--net must be 100K to 10T, in bits per second");
  if (!possible(spec.io_rate))
    return fail(ErrorCode::invalid_argument, "--io must be 100K to 10T, in bytes per second");
  return {};
}

Result<void> check_times(const Context& ctx, const JobSpec& spec, std::optional<Duration> limit) {
  if (auto r = check_instant(ctx, "the begin time", spec.begin); !r) return r;
  if (auto r = check_instant(ctx, "the deadline", spec.deadline); !r) return r;
  if (!spec.deadline) return {};
  Instant begin = std::max(ctx.now, spec.begin.value_or(ctx.now));
  const auto& reservations = ctx.state.tenancy.reservations;
  if (const auto r = reservations.find(spec.reservation); r != reservations.end())
    begin = std::max(begin, r->second.from);
  const std::optional<Duration> least = spec.time_min ? spec.time_min : limit;
  const Instant end = begin + least.value_or(Duration{1});
  if (end <= *spec.deadline) return {};
  return wrong_time(
      fmt::format("the job cannot end before its deadline {}: with its {}time limit it ends at {} "
                  "if it starts as early as it may",
                  format_time(*spec.deadline), spec.time_min ? "least " : "", format_time(end)));
}

Result<void> check_time_min(std::optional<Duration> limit, JobSpec& spec) {
  if (spec.deadline && !spec.time_min && !spec.time_limit && !spec.unlimited_time &&
      (!limit || *limit > kLeastTime))
    spec.time_min = kLeastTime;
  if (!spec.time_min) return {};
  if (spec.time_min->us <= 0) return wrong_time("the least time limit must be above zero");
  if (!limit || *spec.time_min <= *limit) return {};
  return wrong_time(fmt::format("the least time limit of {} is above the time limit of {}",
                                format_duration(*spec.time_min), format_duration(*limit)));
}

Result<std::optional<Duration>> check_time_limit(const Partition& partition,
                                                 std::optional<Duration> asked, bool unlimited) {
  const std::optional<Duration>& most = partition.declared->max_time;
  if (unlimited) {
    if (most)
      return fail(ErrorCode::limit_exceeded,
                  fmt::format("partition {} allows at most {}, not an unlimited time",
                              partition.name, format_duration(*most)));
    return std::optional<Duration>{};
  }
  if (!asked) {
    const auto& usual = partition.declared->default_time;
    return usual ? usual : most;
  }
  if (asked->us <= 0) return wrong_time("the time limit must be above zero");
  if (*asked > hours(24 * kMaxDurationDays))
    return fail(ErrorCode::limit_exceeded,
                fmt::format("a time limit is at most {} days, or UNLIMITED", kMaxDurationDays));
  if (most && *asked > *most)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("a time limit of {} is above the {} that partition {} allows",
                            format_duration(*asked), format_duration(*most), partition.name));
  return asked;
}

}  // namespace gantry::core
