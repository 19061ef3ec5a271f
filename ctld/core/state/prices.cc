#include "ctld/core/state/prices.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/assert.h"

namespace gantry::core {
namespace {

using tenancy::PriceBook;
using tenancy::PriceHours;

constexpr std::int64_t kDaySeconds = 86'400;
constexpr std::int64_t kMicros = 1'000'000;

std::int64_t day_of(std::int64_t local) {
  return local / kDaySeconds - (local % kDaySeconds < 0 ? 1 : 0);
}

bool begins_on(const PriceHours& hours, std::int64_t day) {
  const std::string_view name = tenancy::kWeekdays[static_cast<std::size_t>(weekday_of(day))];
  return hours.days.empty() ||
         std::find(hours.days.begin(), hours.days.end(), name) != hours.days.end();
}

// Where hours of the price book overlap, the lowest factor applies.
std::int64_t hour_factor(const PriceBook& book, std::int64_t local) {
  const std::int64_t day = day_of(local);
  const std::int64_t minute = (local - day * kDaySeconds) / 60;
  std::optional<std::int64_t> out;
  for (const PriceHours& hours : book.hours) {
    const bool over_midnight = hours.until <= hours.from;
    const bool today = minute >= hours.from && (over_midnight || minute < hours.until);
    const bool since_yesterday = over_midnight && minute < hours.until;
    if ((today && begins_on(hours, day)) || (since_yesterday && begins_on(hours, day - 1)))
      out = std::min<std::int64_t>(out.value_or(hours.factor), hours.factor);
  }
  return out.value_or(kFactorUnit);
}

// The first local second after `local` at which a month, a week or an hour of the price book begins
// or ends, and with `by_day` a day.
std::int64_t next_edge(const PriceBook* book, std::int64_t local, bool by_day) {
  const std::int64_t day = day_of(local);
  const CivilDay civil = civil_of(day);
  const CivilDay next_month{civil.month == 12 ? civil.year + 1 : civil.year,
                            civil.month == 12 ? 1 : civil.month + 1, 1};
  std::int64_t out = days_of(next_month) * kDaySeconds;
  out = std::min(out, (day + (7 - (weekday_of(day) + 6) % 7)) * kDaySeconds);  // Monday
  const bool hours = book != nullptr && !book->hours.empty();
  if (by_day || hours) out = std::min(out, (day + 1) * kDaySeconds);
  if (!hours) return out;
  for (const PriceHours& hours : book->hours)
    for (const std::int32_t minute : {hours.from, hours.until})
      if (const std::int64_t at = day * kDaySeconds + minute * 60; at > local)
        out = std::min(out, at);
  return out;
}

bool names(const std::vector<std::string>& list, const std::string& name) {
  return !name.empty() && std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

const TimeZone& PriceTable::zone_of(const std::string& tenant) const {
  const auto it = tenant_zones.find(tenant);
  return it == tenant_zones.end() ? zone : it->second;
}

const std::string& PriceTable::zone_name_of(const std::string& tenant) const {
  const auto it = tenant_zone_names.find(tenant);
  return it == tenant_zone_names.end() ? zone_name : it->second;
}

const PriceBook* PriceTable::at(Instant t) const {
  const PriceBook* out = nullptr;
  for (const Book& book : books)
    if (book.from <= t) out = &book.book;
  return out;
}

PriceTable compile_prices(const Documents& documents) {
  PriceTable out;
  const auto zone_of = [](const ZoneName& name) {
    const auto zone = TimeZone::parse(name.rule);
    GANTRY_ASSERT(zone.has_value(), "documents were checked before they were stored");
    return *zone;
  };
  for (auto it = documents.lower_bound({PriceBook::kKind, ""});
       it != documents.end() && it->first.first == PriceBook::kKind; ++it) {
    const auto& book = std::get<PriceBook>(it->second);
    if (out.currency.empty()) out.currency = book.currency;
    if (!book.zone.name.empty()) {
      out.zone = zone_of(book.zone);
      out.zone_name = book.zone.name;
    }
    for (const auto& [tenant, zone] : book.tenant_zones) {
      out.tenant_zones.insert_or_assign(tenant, zone_of(zone));
      out.tenant_zone_names.insert_or_assign(tenant, zone.name);
    }
    if (out.issuer.empty()) out.issuer = book.issuer;
    out.books.push_back({Instant{INT64_MIN}, book});
  }
  for (PriceTable::Book& book : out.books)  // dates are in the cluster's time zone
    if (!book.book.from.empty()) {
      const auto local = parse_local_time(book.book.from);
      GANTRY_ASSERT(local.has_value(), "documents were checked before they were stored");
      book.from = out.zone.instant_of(*local);
    }
  std::sort(out.books.begin(), out.books.end(),
            [](const auto& a, const auto& b) { return a.from < b.from; });
  for (auto it = documents.lower_bound({tenancy::Budget::kKind, ""});
       it != documents.end() && it->first.first == tenancy::Budget::kKind; ++it) {
    const auto& budget = std::get<tenancy::Budget>(it->second);
    out.by_day = true;
    for (const std::string* date : {&budget.from, &budget.until})
      if (!date->empty()) out.edges.push_back(budget_edge(out.zone_of(budget.tenant), *date));
  }
  std::sort(out.edges.begin(), out.edges.end());
  return out;
}

Instant budget_edge(const TimeZone& zone, const std::string& date) {
  const auto local = parse_local_time(date);
  GANTRY_ASSERT(local.has_value(), "documents were checked before they were stored");
  return zone.instant_of(*local);
}

Money price_of(const PriceBook* book, std::string_view item, std::uint32_t unit) {
  if (book == nullptr) return {};
  if (item == "cpu") return book->cpu;
  if (item == "memory") return book->memory;
  if (item == "scratch") return book->scratch;
  if (item == "io") return book->io;
  if (item == "net") return book->net;
  GANTRY_ASSERT(item.starts_with("gpu:"), "an item of a bill");
  const std::string key(item.substr(4));
  if (const auto it = book->gpu.find(key); it != book->gpu.end()) return it->second;
  const std::size_t colon = key.find(':');
  auto whole = book->gpu.find(key.substr(0, colon));
  if (whole == book->gpu.end()) whole = book->gpu.find("default");
  if (whole == book->gpu.end()) return {};
  return colon == std::string::npos ? whole->second : part_of(whole->second, unit);
}

std::int64_t plan_factor(const PriceBook* book, std::string_view plan) {
  if (book != nullptr)
    for (const tenancy::PricePlan& p : book->plans)
      if (p.name == plan) return p.factor;
  return kFactorUnit;
}

std::string plan_for(const PriceBook* book, const std::string& priority_class,
                     const std::string& tenant, const std::string& project, const std::string& tier,
                     Sandbox sandbox) {
  if (book == nullptr) return {};
  const tenancy::PricePlan* best = nullptr;
  bool best_by_sandbox = false;
  for (const tenancy::PricePlan& p : book->plans) {
    // A special sandbox may cost more; a plan for every sandbox would undo that surcharge.
    const bool by_sandbox = names(p.sandboxes, std::string(enum_name(sandbox)));
    if (!by_sandbox && !names(p.classes, priority_class) && !names(p.tenants, tenant) &&
        !names(p.tiers, tier) && !names(p.projects, tenant + "/" + project))
      continue;
    if (best != nullptr &&
        (best_by_sandbox != by_sandbox ? best_by_sandbox : p.factor >= best->factor))
      continue;
    best = &p;
    best_by_sandbox = by_sandbox;
  }
  return best == nullptr ? std::string() : best->name;
}

Piece piece_at(const PriceTable& prices, const TimeZone& zone, Instant from, Instant to) {
  GANTRY_ASSERT(from < to, "a piece of time");
  Piece out;
  out.from = from;
  out.until = to;
  out.book = prices.at(from);
  const std::int64_t local = zone.local_of(from);
  if (out.book != nullptr) out.hour_factor = hour_factor(*out.book, local);
  out.month = month_at(zone, from);
  out.week = week_at(zone, from);
  out.day = day_of(local);
  // Until the next daylight-saving change, local time advances evenly.
  const std::int64_t edge =
      (next_edge(out.book, local, prices.by_day) - zone.offset_at(from)) * kMicros;
  out.until = std::min(out.until, Instant{edge});
  if (const auto change = zone.next_change(from)) out.until = std::min(out.until, *change);
  for (const PriceTable::Book& book : prices.books)
    if (book.from > from) out.until = std::min(out.until, book.from);
  const auto edge_after = std::upper_bound(prices.edges.begin(), prices.edges.end(), from);
  if (edge_after != prices.edges.end()) out.until = std::min(out.until, *edge_after);
  return out;
}

std::string month_at(const TimeZone& zone, Instant t) {
  const CivilDay day = civil_of(day_of(zone.local_of(t)));
  return fmt::format("{:04}-{:02}", day.year, day.month);
}

std::string week_at(const TimeZone& zone, Instant t) {
  const IsoWeek week = iso_week_of(day_of(zone.local_of(t)));
  return fmt::format("{:04}-W{:02}", week.year, week.week);
}

}  // namespace gantry::core
