// Local time by a rule, for bills: when months end, and which hour it is. It is pure and gives the
// same result on every machine: the rule travels with the price book, and no time zone database is
// read.
//
// A rule is written like POSIX's TZ (IEEE 1003.1, 8.3), with RFC 8536's wider hours: "UTC0",
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

// A calendar day. Functions count days from 1970-01-01, which was a Thursday.
struct CivilDay {
  std::int32_t year = 1970;
  std::int32_t month = 1;  // 1..12
  std::int32_t day = 1;    // 1..31
};
std::int64_t days_of(const CivilDay& day);
CivilDay civil_of(std::int64_t days);
int weekday_of(std::int64_t days);  // 0 = Sunday
// A week by ISO 8601: weeks begin on Monday, and week 1 contains the year's first Thursday.
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
  // The local time: seconds since the local clock showed 1970-01-01T00:00.
  [[nodiscard]] std::int64_t local_of(Instant t) const;
  // The next change of the offset after `t`; nullopt if there is none.
  [[nodiscard]] std::optional<Instant> next_change(Instant t) const;
  // The first instant at which the local clock shows `local`, or a later time if the clock skips
  // `local`.
  [[nodiscard]] Instant instant_of(std::int64_t local) const;

  friend bool operator==(const TimeZone&, const TimeZone&) = default;

  // When daylight-saving time begins or ends in a year.
  struct Change {
    enum class Kind : std::uint8_t { weekday, julian, day } kind = Kind::weekday;
    std::int32_t month = 1, week = 1;  // for weekday; week 5 = the last one
    std::int32_t day = 0;      // weekday 0..6; julian 1..365 without 29 February; day 0..365
    std::int32_t time = 7200;  // local seconds after midnight
    friend bool operator==(const Change&, const Change&) = default;
  };

 private:
  struct Summer {
    std::int64_t offset = 0;
    Change begins, ends;
    friend bool operator==(const Summer&, const Summer&) = default;
  };
  std::int64_t offset_ = 0;  // offset of standard time
  std::optional<Summer> summer_;
};

// Reads "2026-12-01" or "2026-12-01T06:00", for years 1970 to 9999, as local seconds for
// instant_of().
Result<std::int64_t> parse_local_time(std::string_view text);
// Converts "06:00" to minutes after midnight, 0..1439, and back.
Result<std::int32_t> parse_time_of_day(std::string_view text);
std::string format_time_of_day(std::int32_t minutes);

// A zone in a document: the text that the person wrote, and its rule.
struct ZoneName {
  std::string name;  // "Europe/Prague", or a rule; "" = none
  std::string rule;  // rule for TimeZone
  friend bool operator==(const ZoneName&, const ZoneName&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, rule))
};

}  // namespace gantry
