// Occurrences of what comes again, beside the calendar.
#include <doctest/doctest.h>

#include "common/time/recurrence.h"

using namespace gantry;

namespace {

constexpr const char* kPrague = "CET-1CEST,M3.5.0,M10.5.0/3";

Instant utc_of(const char* text) {
  return {*parse_local_time(text) * 1'000'000};
}

TimeSpan span(const char* from, const char* until) {
  return {utc_of(from), utc_of(until)};
}

// The start of the occurrence after this many others.
Instant begin_after(Repetition r, int others) {
  while (others-- > 0) r = next_of(r);
  return occurrence_of(r).from;
}

Repetition made(Recurrence every, const TimeSpan& first, const char* zone = "") {
  const auto r = repetition_of(every, zone, first);
  REQUIRE(r.has_value());
  return *r;
}

}  // namespace

TEST_CASE("an occurrence stays at its local time when the clocks change") {
  // In 2026 Prague goes from +1 to +2 hours on 29 March, and back on 25 October.
  Repetition r = made(Recurrence::daily, span("2026-03-28T08:00", "2026-03-28T10:00"), kPrague);
  CHECK(occurrence_of(r) == span("2026-03-28T08:00", "2026-03-28T10:00"));
  r = next_of(r);
  CHECK(occurrence_of(r) == span("2026-03-29T07:00", "2026-03-29T09:00"));
  r = made(Recurrence::weekly, span("2026-10-20T07:00", "2026-10-20T09:00"), kPrague);
  CHECK(begin_after(r, 1) == utc_of("2026-10-27T08:00"));
  // A time that the clocks skip is made up for, and the day after is as before.
  r = made(Recurrence::daily, span("2026-03-28T01:30", "2026-03-28T01:40"), kPrague);
  CHECK(begin_after(r, 2) == utc_of("2026-03-30T00:30"));
  // That day has 23 hours, and the next one begins at its end.
  r = made(Recurrence::daily, span("2026-03-27T23:00", "2026-03-28T23:00"), kPrague);
  CHECK(occurrence_of(next_of(r)) == span("2026-03-28T23:00", "2026-03-29T22:00"));
  CHECK(begin_after(r, 2) == utc_of("2026-03-29T22:00"));
}

TEST_CASE("weekdays and weekends pass over the other days") {
  // 2026-11-27 is a Friday.
  const Repetition work = made(Recurrence::weekdays, span("2026-11-27T09:00", "2026-11-27T10:00"));
  CHECK(begin_after(work, 1) == utc_of("2026-11-30T09:00"));
  CHECK(begin_after(work, 5) == utc_of("2026-12-04T09:00"));
  const Repetition rest = made(Recurrence::weekends, span("2026-11-28T09:00", "2026-11-28T10:00"));
  CHECK(begin_after(rest, 1) == utc_of("2026-11-29T09:00"));
  CHECK(begin_after(rest, 2) == utc_of("2026-12-05T09:00"));
  const Repetition hourly = made(Recurrence::hourly, span("2026-11-28T09:15", "2026-11-28T09:30"));
  CHECK(begin_after(hourly, 3) == utc_of("2026-11-28T12:15"));
}

TEST_CASE("an occurrence that would run into the next one is refused, and a wrong rule") {
  const auto refused = [](Recurrence every, const TimeSpan& first, const char* zone = "") {
    const auto r = repetition_of(every, zone, first);
    REQUIRE_FALSE(r.has_value());
    return r.error().message;
  };
  CHECK(refused(Recurrence::daily, span("2026-11-28T09:00", "2026-11-29T09:01")) ==
        "what repeats daily lasts a day at most");
  CHECK(refused(Recurrence::hourly, span("2026-11-28T09:00", "2026-11-28T10:01")) ==
        "what repeats hourly lasts an hour at most");
  CHECK(repetition_of(Recurrence::weekly, "", span("2026-11-28T09:00", "2026-12-05T09:00")));
  CHECK_FALSE(
      refused(Recurrence::daily, span("2026-11-28T09:00", "2026-11-28T10:00"), "nowhere").empty());
}

TEST_CASE("whether occurrences meet is known for all times") {
  const Repetition daily = made(Recurrence::daily, span("2026-11-28T09:00", "2026-11-28T10:00"));
  CHECK(ever_meets(daily, span("2031-05-01T09:30", "2031-05-01T09:31")));
  CHECK_FALSE(ever_meets(daily, span("2031-05-01T10:00", "2031-05-02T09:00")));
  CHECK_FALSE(ever_meets(daily, span("2026-11-27T09:00", "2026-11-27T10:00")));  // before it began
  const Repetition monday = made(Recurrence::weekly, span("2026-11-30T22:00", "2026-12-01T04:00"));
  const Repetition work = made(Recurrence::weekdays, span("2027-02-01T03:00", "2027-02-01T05:00"));
  const Repetition rest = made(Recurrence::weekends, span("2027-02-06T03:00", "2027-02-06T05:00"));
  CHECK(ever_meet(monday, work));
  CHECK(ever_meet(work, monday));
  CHECK_FALSE(ever_meet(monday, rest));
  CHECK_FALSE(ever_meet(work, rest));
  // Two reservations that do not overlap in winter may overlap in summer, when only one of them
  // moves.
  const Repetition local =
      made(Recurrence::daily, span("2026-12-01T08:00", "2026-12-01T09:00"), kPrague);
  CHECK(ever_meets(local, span("2027-07-01T07:30", "2027-07-01T07:40")));
  CHECK_FALSE(ever_meets(local, span("2027-12-01T07:30", "2027-12-01T07:40")));
  const Repetition fixed = made(Recurrence::daily, span("2026-12-01T07:00", "2026-12-01T08:00"));
  CHECK(ever_meet(local, fixed));
  CHECK(ever_meet(fixed, local));
  const Repetition there =
      made(Recurrence::daily, span("2026-12-01T07:00", "2026-12-01T08:00"), kPrague);
  CHECK_FALSE(ever_meet(local, there));
  // Hourly occurrences overlap everything that includes their minutes, at any time.
  const Repetition quarter = made(Recurrence::hourly, span("2026-12-01T06:15", "2026-12-01T06:30"));
  CHECK(ever_meet(quarter, monday));
  CHECK(ever_meet(quarter, made(Recurrence::hourly, span("2027-01-01T00:29", "2027-01-01T00:40"))));
  CHECK_FALSE(
      ever_meet(quarter, made(Recurrence::hourly, span("2027-01-01T00:30", "2027-01-01T01:15"))));
}
