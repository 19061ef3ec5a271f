// Lengths and points of time in the forms that people write. The tests set the time zone, so that
// the zone of the machine does not matter.
#include <cstdlib>
#include <ctime>

#include <doctest/doctest.h>

#include "common/text/text.h"

using namespace gantry;

namespace {

void set_zone(const char* zone) {
  ::setenv("TZ", zone, 1);
  ::tzset();
}

// This is 2026-03-10 14:30:00 UTC, a Tuesday.
constexpr Instant kNow{1'773'153'000'000'000};

std::string at(std::string_view text, TimeSense sense = TimeSense::coming) {
  const auto t = parse_time(text, kNow, sense);
  return t ? format_time(*t) : t.error().message;
}

}  // namespace

TEST_CASE("lengths of time are read in all forms of Slurm") {
  CHECK(parse_duration("90") == minutes(90));
  CHECK(parse_duration("5:30") == seconds(330));
  CHECK(parse_duration("1:2:3") == seconds(3723));
  CHECK(parse_duration("00:30:00") == minutes(30));
  CHECK(parse_duration("2-3") == hours(51));
  CHECK(parse_duration("1-0:30") == hours(24) + minutes(30));
  CHECK(parse_duration("0-00:05:00") == minutes(5));
  CHECK(parse_duration("100:00") == minutes(100));
  CHECK(parse_duration("0") == Duration{});
  for (const char* text : {"UNLIMITED", "unlimited", "INFINITE"}) {
    REQUIRE(parse_duration(text).has_value());
    CHECK_FALSE(parse_duration(text)->has_value());
  }
  for (const char* bad : {"", "x", "1:", ":1", "1-", "-1", "1:2:3:4", "1-2:3:4:5", "1.5", "5m",
                          "1 ", "36501-0", "99999999999999999999", "--1"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_duration(bad).has_value());
  }
}

TEST_CASE("lengths of time are written as in squeue and sacct") {
  CHECK(format_duration(seconds(5)) == "0:05");
  CHECK(format_duration(seconds(3599)) == "59:59");
  CHECK(format_duration(seconds(3723)) == "1:02:03");
  CHECK(format_duration(hours(49)) == "2-01:00:00");
  CHECK(format_duration(Duration{-5'000'000}) == "INVALID");
  CHECK(format_duration_long(seconds(5)) == "00:00:05");
  CHECK(format_duration_long(hours(49)) == "2-01:00:00");
  CHECK(format_time_limit(std::nullopt) == "UNLIMITED");
  CHECK(format_time_limit(minutes(30)) == "30:00");
}

TEST_CASE("points of time are read in all their forms") {
  set_zone("UTC");
  CHECK(at("now") == "2026-03-10T14:30:00");
  CHECK(at("2026-01-31T08:05:09") == "2026-01-31T08:05:09");
  CHECK(at("2026-01-31T08:05") == "2026-01-31T08:05:00");
  CHECK(at("2028-02-29") == "2028-02-29T00:00:00");
  CHECK(at("now+1hour") == "2026-03-10T15:30:00");
  CHECK(at("now+2hours") == "2026-03-10T16:30:00");
  CHECK(at("now+90") == "2026-03-10T14:31:30");
  CHECK(at("now-1week") == "2026-03-03T14:30:00");
  CHECK(at("now+5min") == "2026-03-10T14:35:00");
  CHECK(at("today") == "2026-03-10T00:00:00");
  CHECK(at("tomorrow") == "2026-03-11T00:00:00");
  CHECK(at("midnight") == "2026-03-11T00:00:00");
  CHECK(at("noon") == "2026-03-11T12:00:00");
  CHECK(at("teatime") == "2026-03-10T16:00:00");
  CHECK(at("16:00") == "2026-03-10T16:00:00");
  CHECK(at("10:00") == "2026-03-11T10:00:00");
  CHECK(at("10:00", TimeSense::latest) == "2026-03-10T10:00:00");
  CHECK(at("04:15:30 PM") == "2026-03-10T16:15:30");
  CHECK(at("12:10am") == "2026-03-11T00:10:00");
  CHECK(at("0412") == "2026-04-12T00:00:00");
  CHECK(at("041227") == "2027-04-12T00:00:00");
  CHECK(at("4/12/27") == "2027-04-12T00:00:00");
  CHECK(at("fika") == "2026-03-10T15:00:00");
  CHECK(at("now + 2 hours") == "2026-03-10T16:30:00");
}

TEST_CASE("a day and a time of day stand in any order") {
  set_zone("UTC");
  CHECK(at("noon-tomorrow") == "2026-03-11T12:00:00");
  CHECK(at("tomorrow 3:00 pm") == "2026-03-11T15:00:00");
  CHECK(at("tomorrowT08:15") == "2026-03-11T08:15:00");
  CHECK(at("06/15-10:30") == "2026-06-15T10:30:00");
  CHECK(at("0615-10:30:05") == "2026-06-15T10:30:05");
  CHECK(at("06/15/27 teatime") == "2027-06-15T16:00:00");
  CHECK(at("2027-06-15 midnight") == "2027-06-15T00:00:00");
  CHECK(at("10:30 2027-06-15") == "2027-06-15T10:30:00");
  for (const char* bad : {"noon-noon", "today-tomorrow", "noon+1hour", "0615-0616", "tomorrow-"}) {
    CAPTURE(bad);
    CHECK(parse_time(bad, kNow).has_value() == (std::string_view(bad) == "tomorrow-"));
  }
}

TEST_CASE("malformed points of time are refused") {
  set_zone("UTC");
  for (const char* bad : {"",
                          "yesterday",
                          "25:00",
                          "10:60",
                          "13:00pm",
                          "0:10am",
                          "2026-02-29",
                          "2026-13-01",
                          "2026-01-00",
                          "2026-01-01T",
                          "2026-01-01T24:00",
                          "now+",
                          "now+x",
                          "now+1fortnight",
                          "now*1",
                          "now+99999999999999999999",
                          "now+9999999weeks",
                          "1332",
                          "12",
                          "2026-01-01T10"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_time(bad, kNow).has_value());
  }
}

TEST_CASE("times are read and written in a zone with summer time") {
  set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
  CHECK(format_time(kNow) == "2026-03-10T15:30:00");
  CHECK(at("2026-07-01T12:00:00") == "2026-07-01T12:00:00");
  const auto summer = parse_time("2026-07-01T12:00:00", kNow);
  const auto winter = parse_time("2026-01-01T12:00:00", kNow);
  CHECK(summer->us / 3'600'000'000 % 24 == 10);
  CHECK(winter->us / 3'600'000'000 % 24 == 11);
  set_zone("UTC");
}
