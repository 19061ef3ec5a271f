#include "common/time/recurrence.h"

#include <algorithm>

#include <fmt/core.h>

namespace gantry {
namespace {

constexpr std::int64_t kOneHour = 3600;
constexpr std::int64_t kOneDay = 24 * kOneHour;
constexpr std::int64_t kOneWeek = 7 * kOneDay;

std::int64_t day_number(std::int64_t local) {  // whole days since 1970-01-01, also before it
  return local >= 0 ? local / kOneDay : -((kOneDay - 1 - local) / kOneDay);
}

bool is_weekend(std::int64_t day) {
  const int weekday = weekday_of(day);
  return weekday == 0 || weekday == 6;
}

// The shortest time from one beginning to the next.
std::int64_t period_of(Recurrence every) {
  return every == Recurrence::hourly ? kOneHour : every == Recurrence::weekly ? kOneWeek : kOneDay;
}

std::int64_t step_of(const Repetition& r) {
  if (r.every != Recurrence::weekdays && r.every != Recurrence::weekends) return period_of(r.every);
  const std::int64_t day = day_number(r.from);
  std::int64_t days = 1;
  while (is_weekend(day + days) != (r.every == Recurrence::weekends)) ++days;
  return days * kOneDay;
}

Repetition moved(Repetition r, std::int64_t by) {
  r.from += by;
  r.until += by;
  return r;
}

bool meet(const TimeSpan& a, const TimeSpan& b) {
  return a.from < b.until && b.from < a.until;
}

// The occurrence, or a later one, that is at most about a week before `at`. A pattern repeats after
// whole weeks, so these are skipped at once.
Repetition near(const Repetition& r, Instant at) {
  const std::int64_t ahead = (at - occurrence_of(r).until).us / 1'000'000 - kOneWeek;
  return ahead < kOneWeek ? r : moved(r, ahead / kOneWeek * kOneWeek);
}

}  // namespace

Result<Repetition> repetition_of(Recurrence every, const std::string& zone, const TimeSpan& first) {
  Repetition r{every, every == Recurrence::hourly ? std::string() : zone, 0, 0};
  ASSIGN(rule, r.zone.empty() ? Result<TimeZone>(TimeZone{}) : TimeZone::parse(r.zone));
  r.from = rule->local_of(first.from);
  r.until = rule->local_of(first.until);
  if (r.until - r.from > period_of(every))
    return fail(ErrorCode::invalid_argument,
                fmt::format("what repeats {} lasts {} at most", enum_name(every),
                            every == Recurrence::hourly   ? "an hour"
                            : every == Recurrence::weekly ? "a week"
                                                          : "a day"));
  return r;
}

TimeSpan occurrence_of(const Repetition& r) {
  const TimeZone zone = TimeZone::parse(r.zone).value_or(TimeZone{});
  const Instant from = zone.instant_of(r.from);
  // A clock that is put back or forward in between never makes an occurrence empty.
  return {from, std::max(zone.instant_of(r.until), from + seconds(1))};
}

Repetition next_of(const Repetition& r) {
  return moved(r, step_of(r));
}

bool ever_meets(const Repetition& r, const TimeSpan& span) {
  for (Repetition one = near(r, span.from);; one = next_of(one)) {
    const TimeSpan at = occurrence_of(one);
    if (at.from >= span.until) return false;
    if (meet(at, span)) return true;
  }
}

bool ever_meet(const Repetition& a, const Repetition& b) {
  const bool a_is_rarer = period_of(a.every) >= period_of(b.every);
  const Repetition& rare = a_is_rarer ? a : b;
  const Repetition& often = a_is_rarer ? b : a;
  const Instant begin = std::max(occurrence_of(a).from, occurrence_of(b).from);
  // Both patterns are those of one week; the second week is checked too, for occurrences that cross
  // its start. Two zones change their clocks on different days, so a whole year is checked. An
  // hourly pattern does not depend on a zone.
  const bool hourly = often.every == Recurrence::hourly;
  const std::int64_t horizon = hourly && rare.every == Recurrence::hourly ? 2 * kOneHour
                               : hourly || a.zone == b.zone               ? 2 * kOneWeek
                                                                          : 54 * kOneWeek;
  const Instant end = begin + seconds(horizon);
  for (Repetition one = near(rare, begin); occurrence_of(one).from < end; one = next_of(one))
    if (ever_meets(often, occurrence_of(one))) return true;
  return false;
}

}  // namespace gantry
