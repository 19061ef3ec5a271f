#include "common/time/time_zone.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace gantry {
namespace {

constexpr std::int64_t kDayLength = 86'400;
constexpr std::int64_t kPerSecond = 1'000'000;

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

// Reads a rule of a time zone from left to right.
class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool done() const { return text_.empty(); }
  bool skip(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Reads a name: "CET" or "<+03>".
  bool name() {
    std::size_t length = 0;
    if (skip('<')) {
      length = text_.find('>');
      if (length == std::string_view::npos || length < 3) return false;
      text_.remove_prefix(length + 1);
      return true;
    }
    const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
    while (length < text_.size() && letter(text_[length])) ++length;
    text_.remove_prefix(length);
    return length >= 3;
  }
  std::optional<std::int32_t> number(std::int32_t low, std::int32_t high) {
    std::int32_t out = 0;
    std::size_t digits = 0;
    while (digits < text_.size() && digits < 4 && text_[digits] >= '0' && text_[digits] <= '9')
      out = out * 10 + (text_[digits++] - '0');
    text_.remove_prefix(digits);
    if (digits == 0 || out < low || out > high) return std::nullopt;
    return out;
  }
  // Reads [+-]H[:MM[:SS]]; the result is in seconds.
  std::optional<std::int32_t> clock_time(std::int32_t most_hours) {
    const bool negative = skip('-');
    if (!negative) skip('+');
    const auto hours = number(0, most_hours);
    if (!hours) return std::nullopt;
    std::int32_t out = *hours * 3600;
    for (std::int32_t unit = 60; unit >= 1 && skip(':'); unit /= 60) {
      const auto part = number(0, 59);
      if (!part) return std::nullopt;
      out += *part * unit;
      if (unit == 1) break;
    }
    return negative ? -out : out;
  }
  // Reads Mm.w.d, Jn or n, with /TIME.
  std::optional<TimeZone::Change> change() {
    using Kind = TimeZone::Change::Kind;
    TimeZone::Change out;
    if (skip('M')) {
      const auto month = number(1, 12);
      const auto week = skip('.') ? number(1, 5) : std::nullopt;
      const auto day = skip('.') ? number(0, 6) : std::nullopt;
      if (!month || !week || !day) return std::nullopt;
      out.month = *month;
      out.week = *week;
      out.day = *day;
    } else {
      out.kind = skip('J') ? Kind::julian : Kind::day;
      const auto day = out.kind == Kind::julian ? number(1, 365) : number(0, 365);
      if (!day) return std::nullopt;
      out.day = *day;
    }
    if (!skip('/')) return out;
    const auto at = clock_time(167);
    if (!at) return std::nullopt;
    out.time = *at;
    return out;
  }

 private:
  std::string_view text_;
};

bool is_leap(std::int32_t year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

// The local second in that year at which the change happens.
std::int64_t local_of(const TimeZone::Change& change, std::int32_t year) {
  using Kind = TimeZone::Change::Kind;
  std::int64_t days = days_of({year, 1, 1});
  if (change.kind == Kind::day) {
    days += change.day;
  } else if (change.kind == Kind::julian) {
    days += change.day - 1 + (is_leap(year) && change.day >= 60 ? 1 : 0);
  } else {
    const std::int64_t first = days_of({year, change.month, 1});
    const std::int64_t next =
        change.month == 12 ? days_of({year + 1, 1, 1}) : days_of({year, change.month + 1, 1});
    days = first + (change.day - weekday_of(first) + 7) % 7 + 7 * (change.week - 1);
    while (days >= next) days -= 7;
  }
  return days * kDayLength + change.time;
}

}  // namespace

// Howard Hinnant, "chrono-compatible low-level date algorithms": the civil calendar is counted in
// eras of 400 years that begin on 1 March.
std::int64_t days_of(const CivilDay& day) {
  const std::int64_t year = day.month <= 2 ? day.year - 1 : day.year;
  const std::int64_t era = floor_div(year, 400);
  const std::int64_t of_era = year - era * 400;
  const std::int64_t month = day.month > 2 ? day.month - 3 : day.month + 9;
  const std::int64_t of_year = (153 * month + 2) / 5 + day.day - 1;
  return era * 146'097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719'468;
}

CivilDay civil_of(std::int64_t days) {
  days += 719'468;
  const std::int64_t era = floor_div(days, 146'097);
  const std::int64_t of_era = days - era * 146'097;
  const std::int64_t year_of_era =
      (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  const std::int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month = (5 * of_year + 2) / 153;
  CivilDay out;
  out.day = static_cast<std::int32_t>(of_year - (153 * month + 2) / 5 + 1);
  out.month = static_cast<std::int32_t>(month < 10 ? month + 3 : month - 9);
  out.year = static_cast<std::int32_t>(year_of_era + era * 400 + (out.month <= 2 ? 1 : 0));
  return out;
}

int weekday_of(std::int64_t days) {
  return static_cast<int>(days + 4 - floor_div(days + 4, 7) * 7);
}

IsoWeek iso_week_of(std::int64_t days) {
  const std::int64_t thursday = days - (weekday_of(days) + 6) % 7 + 3;  // of the same week
  const CivilDay day = civil_of(thursday);
  return {day.year, static_cast<std::int32_t>((thursday - days_of({day.year, 1, 1})) / 7 + 1)};
}

Result<TimeZone> TimeZone::parse(std::string_view rule) {
  const auto bad = [&] {
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is no rule of a time zone; use one such as UTC0 or "
                            "CET-1CEST,M3.5.0,M10.5.0/3",
                            rule));
  };
  RuleReader in(rule);
  TimeZone out;
  if (!in.name()) return bad();
  const auto west = in.clock_time(24);
  if (!west) return bad();
  out.offset_ = -*west;
  if (in.done()) return out;
  Summer summer;
  if (!in.name()) return bad();
  summer.offset = out.offset_ + 3600;
  if (!in.skip(',')) {
    const auto summer_west = in.clock_time(24);
    if (!summer_west || !in.skip(',')) return bad();
    summer.offset = -*summer_west;
  }
  const auto begins = in.change();
  const auto ends = in.skip(',') ? in.change() : std::nullopt;
  if (!begins || !ends || !in.done()) return bad();
  summer.begins = *begins;
  summer.ends = *ends;
  out.summer_ = summer;
  return out;
}

std::int64_t TimeZone::offset_at(Instant t) const {
  if (!summer_) return offset_;
  const std::int64_t seconds = floor_div(t.us, kPerSecond);
  const std::int32_t year = civil_of(floor_div(seconds + offset_, kDayLength)).year;
  const std::int64_t begin = gantry::local_of(summer_->begins, year) - offset_;
  const std::int64_t end = gantry::local_of(summer_->ends, year) - summer_->offset;
  const bool within = begin < end ? seconds >= begin && seconds < end
                                  // daylight-saving time goes on over the new year
                                  : seconds >= begin || seconds < end;
  return within ? summer_->offset : offset_;
}

std::int64_t TimeZone::local_of(Instant t) const {
  return floor_div(t.us, kPerSecond) + offset_at(t);
}

std::optional<Instant> TimeZone::next_change(Instant t) const {
  if (!summer_) return std::nullopt;
  const std::int32_t year =
      civil_of(floor_div(floor_div(t.us, kPerSecond) + offset_, kDayLength)).year;
  std::optional<Instant> out;
  for (std::int32_t y = year - 1; y <= year + 1; ++y)
    for (const std::int64_t change : {gantry::local_of(summer_->begins, y) - offset_,
                                      gantry::local_of(summer_->ends, y) - summer_->offset}) {
      const Instant at{change * kPerSecond};
      if (at > t && (!out || at < *out)) out = at;
    }
  return out;
}

Instant TimeZone::instant_of(std::int64_t local) const {
  const auto at = [](std::int64_t seconds) { return Instant{seconds * kPerSecond}; };
  if (!summer_) return at(local - offset_);
  const std::int64_t early = local - std::max(offset_, summer_->offset);
  const std::int64_t late = local - std::min(offset_, summer_->offset);
  if (local_of(at(early)) == local) return at(early);
  // A local time that the clock skips, or shows twice, gives several candidates. The first one that
  // is not too early is returned.
  const std::int32_t year = civil_of(floor_div(local, kDayLength)).year;
  for (const std::int64_t change : {gantry::local_of(summer_->begins, year) - offset_,
                                    gantry::local_of(summer_->ends, year) - summer_->offset})
    if (change > early && change <= late && local_of(at(change)) >= local) return at(change);
  return at(late);
}

namespace {

// Takes a number of exactly `width` digits off the front of `text`.
std::optional<std::int32_t> take_digits(std::string_view& text, std::size_t width) {
  if (text.size() < width) return std::nullopt;
  std::int32_t out = 0;
  for (const char c : text.substr(0, width)) {
    if (c < '0' || c > '9') return std::nullopt;
    out = out * 10 + (c - '0');
  }
  text.remove_prefix(width);
  return out;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

Result<std::int32_t> parse_time_of_day(std::string_view text) {
  std::string_view rest = text;
  const auto hour = take_digits(rest, 2);
  const auto minute = take(rest, ':') ? take_digits(rest, 2) : std::nullopt;
  if (!hour || !minute || !rest.empty() || *hour > 23 || *minute > 59)
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is no time of the day; use 00:00 to 23:59", text));
  return *hour * 60 + *minute;
}

std::string format_time_of_day(std::int32_t minutes) {
  return fmt::format("{:02}:{:02}", minutes / 60, minutes % 60);
}

Result<std::int64_t> parse_local_time(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is no date; use 2026-12-01 or 2026-12-01T06:00", text));
  };
  std::string_view rest = text;
  const auto year = take_digits(rest, 4);
  const auto month = take(rest, '-') ? take_digits(rest, 2) : std::nullopt;
  const auto day = take(rest, '-') ? take_digits(rest, 2) : std::nullopt;
  if (!year || !month || !day || *year < 1970 || *month < 1 || *month > 12 || *day < 1)
    return bad();
  const std::int64_t days = days_of({*year, *month, *day});
  const CivilDay back = civil_of(days);
  if (back.day != *day || back.month != *month) return bad();  // a day like 31 April
  std::int64_t seconds = days * kDayLength;
  if (rest.empty()) return seconds;
  if (!take(rest, 'T')) return bad();
  const auto minutes = parse_time_of_day(rest);
  if (!minutes) return bad();
  return seconds + *minutes * 60;
}

}  // namespace gantry
