// Reads values of price books and budgets: money, time zones, plans, hours of the day, percentages.
#pragma once

#include "common/money/budget.h"
#include "common/money/price_book.h"
#include "config/tenancy/place.h"

namespace gantry::tenancy {

inline constexpr std::int32_t kMostFactor = 100 * kFactorUnit;  // for plans and hours

Result<void> read_price(const Value& value, Money& out);
Result<void> read_sum(const Value& value, Money& out);  // amount of a budget
// Reads a list like [50, 80], ascending.
Result<void> read_percents(const Value& value, std::vector<std::uint32_t>& out);
// Reads {a100: 2.50, "a100:1g.10gb": 0.40, default: 1.00}.
Result<void> read_gpu_prices(const Value& value, std::map<std::string, Money>& out);
// Reads {storage-gib-month: 0.02}; read_price or read_sum reads each amount.
Result<void> read_named_prices(const Value& value, std::map<std::string, Money>& out,
                               Result<void> (*read)(const Value&, Money&));
// Reads a rule as it is, or a name, whose rule is looked up in this machine's time zone database.
Result<void> read_zone(const Value& value, ZoneName& out);
// The rule of a zone as the variable TZ has it: a rule, the name of a zone, or a file of the time
// zone database, perhaps after a colon. Nothing if this machine does not know it.
std::optional<std::string> zone_rule(std::string_view text);
Result<void> read_zones(const Value& value, std::map<std::string, ZoneName>& out);
// Reads {spot: {factor: 0.4, classes: [best-effort]}}.
Result<void> read_plans(const Value& value, std::vector<PricePlan>& out);
// Reads {night: {from: 22:00, until: 06:00, days: [mon, tue], factor: 0.5}}.
Result<void> read_hours(const Value& value, std::vector<PriceHours>& out);

bool is_gpu_price_key(std::string_view key);

}  // namespace gantry::tenancy
