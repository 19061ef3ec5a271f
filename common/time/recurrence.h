// Times that come again at the same local time: of reservations that repeat. Pure: the rule of
// local time is part of the value.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/fields.h"
#include "common/result.h"
#include "common/time/time.h"
#include "common/time/time_zone.h"

namespace gantry {

enum class Recurrence : std::uint8_t {
  once = 0,
  hourly = 1,
  daily = 2,
  weekdays = 3,  // Monday to Friday
  weekends = 4,  // Saturday and Sunday
  weekly = 5,
};
GANTRY_NAMES(Recurrence, {once, "once"}, {hourly, "hourly"}, {daily, "daily"},
             {weekdays, "weekdays"}, {weekends, "weekends"}, {weekly, "weekly"})

struct TimeSpan {  // half-open
  Instant from{}, until{};
  friend bool operator==(const TimeSpan&, const TimeSpan&) = default;
};

// A Repetition has one occurrence, and says how the next follows. Its bounds are local seconds
// (time_zone.h), so that an occurrence at nine stays at nine when the clocks change. An hourly one
// counts in UTC.
struct Repetition {
  Recurrence every = Recurrence::once;
  std::string zone;  // a rule of TimeZone; "" = UTC
  std::int64_t from = 0, until = 0;
  friend bool operator==(const Repetition&, const Repetition&) = default;
  GANTRY_FIELDS(FIELD(1, every), FIELD(2, zone), FIELD(3, from), FIELD(4, until))
};

// The repetition whose present occurrence is `first`. The error invalid_argument means a wrong rule
// of local time, or an occurrence that would last until after the next one has begun. Not for
// `once`.
Result<Repetition> repetition_of(Recurrence every, const std::string& zone, const TimeSpan& first);

TimeSpan occurrence_of(const Repetition& r);
Repetition next_of(const Repetition& r);  // the occurrence after it

// True if an occurrence of `r`, the present one or a later one, shares some time with `span`.
bool ever_meets(const Repetition& r, const TimeSpan& span);
// True if some occurrences of both share some time.
bool ever_meet(const Repetition& a, const Repetition& b);

}  // namespace gantry
