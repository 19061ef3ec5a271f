// Local time by a POSIX rule. The expected values are those of the zones' own calendars.
#include <doctest/doctest.h>

#include "common/time/time_zone.h"

using namespace gantry;

namespace {

Instant utc(const char* text) {
  return {*parse_local_time(text) * 1'000'000};
}

Instant at(const TimeZone& zone, const char* local) {
  return zone.instant_of(*parse_local_time(local));
}

}  // namespace

TEST_CASE("days are numbered from 1970-01-01 and have the right weekday") {
  CHECK(days_of({1970, 1, 1}) == 0);
  CHECK(days_of({2000, 3, 1}) == 11'017);
  CHECK(days_of({1969, 12, 31}) == -1);
  for (std::int64_t day = -800'000; day < 800'000; day += 97) {
    const CivilDay civil = civil_of(day);
    CHECK(days_of(civil) == day);
  }
  CHECK(weekday_of(0) == 4);
  CHECK(weekday_of(-1) == 3);
  CHECK(weekday_of(days_of({2026, 11, 22})) == 0);
}

TEST_CASE("weeks are numbered by ISO 8601") {
  const auto week = [](std::int32_t y, std::int32_t m, std::int32_t d) {
    const IsoWeek w = iso_week_of(days_of({y, m, d}));
    return w.year * 100 + w.week;
  };
  CHECK(week(2026, 11, 22) == 202647);
  CHECK(week(2026, 11, 23) == 202648);
  CHECK(week(2026, 1, 1) == 202601);
  CHECK(week(2027, 1, 3) == 202653);
  CHECK(week(2024, 12, 30) == 202501);
  CHECK(week(2021, 1, 3) == 202053);
}

TEST_CASE("Prague puts its clocks forward in March and back in October") {
  const auto zone = *TimeZone::parse("CET-1CEST,M3.5.0,M10.5.0/3");
  CHECK(zone.offset_at(utc("2026-03-29T00:59")) == 3600);
  CHECK(zone.offset_at(utc("2026-03-29T01:00")) == 7200);
  CHECK(zone.offset_at(utc("2026-10-25T00:59")) == 7200);
  CHECK(zone.offset_at(utc("2026-10-25T01:00")) == 3600);
  CHECK(at(zone, "2026-12-01") == utc("2026-11-30T23:00"));
  CHECK(at(zone, "2026-07-01") == utc("2026-06-30T22:00"));
  // The clock jumps over this time.
  CHECK(at(zone, "2026-03-29T02:30") == utc("2026-03-29T01:00"));
  // This local time happens twice, and the first one counts.
  CHECK(at(zone, "2026-10-25T02:30") == utc("2026-10-25T00:30"));
  CHECK(zone.local_of(utc("2026-10-25T01:30")) == *parse_local_time("2026-10-25T02:30"));
}

TEST_CASE("rules work in the south, in the west, and with odd offsets") {
  const auto sydney = *TimeZone::parse("AEST-10AEDT,M10.1.0,M4.1.0/3");
  CHECK(sydney.offset_at(utc("2026-01-01")) == 11 * 3600);
  CHECK(sydney.offset_at(utc("2026-07-01")) == 10 * 3600);
  CHECK(at(sydney, "2027-01-01") == utc("2026-12-31T13:00"));
  const auto york = *TimeZone::parse("EST5EDT,M3.2.0,M11.1.0");
  CHECK(at(york, "2026-11-01") == utc("2026-11-01T04:00"));
  CHECK(at(york, "2026-12-01") == utc("2026-12-01T05:00"));
  const auto kolkata = *TimeZone::parse("<+0530>-5:30");
  CHECK(at(kolkata, "2026-11-01") == utc("2026-10-31T18:30"));
  const auto godthab = *TimeZone::parse("<-02>2<-01>,M3.5.0/-1,M10.5.0/0");
  CHECK(godthab.offset_at(utc("2026-03-29T00:59")) == -2 * 3600);
  CHECK(godthab.offset_at(utc("2026-03-29T01:00")) == -1 * 3600);
  // In this rule, winter time is the exception.
  const auto dublin = *TimeZone::parse("IST-1GMT0,M10.5.0,M3.5.0/1");
  CHECK(dublin.offset_at(utc("2026-01-15")) == 0);
  CHECK(dublin.offset_at(utc("2026-07-15")) == 3600);
  CHECK(at(dublin, "2026-12-01") == utc("2026-12-01"));
  CHECK(TimeZone::parse("UTC0")->offset_at(utc("2026-07-15")) == 0);
}

TEST_CASE("an instant or an earlier one with the same local time comes back from its local time") {
  for (const char* rule :
       {"CET-1CEST,M3.5.0,M10.5.0/3", "AEST-10AEDT,M10.1.0,M4.1.0/3", "EST5EDT,M3.2.0,M11.1.0",
        "IST-1GMT0,M10.5.0,M3.5.0/1", "JST-9", "XXX3YYY2:30,J60/0,J300/0"}) {
    const auto zone = *TimeZone::parse(rule);
    for (Instant t = utc("2026-01-01"); t < utc("2028-01-01"); t = t + minutes(17)) {
      const auto change = zone.next_change(t);
      if (!change || *change > t + minutes(17)) {
        CHECK(zone.offset_at(t) == zone.offset_at(t + minutes(17) - microseconds(1)));
      }
      const Instant back = zone.instant_of(zone.local_of(t));
      if (back == t) continue;
      CHECK(back < t);
      CHECK(zone.local_of(back) == zone.local_of(t));
    }
  }
}

TEST_CASE("malformed rules, dates and times of day are refused") {
  for (const char* bad : {"", "Europe/Prague", "CET", "CET-25", "CET-1CEST", "CET-1CEST,M3.5.0",
                          "CET-1CEST,M13.5.0,M10.5.0", "CET-1 ", "<>1", "CET-1CEST,M3.6.0,M10.5.0"})
    CHECK_FALSE(TimeZone::parse(bad));
  for (const char* bad : {"", "2026", "2026-13-01", "2026-02-29", "2026-01-01 06:00",
                          "2026-01-01T24:00", "26-01-01", "2026-01-01T6:00", "1969-12-31"})
    CHECK_FALSE(parse_local_time(bad));
  CHECK(*parse_time_of_day("22:05") == 22 * 60 + 5);
  CHECK(format_time_of_day(65) == "01:05");
  CHECK_FALSE(parse_time_of_day("24:00"));
}
