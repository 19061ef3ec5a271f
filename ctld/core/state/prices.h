// Prices in force: the price books of the documents ordered by date, and the division of time into
// pieces. Within a piece nothing changes that affects a charge: no price, no factor of the hour, no
// month, no week, no daylight-saving change.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/money/price_book.h"
#include "common/time/time_zone.h"
#include "ctld/core/state/tenancy_compile.h"

namespace gantry::core {

struct PriceTable {
  struct Book {
    Instant from{};
    tenancy::PriceBook book;
  };
  std::vector<Book> books;  // by `from`
  std::string currency;     // "" = there are no prices
  std::string zone_name = "UTC";
  TimeZone zone;
  std::map<std::string, TimeZone> tenant_zones;
  std::map<std::string, std::string> tenant_zone_names;
  std::string issuer;  // issuer shown on invoices; "" = no price book names one
  // With budgets, time is also cut at every day, and where fixed budgets begin and end.
  bool by_day = false;
  std::vector<Instant> edges;  // sorted

  [[nodiscard]] const TimeZone& zone_of(const std::string& tenant) const;
  [[nodiscard]] const std::string& zone_name_of(const std::string& tenant) const;
  // The book in force at `t`; nullptr: none yet.
  [[nodiscard]] const tenancy::PriceBook* at(Instant t) const;
};

PriceTable compile_prices(const Documents& documents);
// When a fixed budget begins and ends.
Instant budget_edge(const TimeZone& zone, const std::string& date);

// Price per hour of `unit` of the item; 0 without a book.
Money price_of(const tenancy::PriceBook* book, std::string_view item, std::uint32_t unit);
// The plan's factor in thousandths; kFactorUnit if the book has no such plan.
std::int64_t plan_factor(const tenancy::PriceBook* book, std::string_view plan);
// The plan with the lowest factor among those that list one of these. Plans that list the sandbox
// are preferred to others; "" = there is no plan.
std::string plan_for(const tenancy::PriceBook* book, const std::string& priority_class,
                     const std::string& tenant, const std::string& project, const std::string& tier,
                     Sandbox sandbox);

struct Piece {
  Instant from{}, until{};
  const tenancy::PriceBook* book = nullptr;
  std::int64_t hour_factor = kFactorUnit;
  std::string month;     // "2026-11"
  std::string week;      // "2026-W47"
  std::int64_t day = 0;  // local, since 1970-01-01
};
// The piece of time that begins at `from` and ends at `to`, which is later, at the latest.
Piece piece_at(const PriceTable& prices, const TimeZone& zone, Instant from, Instant to);

// Names of the periods that `t` lies in.
std::string month_at(const TimeZone& zone, Instant t);
std::string week_at(const TimeZone& zone, Instant t);

}  // namespace gantry::core
