// Local time by a rule: when months end and what hour it is, for bills. Pure and the same on every
// machine: the rule travels with the price book, no time zone database is asked.
//
// A rule is written as POSIX's TZ (IEEE 1003.1, 8.3), with RFC 8536's wider hours: "UTC0",
// "CET-1CEST,M3.5.0,M10.5.0/3", "<+0530>-5:30".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/fields.h"
#include "common/result.h"
#include "common/time/time.h"

namespace gantry {

// A calendar day: days since 1970-01-01, which was a Thursday.
struct CivilDay {
  std::int32_t year = 1970;
  std::int32_t month = 1;  // 1..12
  std::int32_t day = 1;    // 1..31
};
std::int64_t days_of(const CivilDay& day);
CivilDay civil_of(std::int64_t days);
int weekday_of(std::int64_t days);  // 0 = Sunday
// ISO 8601: weeks begin on Monday, and week 1 has the year's first Thursday.
struct IsoWeek {
  std::int32_t year = 1970;
  std::int32_t week = 1;
};
IsoWeek iso_week_of(std::int64_t days);

class TimeZone {
 public:
  TimeZone() = default;  // UTC
  static Result<TimeZone> parse(std::string_view rule);

  [[nodiscard]] std::int64_t offset_at(Instant t) const;  // seconds east of UTC
  // Local seconds since 1970-01-01T00:00 of the local clock.
  [[nodiscard]] std::int64_t local_of(Instant t) const;
  // When the offset changes next, after `t`; nothing: never.
  [[nodiscard]] std::optional<Instant> next_change(Instant t) const;
  // The first instant at which the local clock shows `local` or, where it jumps over that, more.
  [[nodiscard]] Instant instant_of(std::int64_t local) const;

  friend bool operator==(const TimeZone&, const TimeZone&) = default;

  // When daylight-saving time begins or ends in a year.
  struct Change {
    enum class Kind : std::uint8_t { weekday, julian, day } kind = Kind::weekday;
    std::int32_t month = 1, week = 1;  // weekday: 5 = the last
    std::int32_t day = 0;      // weekday 0..6; julian 1..365 without 29 February; day 0..365
    std::int32_t time = 7200;  // local seconds behind midnight
    friend bool operator==(const Change&, const Change&) = default;
  };

 private:
  struct Summer {
    std::int64_t offset = 0;
    Change begins, ends;
    friend bool operator==(const Summer&, const Summer&) = default;
  };
  std::int64_t offset_ = 0;  // of standard time
  std::optional<Summer> summer_;
};

// "2026-12-01" or "2026-12-01T06:00", of years 1970 to 9999: local seconds, for instant_of().
Result<std::int64_t> parse_local_time(std::string_view text);
// "06:00" in minutes behind midnight, 0..1439, and back.
Result<std::int32_t> parse_time_of_day(std::string_view text);
std::string format_time_of_day(std::int32_t minutes);

// A zone as a document has it: what the person wrote, and the rule that it stands for.
struct ZoneName {
  std::string name;  // "Europe/Prague", or a rule; "" = none
  std::string rule;  // of TimeZone
  friend bool operator==(const ZoneName&, const ZoneName&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "rule", s.rule);
  }
};

}  // namespace gantry
