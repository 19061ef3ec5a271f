#include "ctld/scale/scale.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "common/money/price_book.h"
#include "common/time/time_zone.h"
#include "ctld/scale/erlang.h"

namespace gantry::scale {
namespace {

using tenancy::ScaleBy;
using tenancy::Service;

// Knative's two windows; a spike in the short one counts without waiting for the long one.
constexpr std::int64_t kLong = 60, kShort = 6;
// How many standard deviations above the expected count a short span must be to count. Arrivals are
// assumed to be random (Poisson): a count of n has a deviation of sqrt(n).
constexpr double kSure = 2.0;
// A replica's response times vary around their mean; this part of the mean is subtracted from the
// target before the rest may be spent on waiting.
constexpr double kServiceSpread = 1.25;
// If nothing of the target is left for waiting, replicas are kept idle to this degree instead.
constexpr double kLeastIdle = 0.5;
constexpr Duration kSlowFor = seconds(60);  // time until a larger shape is taken

struct Need {
  std::uint32_t replicas = 0;
  std::string why;
};

void more(Need& need, Need other) {
  if (other.replicas > need.replicas) need = std::move(other);
}

std::uint32_t at_once(const Service& s, std::uint32_t shape) {
  if (s.route.concurrency > 0) return s.route.concurrency;
  return std::max(1u, s.versions.front().shapes[shape].cpus);
}

std::uint32_t count_of(double n, std::uint32_t most) {
  return static_cast<std::uint32_t>(std::clamp(std::ceil(n - 1e-9), 0.0, double(most)));
}

// The mean service time in seconds: measured, else declared, else a third of the target.
double service_seconds(const Service& s, const ScaleFacts& f) {
  if (f.service_time.us > 0) return static_cast<double>(f.service_time.us) / 1e6;
  const Duration declared = s.versions.front().shapes[f.shape].service_time;
  return static_cast<double>(declared.us > 0 ? declared.us : s.target.us / 3) / 1e6;
}

std::string ms(double seconds) {
  return fmt::format("{:.{}f} ms", seconds * 1000, seconds < 0.01 ? 1 : 0);
}

Need by_promise(const Service& s, const ScaleFacts& f, double rate, std::string_view what) {
  const double service = service_seconds(s, f);
  const double target = static_cast<double>(s.target.us) / 1e6;
  const double budget = target - service * kServiceSpread;
  const std::uint32_t group = at_once(s, f.shape);
  const std::uint32_t most = s.scale.most;
  if (rate <= 0) return {0, "there are no requests"};
  if (budget <= 0)
    return {
        count_of(rate * service / group / kLeastIdle, most),
        fmt::format("{:.1f} requests a second{} take {} each, so that {} cannot be kept by more "
                    "replicas alone",
                    rate, what, ms(service), ms(target))};
  const WaitPromise promise{rate, service, budget, s.percentile / 100.0};
  return {
      std::max(1u, fewest_groups(promise, group, most)),
      fmt::format("{:.1f} requests a second{} of {} each, {} at a time in a replica, so that {} "
                  "% are answered within {}",
                  rate, what, ms(service), group, s.percentile, ms(target))};
}

Need by_concurrency(const Service& s, const ServiceLoad& load, const ScaleFacts& f) {
  const double target = s.scale.target_concurrency;
  const double calm = load.last(kLong, f.now).concurrency;
  const double fresh = load.last(kShort, f.now).concurrency;
  // Knative's panic mode: the short window counts if it needs twice the replicas that exist.
  const bool panic = fresh / target >= 2.0 * std::max(1u, f.wanted);
  const double there = panic ? fresh : calm;
  return {count_of(there / target, s.scale.most),
          fmt::format("{:.1f} requests at a time over {} s, {} wanted in a replica", there,
                      panic ? kShort : kLong, s.scale.target_concurrency)};
}

Need by_rate(const Service& s, double rate, std::string_view what) {
  return {count_of(rate / s.scale.target_rate, s.scale.most),
          fmt::format("{:.1f} requests a second{}, {} wanted in a replica", rate, what,
                      s.scale.target_rate)};
}

bool scales_by(const Service& s, ScaleBy by) {
  if (s.scale.by.empty()) return by == ScaleBy::promise;
  return std::find(s.scale.by.begin(), s.scale.by.end(), enum_name(by)) != s.scale.by.end();
}

// Waiting requests must be answered in addition to new ones while a new replica starts: more
// replicas later would not help them.
double backlog_rate(const Service& s, const ScaleFacts& f) {
  if (f.waiting == 0) return 0;
  const double within = std::max(
      {static_cast<double>(s.target.us) / 1e6, static_cast<double>(f.start_time.us) / 1e6, 1.0});
  return f.waiting / within;
}

bool within_hours(const tenancy::ScaleHours& h, std::int64_t local_minute) {
  const auto from = parse_time_of_day(h.from), until = parse_time_of_day(h.until);
  if (!from || !until) return false;  // false only for a document that was not checked
  constexpr std::int64_t kDay = 24 * 60;
  const std::int64_t day = local_minute / kDay;
  const std::int64_t minute = local_minute % kDay;
  const auto begins_on = [&](std::int64_t d) {
    if (h.days.empty()) return true;
    const std::string_view name = tenancy::kWeekdays[static_cast<std::size_t>(weekday_of(d))];
    return std::find(h.days.begin(), h.days.end(), name) != h.days.end();
  };
  if (*from < *until) return minute >= *from && minute < *until && begins_on(day);
  return (minute >= *from && begins_on(day)) || (minute < *until && begins_on(day - 1));
}

// The largest need of the last `down_after`, so that replicas do not leave during a short lull.
Need held(const Service& s, const ScaleFacts& f, ScaleMemory& memory, Need need) {
  auto& needs = memory.needs;
  while (!needs.empty() && needs.front().first + s.scale.down_after <= f.now) needs.pop_front();
  while (!needs.empty() && needs.back().second <= need.replicas) needs.pop_back();
  needs.emplace_back(f.now, need.replicas);
  const std::uint32_t most = needs.front().second;
  if (most > need.replicas)
    return {most, fmt::format("{} were needed within the last {} s; now {}", most,
                              s.scale.down_after.us / 1'000'000, need.why)};
  return need;
}

// A larger shape is taken when the service time alone exceeds the target for a while. A smaller one
// is not tried again automatically, because the trial could miss the target.
std::uint32_t shape_for(const Service& s, const ScaleFacts& f, ScaleMemory& memory) {
  const auto last = static_cast<std::uint32_t>(s.versions.front().shapes.size() - 1);
  const bool slow = f.service_time.us > 0 &&
                    static_cast<double>(f.service_time.us) * kServiceSpread > double(s.target.us);
  if (!slow || f.shape >= last) {
    memory.too_slow.reset();
    return std::min(f.shape, last);
  }
  if (!memory.too_slow) memory.too_slow = f.now;
  if (f.now - *memory.too_slow < kSlowFor) return f.shape;
  memory.too_slow.reset();
  return f.shape + 1;
}

Need by_load(const Service& s, const ServiceLoad& load, const ScaleFacts& f) {
  Need need{0, "there are no requests"};
  const double rate = sure_rate(load, f.now) + backlog_rate(s, f);
  if (scales_by(s, ScaleBy::promise)) more(need, by_promise(s, f, rate, ""));
  if (scales_by(s, ScaleBy::concurrency)) more(need, by_concurrency(s, load, f));
  if (scales_by(s, ScaleBy::rate)) more(need, by_rate(s, rate, ""));
  if (!s.scale.forecast) return need;
  // From now until replicas that start now are ready, plus a minute.
  const std::int64_t ahead = f.start_time.us / 60'000'000 + 1;
  const auto before = load.same_minutes(0, ahead, f.now);
  if (!before) return need;
  constexpr std::string_view kWhat = " in the same minutes of earlier days";
  if (scales_by(s, ScaleBy::rate))
    more(need, by_rate(s, *before, kWhat));
  else
    more(need, by_promise(s, f, *before, kWhat));
  return need;
}

}  // namespace

double sure_rate(const ServiceLoad& load, Instant now) {
  double rate = load.last(kLong, now).rate();
  for (const std::int64_t seconds : {20L, kShort, 2L}) {
    const LoadSum sum = load.last(seconds, now);
    if (sum.seconds <= 0) continue;
    const double n = static_cast<double>(sum.requests);
    // A need that the load of the long window would cause by chance is no reason to grow.
    rate = std::max(rate, (n - kSure * std::sqrt(n)) / sum.seconds);
  }
  return rate;
}

ScaleAnswer scale(const Service& s, const ServiceLoad& load, const ScaleFacts& facts,
                  ScaleMemory& memory) {
  ScaleFacts f = facts;
  ScaleAnswer out;
  out.shape = f.shape = shape_for(s, f, memory);
  Need need = held(s, f, memory, by_load(s, load, f));
  const auto last_asked = load.last_request();
  const bool idle =
      s.scale.least == 0 && f.waiting == 0 && (!last_asked || f.now - *last_asked >= s.scale.idle);
  if (idle) need = {0, "nobody has asked lately"};  // the long window still contains requests
  if (s.scale.spare_node && need.replicas > 0) {
    const std::uint32_t spare = std::max(1u, f.on_one_node);
    need = {need.replicas + spare,
            fmt::format("{} more for a node that may be lost; {}", spare, need.why)};
  }
  for (const tenancy::ScaleHours& h : s.scale.hours)
    if (within_hours(h, f.local_minute))
      more(need, {h.least, fmt::format("its hours `{}` want {} at least", h.name, h.least)});
  if (s.scale.least > 0) {
    more(need, {s.scale.least, fmt::format("it has {} at least; {}", s.scale.least, need.why)});
  } else {
    const auto last = load.last_request();
    const bool busy = f.waiting > 0 || (last && f.now - *last < s.scale.idle);
    if (busy) more(need, {1, "there were requests lately"});
  }
  if (need.replicas > s.scale.most)
    need = {s.scale.most, fmt::format("it may have {}; {}", s.scale.most, need.why)};
  if (s.scale.budget && f.cost && f.cost->micros > 0) {
    const auto paid = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(s.scale.budget->micros / f.cost->micros, 0, UINT32_MAX));
    const std::uint32_t allowed = std::max(paid, s.scale.least);
    if (need.replicas > allowed)
      need = {allowed, fmt::format("its budget pays for {} at {} an hour each; {}", paid,
                                   format_money(*f.cost), need.why)};
  }
  out.replicas = need.replicas;
  out.reason = std::move(need.why);
  return out;
}

}  // namespace gantry::scale
