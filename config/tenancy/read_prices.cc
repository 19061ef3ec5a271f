#include "config/tenancy/read_prices.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include "config/nearest.h"
#include "config/tenancy/amounts.h"
#include "config/tenancy/read_parts.h"
#include "config/values.h"

namespace gantry::tenancy {
namespace {

constexpr std::size_t kMostZoneBytes = 1u << 20;  // limit for a file of the time zone database
constexpr const char* kZoneFolder = "/usr/share/zoneinfo/";

// The rule at the end of a file of the time zone database (RFC 8536, 3.3). It is a line of its own,
// and is valid after the last change that the file lists.
std::optional<std::string> rule_of_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  if (!file) return std::nullopt;
  std::string text;
  std::array<char, 4096> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    text.append(buffer.data(), n);
    if (text.size() > kMostZoneBytes) return std::nullopt;
  }
  if (!text.starts_with("TZif") || !text.ends_with('\n')) return std::nullopt;
  text.pop_back();
  const std::size_t line = text.rfind('\n');
  if (line == std::string::npos) return std::nullopt;
  return text.substr(line + 1);
}

bool is_zone_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && text.front() != '/' &&
         text.find("..") == std::string_view::npos &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '/' || c == '_' || c == '-' || c == '+';
         });
}

Result<std::int32_t> read_factor(const Value& value) {
  ASSIGN(text, value.text());
  const auto number = parse_thousandths(*text);
  if (!number) return value.wrong(number.error());
  if (*number > Thousandths{kMostFactor})
    return value.wrong(fmt::format("{} is more than 100", *text));
  return number->narrow<std::int32_t>().value();
}

// Reads a list of TENANT/PROJECT, each once.
Result<std::vector<std::string>> read_tenant_projects(const Value& value) {
  ASSIGN(texts, value.texts());
  std::vector<std::string> out;
  for (const std::string& text : *texts) {
    const std::size_t slash = text.find('/');
    if (slash == std::string::npos || !config::is_word(text.substr(0, slash)) ||
        !config::is_word(text.substr(slash + 1)))
      return value.wrong(fmt::format("\"{}\" is no project of a tenant; use TENANT/PROJECT", text));
    if (std::find(out.begin(), out.end(), text) != out.end())
      return value.wrong(fmt::format("names `{}` twice", text));
    out.push_back(text);
  }
  return out;
}

template <class T>
Result<void> take_into(T& out, Result<T> from) {
  if (!from) return tl::unexpected(from.error());
  out = std::move(*from);
  return {};
}

Result<void> read_plan(const Value& value, PricePlan& plan) {
  ASSIGN(keys, value.entries());
  bool has_factor = false;
  for (const Value::Entry& key : *keys) {
    Result<void> done;
    if (key.key == "factor") {
      done = take_into(plan.factor, read_factor(key.value));
      has_factor = true;
    } else if (key.key == "classes") {
      done = take_into(plan.classes, read_words(key.value));
    } else if (key.key == "projects") {
      done = take_into(plan.projects, read_tenant_projects(key.value));
    } else if (key.key == "tenants") {
      done = take_into(plan.tenants, read_words(key.value));
    } else if (key.key == "tiers") {
      done = take_into(plan.tiers, read_words(key.value));
    } else if (key.key == "sandboxes") {
      done = take_into(plan.sandboxes, read_words(key.value));
    } else {
      return key.wrong(value.path(), fmt::format("unknown key `{}`; a plan has factor, classes, "
                                                 "projects, tenants, tiers and sandboxes",
                                                 key.key));
    }
    if (!done) return done;
  }
  if (!has_factor) return value.wrong("`factor` is missing");
  return {};
}

Result<std::vector<std::string>> read_days(const Value& value) {
  auto days = read_words(value);
  if (!days) return days;
  for (const std::string& day : *days)
    if (std::find(kWeekdays.begin(), kWeekdays.end(), day) == kWeekdays.end())
      return value.wrong(
          fmt::format("\"{}\" is no day; use mon, tue, wed, thu, fri, sat, sun", day));
  return days;
}

Result<std::int32_t> read_time_of_day(const Value& value) {
  ASSIGN(text, value.text());
  const auto minutes = parse_time_of_day(*text);
  if (!minutes) return value.wrong(minutes.error());
  return *minutes;
}

Result<void> read_window(const Value& value, PriceHours& hours) {
  ASSIGN(keys, value.entries());
  int given = 0;
  for (const Value::Entry& key : *keys) {
    Result<void> done;
    if (key.key == "from")
      done = take_into(hours.from, read_time_of_day(key.value));
    else if (key.key == "until")
      done = take_into(hours.until, read_time_of_day(key.value));
    else if (key.key == "factor")
      done = take_into(hours.factor, read_factor(key.value));
    else if (key.key == "days")
      done = take_into(hours.days, read_days(key.value));
    else
      return key.wrong(
          value.path(),
          fmt::format("unknown key `{}`; hours have from, until, factor and days", key.key));
    if (!done) return done;
    given += key.key == "days" ? 0 : 1;
  }
  if (given < 3) return value.wrong("needs from, until and factor");
  return {};
}

}  // namespace

bool is_gpu_price_key(std::string_view key) {
  const std::size_t colon = key.find(':');
  if (colon == std::string_view::npos) return config::is_word(key);
  std::string profile(key.substr(colon + 1));
  std::replace(profile.begin(), profile.end(), '+', '.');  // so that "1g.10gb+me" is a word too
  return config::is_word(key.substr(0, colon)) && config::is_word(profile);
}

Result<void> read_price(const Value& value, Money& out) {
  ASSIGN(text, value.text());
  const auto price = parse_money(*text);
  if (!price) return value.wrong(price.error());
  if (price->micros > kMostPrice)
    return value.wrong(fmt::format("{} is more than {}", *text, format_money(Money{kMostPrice})));
  out = *price;
  return {};
}

Result<void> read_sum(const Value& value, Money& out) {
  ASSIGN(text, value.text());
  const auto sum = parse_money(*text);
  if (!sum) return value.wrong(sum.error());
  if (*sum <= Money{} || *sum > kMostBudget)
    return value.wrong(
        fmt::format("{} is outside of 0.000001 to {}", *text, format_money(kMostBudget)));
  out = *sum;
  return {};
}

Result<void> read_percents(const Value& value, std::vector<std::uint32_t>& out) {
  ASSIGN(items, value.items());
  for (const Value& item : *items) {
    ASSIGN(percent, read_number(item, 1, kMostWarnPercent));
    if (!out.empty() && static_cast<std::uint32_t>(*percent) <= out.back())
      return item.wrong("the percentages have to rise");
    out.push_back(static_cast<std::uint32_t>(*percent));
  }
  return {};
}

Result<void> read_gpu_prices(const Value& value, std::map<std::string, Money>& out) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    std::string key = entry.key;
    for (char& c : key) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (!is_gpu_price_key(key))
      return entry.wrong(value.path(), fmt::format("\"{}\" is no GPU; use a model, MODEL:PROFILE "
                                                   "for a MIG slice, MODEL:shared, or default",
                                                   entry.key));
    Money price;
    if (auto done = read_price(entry.value, price); !done) return done;
    if (!out.emplace(std::move(key), price).second)
      return entry.wrong(value.path(), fmt::format("`{}` is given twice", entry.key));
  }
  return {};
}

Result<void> read_named_prices(const Value& value, std::map<std::string, Money>& out,
                               Result<void> (*read)(const Value&, Money&)) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    if (!config::is_word(entry.key)) return entry.wrong(value.path(), not_a_name(entry.key));
    Money price;
    if (auto done = read(entry.value, price); !done) return done;
    if (!out.emplace(entry.key, price).second)
      return entry.wrong(value.path(), fmt::format("`{}` is given twice", entry.key));
  }
  return {};
}

Result<void> read_zone(const Value& value, ZoneName& out) {
  ASSIGN(text, value.text());
  if (TimeZone::parse(*text)) {
    out = {*text, *text};
    return {};
  }
  if (*text == "UTC") {
    out = {"UTC", "UTC0"};
    return {};
  }
  const auto rule = is_zone_name(*text) ? rule_of_file(kZoneFolder + *text) : std::nullopt;
  if (!rule)
    return value.wrong(
        fmt::format("\"{}\" is no time zone that this machine knows (package tzdata); use a name "
                    "such as Europe/Prague, or a rule such as CET-1CEST,M3.5.0,M10.5.0/3",
                    *text));
  if (const auto zone = TimeZone::parse(*rule); !zone) return value.wrong(zone.error());
  out = {std::move(*text), *rule};
  return {};
}

std::optional<std::string> zone_rule(std::string_view text) {
  if (text.starts_with(':')) text.remove_prefix(1);
  std::string name(text);
  if (TimeZone::parse(name)) return name;
  auto rule = name.starts_with('/') ? rule_of_file(name)
              : is_zone_name(name)  ? rule_of_file(kZoneFolder + name)
                                    : std::nullopt;
  return rule && TimeZone::parse(*rule) ? rule : std::nullopt;
}

Result<void> read_zones(const Value& value, std::map<std::string, ZoneName>& out) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    if (!config::is_word(entry.key)) return entry.wrong(value.path(), not_a_name(entry.key));
    if (auto done = read_zone(entry.value, out[entry.key]); !done) return done;
  }
  return {};
}

Result<void> read_plans(const Value& value, std::vector<PricePlan>& out) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    if (!config::is_word(entry.key)) return entry.wrong(value.path(), not_a_name(entry.key));
    PricePlan& plan = out.emplace_back();
    plan.name = entry.key;
    if (auto done = read_plan(entry.value, plan); !done) return done;
  }
  return {};
}

Result<void> read_hours(const Value& value, std::vector<PriceHours>& out) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    if (!config::is_word(entry.key)) return entry.wrong(value.path(), not_a_name(entry.key));
    PriceHours& hours = out.emplace_back();
    hours.name = entry.key;
    if (auto done = read_window(entry.value, hours); !done) return done;
  }
  return {};
}

}  // namespace gantry::tenancy
