// Reads and writes lengths and points of time as people write them; see text.h. Dates use the C
// library's time zone (mktime, localtime_r); the caller gives the present time.
#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/limits.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry {
namespace {

constexpr std::int64_t kMinute = 60;
constexpr std::int64_t kHour = 3'600;
constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kMaxSeconds = kMaxDurationDays * kDay;

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// The value of `text` if it consists of digits only; nullopt if it is empty, has other characters,
// or exceeds kMaxSeconds.
std::optional<std::int64_t> digits(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || text[0] == '-' || error != std::errc{} || stop != end) return std::nullopt;
  if (value > kMaxSeconds) return std::nullopt;
  return value;
}

// The numbers between the separators; nullopt if there are more than `most`.
std::optional<std::vector<std::int64_t>> numbers(std::string_view text, char separator,
                                                 std::size_t most) {
  std::vector<std::int64_t> values;
  for (const std::string_view part : split(text, separator)) {
    const std::optional<std::int64_t> value = digits(part);
    if (!value || values.size() == most) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::optional<std::int64_t> duration_seconds(std::string_view text) {
  std::int64_t days = 0;
  const std::size_t dash = text.find('-');
  const bool with_days = dash != std::string_view::npos;
  if (with_days) {
    const std::optional<std::int64_t> given = digits(text.substr(0, dash));
    if (!given || *given > kMaxDurationDays) return std::nullopt;
    days = *given;
    text.remove_prefix(dash + 1);
  }
  const auto v = numbers(text, ':', 3);
  if (!v) return std::nullopt;
  const auto at = [&v](std::size_t i) { return i < v->size() ? (*v)[i] : 0; };
  // After days the first number means hours. Without days it means minutes, unless there are three
  // numbers.
  if (with_days || v->size() == 3) return days * kDay + at(0) * kHour + at(1) * kMinute + at(2);
  return at(0) * kMinute + at(1);
}

// ---- points of time

std::tm local(Instant t) {
  const std::time_t when = static_cast<std::time_t>(t.us / 1'000'000 - (t.us % 1'000'000 < 0));
  std::tm parts{};
  ::localtime_r(&when, &parts);
  return parts;
}

Instant from_local(std::tm parts) {
  parts.tm_isdst = -1;
  return Instant{} + seconds(::mktime(&parts));
}

struct Clock {
  int hour = 0, minute = 0, second = 0;
};

// Reads "10:30" or "10:30:15", with or without " pm" or "am" after it.
std::optional<Clock> clock_of(std::string_view text) {
  int add = 0;
  bool twelve = false;
  if (text.ends_with("am") || text.ends_with("pm")) {
    add = text[text.size() - 2] == 'p' ? 12 : 0;
    twelve = true;
    text.remove_suffix(2);
    while (text.ends_with(' ')) text.remove_suffix(1);
  }
  const auto v = numbers(text, ':', 3);
  if (!v || v->size() < 2) return std::nullopt;
  Clock c{static_cast<int>((*v)[0]), static_cast<int>((*v)[1]),
          v->size() == 3 ? static_cast<int>((*v)[2]) : 0};
  if (twelve) {
    if (c.hour < 1 || c.hour > 12) return std::nullopt;
    c.hour = c.hour % 12 + add;
  }
  if (c.hour > 23 || c.minute > 59 || c.second > 59) return std::nullopt;
  return c;
}

bool valid_date(std::int64_t year, std::int64_t month, std::int64_t day) {
  constexpr std::array<int, 12> kDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (year < 1970 || year > 9999 || month < 1 || month > 12 || day < 1) return false;
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= kDays[static_cast<std::size_t>(month - 1)] + (month == 2 && leap ? 1 : 0);
}

struct Date {
  std::int64_t year = 0, month = 0, day = 0;
};

// Reads YYYY-MM-DD, MM/DD[/YY] or MMDD[YY]; without a year it is the present year.
std::optional<Date> date_of(std::string_view text, const std::tm& today) {
  Date d{today.tm_year + 1900, 0, 0};
  if (text.find('-') != std::string_view::npos) {
    const auto v = numbers(text, '-', 3);
    if (!v || v->size() != 3) return std::nullopt;
    d = {(*v)[0], (*v)[1], (*v)[2]};
  } else if (text.find('/') != std::string_view::npos) {
    const auto v = numbers(text, '/', 3);
    if (!v || v->size() < 2) return std::nullopt;
    d.month = (*v)[0];
    d.day = (*v)[1];
    if (v->size() == 3) d.year = (*v)[2] < 100 ? 2000 + (*v)[2] : (*v)[2];
  } else {
    const std::optional<std::int64_t> all = digits(text);
    if (!all || (text.size() != 4 && text.size() != 6)) return std::nullopt;
    std::int64_t month_day = *all;
    if (text.size() == 6) {
      d.year = 2000 + month_day % 100;
      month_day /= 100;
    }
    d.month = month_day / 100;
    d.day = month_day % 100;
  }
  if (!valid_date(d.year, d.month, d.day)) return std::nullopt;
  return d;
}

// The next (or the latest) time at which a wall clock shows `c`.
Instant on_the_wall(const Clock& c, Instant now, TimeSense sense) {
  std::tm parts = local(now);
  parts.tm_hour = c.hour;
  parts.tm_min = c.minute;
  parts.tm_sec = c.second;
  const Instant today = from_local(parts);
  if (today >= now || sense == TimeSense::latest) return today;
  ++parts.tm_mday;
  return from_local(parts);
}

struct Word {
  std::string_view name;
  std::int64_t seconds;
};

// The offset in "now+2hours", in seconds with sign.
std::optional<std::int64_t> offset_of(std::string_view text) {
  constexpr std::array<Word, 5> kUnits{
      {{"second", 1}, {"minute", kMinute}, {"hour", kHour}, {"day", kDay}, {"week", 7 * kDay}}};
  const bool back = text[0] == '-';
  if (!back && text[0] != '+') return std::nullopt;
  text.remove_prefix(1);
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<std::int64_t> count = digits(text.substr(0, end));
  std::string_view unit = text.substr(end);
  if (!count) return std::nullopt;
  if (unit.ends_with('s')) unit.remove_suffix(1);
  if (unit.empty() && text.size() == end) unit = "second";
  for (const Word& word : kUnits)
    if (word.name == unit || (unit.size() >= 3 && word.name.starts_with(unit))) {
      if (*count > kMaxSeconds / word.seconds) return std::nullopt;
      return *count * word.seconds * (back ? -1 : 1);
    }
  return std::nullopt;
}

std::optional<Instant> named_time(std::string_view text, Instant now, TimeSense sense) {
  std::tm parts = local(now);
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  if (text == "today") return from_local(parts);
  if (text == "tomorrow") {
    ++parts.tm_mday;
    return from_local(parts);
  }
  if (text == "midnight") return on_the_wall({}, now, sense);
  if (text == "noon") return on_the_wall({.hour = 12}, now, sense);
  if (text == "fika") return on_the_wall({.hour = 15}, now, sense);
  if (text == "teatime") return on_the_wall({.hour = 16}, now, sense);
  if (text == "now") return now;
  if (text.starts_with("now"))
    if (const std::optional<std::int64_t> offset = offset_of(text.substr(3)))
      return now + seconds(*offset);
  return std::nullopt;
}

std::optional<Instant> dated_time(std::string_view text, Instant now) {
  const std::size_t t = text.find('t');
  const std::optional<Date> date = date_of(text.substr(0, t), local(now));
  if (!date) return std::nullopt;
  std::optional<Clock> clock = Clock{};
  if (t != std::string_view::npos) clock = clock_of(text.substr(t + 1));
  if (!clock) return std::nullopt;
  std::tm parts{};
  parts.tm_year = static_cast<int>(date->year - 1900);
  parts.tm_mon = static_cast<int>(date->month - 1);
  parts.tm_mday = static_cast<int>(date->day);
  parts.tm_hour = clock->hour;
  parts.tm_min = clock->minute;
  parts.tm_sec = clock->second;
  return from_local(parts);
}

// A day and a time of day in any order, with "-", "T" or blanks between them: "noon-tomorrow",
// "06/15-10:30", "tomorrow 3:00 pm". Each of them may be left out.
class DayAndTime {
 public:
  DayAndTime(std::string_view text, Instant now) : rest_(text), today_(local(now)) {}

  std::optional<Instant> read(Instant now, TimeSense sense) {
    while (skip(), !rest_.empty())
      if (!(word() || clock() || day())) return std::nullopt;
    if (!date_ && !clock_) return std::nullopt;
    if (!date_) return on_the_wall(*clock_, now, sense);
    std::tm parts = today_;
    parts.tm_year = static_cast<int>(date_->year - 1900);
    parts.tm_mon = static_cast<int>(date_->month - 1);
    parts.tm_mday = static_cast<int>(date_->day);
    const Clock at = clock_.value_or(Clock{});
    parts.tm_hour = at.hour;
    parts.tm_min = at.minute;
    parts.tm_sec = at.second;
    return from_local(parts);
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '-' ||
                              (rest_[0] == 't' && rest_.size() > 1 && is_digit(rest_[1]))))
      rest_.remove_prefix(1);
  }
  bool take(std::string_view name) {
    if (!rest_.starts_with(name)) return false;
    rest_.remove_prefix(name.size());
    return true;
  }
  bool word() {
    constexpr std::pair<std::string_view, int> kHours[] = {
        {"midnight", 0}, {"noon", 12}, {"fika", 15}, {"teatime", 16}};
    for (const auto& [name, hour] : kHours)
      if (!clock_ && take(name)) return clock_ = Clock{.hour = hour}, true;
    const bool tomorrow = rest_.starts_with("tomorrow");
    if (date_ || !(take("today") || take("tomorrow"))) return false;
    std::tm parts = today_;
    parts.tm_mday += tomorrow ? 1 : 0;
    parts.tm_hour = 12;
    parts = local(from_local(parts));
    date_ = Date{parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday};
    return true;
  }
  // "10:30", "10:30:15" or "3:00 pm", which ends where no character of a clock follows.
  bool clock() {
    std::size_t end = std::min(rest_.find_first_not_of("0123456789:"), rest_.size());
    if (clock_ || rest_.substr(0, end).find(':') == std::string_view::npos) return false;
    const std::size_t letters = std::min(rest_.find_first_not_of(' ', end), rest_.size());
    const std::string_view half = rest_.substr(letters, 2);
    if (half == "am" || half == "pm") end = letters + 2;
    clock_ = clock_of(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return clock_.has_value();
  }
  // "2030-06-15", "06/15[/30]" or "0615[30]".
  bool day() {
    std::size_t end = std::min(rest_.find_first_not_of("0123456789/"), rest_.size());
    // The month has two digits at most, so that "0615-10:30" is a day and a time.
    const std::size_t second = end == 4 ? rest_.find('-', 5) : std::string_view::npos;
    if (second <= 7 && rest_[4] == '-')
      end = std::min(rest_.find_first_not_of("0123456789", second + 1), rest_.size());
    if (date_ || end == 0) return false;
    date_ = date_of(rest_.substr(0, end), today_);
    rest_.remove_prefix(end);
    return date_.has_value();
  }

  std::string_view rest_;
  const std::tm today_;
  std::optional<Date> date_;
  std::optional<Clock> clock_;
};

}  // namespace

Result<std::optional<Duration>> parse_duration(std::string_view text) {
  const std::string lower = to_lower(text);
  if (lower == "unlimited" || lower == "infinite") return std::optional<Duration>{};
  const std::optional<std::int64_t> all = duration_seconds(text);
  if (!all)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("\"{}\" is not a length of time: write minutes, M:S, H:M:S, D-H, D-H:M, "
                    "D-H:M:S or UNLIMITED",
                    text));
  if (*all > kMaxSeconds)
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is longer than {} days", text, kMaxDurationDays));
  return std::optional(seconds(*all));
}

std::string format_duration(Duration d) {
  const std::int64_t s = d.seconds();
  if (s < 0) return "INVALID";
  if (s >= kDay)
    return fmt::format("{}-{:02}:{:02}:{:02}", s / kDay, s / kHour % 24, s / kMinute % 60, s % 60);
  if (s >= kHour) return fmt::format("{}:{:02}:{:02}", s / kHour, s / kMinute % 60, s % 60);
  return fmt::format("{}:{:02}", s / kMinute, s % 60);
}

std::string format_duration_long(Duration d) {
  const std::int64_t s = d.seconds();
  if (s < 0) return "INVALID";
  const std::string days = s >= kDay ? fmt::format("{}-", s / kDay) : "";
  return fmt::format("{}{:02}:{:02}:{:02}", days, s / kHour % 24, s / kMinute % 60, s % 60);
}

std::string format_time_limit(const std::optional<Duration>& limit) {
  return limit ? format_duration(*limit) : "UNLIMITED";
}

Result<Instant> parse_time(std::string_view text, Instant now, TimeSense sense) {
  std::string lower = to_lower(text);
  if (lower.starts_with("now")) std::erase(lower, ' ');
  if (const std::optional<Instant> t = named_time(lower, now, sense)) return *t;
  if (const std::optional<Clock> c = clock_of(lower)) return on_the_wall(*c, now, sense);
  if (const std::optional<Instant> t = dated_time(lower, now)) return *t;
  if (const auto t = DayAndTime(lower, now).read(now, sense)) return *t;
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{}\" is not a time: write YYYY-MM-DDTHH:MM[:SS], HH:MM, now+1hour, "
                          "tomorrow, midnight, noon, fika or teatime, or a day and a time",
                          text));
}

std::string format_time(Instant t) {
  const std::tm p = local(t);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", p.tm_year + 1900, p.tm_mon + 1,
                     p.tm_mday, p.tm_hour, p.tm_min, p.tm_sec);
}

}  // namespace gantry
