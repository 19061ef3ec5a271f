// Checks of documents about money; see check_references.h.
#include <fmt/core.h>

#include <algorithm>

#include "config/nearest.h"
#include "config/tenancy/check_references.h"
#include "config/tenancy/read_parts.h"
#include "config/tenancy/read_prices.h"
#include "config/values.h"

namespace gantry::tenancy {
namespace {

Found check_sums(const References& r, const PriceBook& b) {
  for (const auto& [key, price] : b.meters)
    if (!config::is_word(key) || price.micros < 0 || price.micros > kMostPrice)
      return r.problem("meters." + key, "is no name, or its price is outside of 0 to 10000");
  Money sum = b.platform_cost;
  for (const auto& [key, cost] : b.overhead) {
    if (!config::is_word(key) || cost <= Money{} || cost > kMostBudget)
      return r.problem("overhead." + key, "is no name, or no sum above 0");
    sum += cost;
  }
  if (sum < Money{} || sum > kMostBudget)
    return r.problem("platform_cost", fmt::format("with all overhead it is outside of 0 to {}",
                                                  format_money(kMostBudget)));
  return std::nullopt;
}

Found check_plans(const References& r, const PriceBook& b) {
  std::set<std::string> names;
  for (const PricePlan& plan : b.plans) {
    const std::string path = "plans." + plan.name;
    if (!config::is_word(plan.name)) return r.problem("plans", not_a_name(plan.name));
    if (!names.insert(plan.name).second) return r.problem(path, "is there twice");
    if (plan.factor < 0 || plan.factor > kMostFactor)
      return r.problem(path + ".factor", "is outside of 0 to 100");
    for (const std::string& name : plan.classes)
      if (Found found = r.refer(PriorityClass::kName, name, path + ".classes")) return found;
    for (const std::string& name : plan.projects)
      if (Found found = r.refer(Tenant::kName, name.substr(0, name.find('/')), path + ".projects"))
        return found;
    for (const std::string& name : plan.tenants)
      if (Found found = r.refer(Tenant::kName, name, path + ".tenants")) return found;
    for (const std::string& name : plan.tiers)
      if (Found found = r.refer(Tier::kName, name, path + ".tiers")) return found;
    for (const std::string& name : plan.sandboxes)
      if (!is_sandbox(name)) return r.problem(path + ".sandboxes", no_sandbox(name));
  }
  return std::nullopt;
}

Found check_hours(const References& r, const PriceBook& b) {
  std::set<std::string> names;
  const auto is_minute = [](std::int32_t m) { return m >= 0 && m < 24 * 60; };
  for (const PriceHours& hours : b.hours) {
    const std::string path = "hours." + hours.name;
    if (!config::is_word(hours.name)) return r.problem("hours", not_a_name(hours.name));
    if (!names.insert(hours.name).second) return r.problem(path, "is there twice");
    if (!is_minute(hours.from) || !is_minute(hours.until) || hours.from == hours.until)
      return r.problem(path, "`from` and `until` are two times of the day");
    if (hours.factor < 0 || hours.factor > kMostFactor)
      return r.problem(path + ".factor", "is outside of 0 to 100");
    for (const std::string& day : hours.days)
      if (std::find(kWeekdays.begin(), kWeekdays.end(), day) == kWeekdays.end())
        return r.problem(path + ".days", fmt::format("\"{}\" is no day; use mon to sun", day));
  }
  return std::nullopt;
}

// All price books must have one currency and one set of time zones, and no two may begin at the
// same date.
Found check_other_books(const References& r, const PriceBook& b) {
  std::string currency = b.currency;
  for (const Document& document : r.documents()) {
    const auto* other = std::get_if<PriceBook>(&document);
    if (other == nullptr || other->name == b.name) continue;
    if (!other->currency.empty() && !b.currency.empty() && other->currency != b.currency)
      return r.problem("currency", fmt::format("is {} in PriceBook {}, and all have one",
                                               other->currency, other->name));
    if (currency.empty()) currency = other->currency;
    if (other->from == b.from)
      return r.problem("from",
                       fmt::format("PriceBook {} is in force from the same time on", other->name));
    if (!other->zone.name.empty() && !b.zone.name.empty() && !(other->zone == b.zone))
      return r.problem("time_zone", fmt::format("is {} in PriceBook {}, and all have one",
                                                other->zone.name, other->name));
    for (const auto& [tenant, zone] : b.tenant_zones)
      if (const auto it = other->tenant_zones.find(tenant);
          it != other->tenant_zones.end() && !(it->second == zone))
        return r.problem("tenant_time_zones." + tenant,
                         fmt::format("is {} in PriceBook {}", it->second.name, other->name));
  }
  if (currency.empty()) return r.problem("currency", "is missing, here and in the other books");
  return std::nullopt;
}

Found check_budget_project(const References& r, const Budget& b) {
  if (b.project.empty()) return std::nullopt;
  const auto tenant =
      std::find_if(r.documents().begin(), r.documents().end(), [&](const Document& d) {
        const auto* t = std::get_if<Tenant>(&d);
        return t != nullptr && t->name == b.tenant;
      });
  const auto& projects = std::get<Tenant>(*tenant).projects;
  // A tenant that lists no projects has one of its own name.
  std::vector<std::string_view> known{b.tenant};
  if (!projects.empty()) known.clear();
  for (const Project& p : projects) known.push_back(p.name);
  if (std::find(known.begin(), known.end(), b.project) != known.end()) return std::nullopt;
  // The tenant may get projects from its tier.
  if (projects.empty() && !std::get<Tenant>(*tenant).tier.empty()) return std::nullopt;
  return r.problem("project", fmt::format("tenant {} has no project `{}`{}", b.tenant, b.project,
                                          did_you_mean(b.project, known)));
}

Found check_budget_dates(const References& r, const Budget& b) {
  if (b.period != BudgetPeriod::fixed) {
    if (b.from.empty() && b.until.empty()) return std::nullopt;
    return r.problem(b.from.empty() ? "until" : "from", "is only for `period: fixed`");
  }
  if (b.from.empty() || b.until.empty())
    return r.problem(b.from.empty() ? "from" : "until",
                     "is missing; a fixed budget has `from` and `until`");
  const auto from = parse_local_time(b.from);
  if (!from) return r.problem("from", from.error().message);
  const auto until = parse_local_time(b.until);
  if (!until) return r.problem("until", until.error().message);
  if (*until <= *from) return r.problem("until", "is not after `from`");
  return std::nullopt;
}

}  // namespace

Found check_price_book(const References& r, const PriceBook& b) {
  for (const auto& [key, price] : b.gpu)
    if (!is_gpu_price_key(key) || price.micros < 0 || price.micros > kMostPrice)
      return r.problem("gpu." + key, "is no GPU, or its price is outside of 0 to 10000");
  for (const auto& [key, price] :
       {std::pair("cpu", b.cpu), std::pair("memory", b.memory), std::pair("scratch", b.scratch),
        std::pair("io", b.io), std::pair("net", b.net)})
    if (price.micros < 0 || price.micros > kMostPrice)
      return r.problem(key, "is outside of 0 to 10000");
  if (Found found = check_sums(r, b)) return found;
  if (const auto date = parse_local_time(b.from); !b.from.empty() && !date)
    return r.problem("from", date.error().message);
  if (Found found = check_plans(r, b)) return found;
  if (Found found = check_hours(r, b)) return found;
  if (const auto zone = TimeZone::parse(b.zone.rule); !b.zone.name.empty() && !zone)
    return r.problem("time_zone", zone.error().message);
  for (const auto& [tenant, zone] : b.tenant_zones) {
    const std::string path = "tenant_time_zones." + tenant;
    if (Found found = r.refer(Tenant::kName, tenant, path)) return found;
    if (const auto rule = TimeZone::parse(zone.rule); !rule)
      return r.problem(path, rule.error().message);
  }
  return check_other_books(r, b);
}

Found check_budget(const References& r, const Budget& b) {
  if (b.tenant.empty()) return r.problem("tenant", "is missing");
  if (Found found = r.refer(Tenant::kName, b.tenant, "tenant")) return found;
  if (b.amount <= Money{} || b.amount > kMostBudget)
    return r.problem("amount", "is missing; a budget has an amount above 0");
  if (!b.user.empty() && !is_account_name(b.user))
    return r.problem("user", fmt::format("\"{}\" is not the name of a user", b.user));
  if (Found found = check_budget_project(r, b)) return found;
  if (Found found = check_budget_dates(r, b)) return found;
  std::uint32_t before = 0;
  for (const std::uint32_t percent : b.warn_at) {
    if (percent <= before || percent > kMostWarnPercent)
      return r.problem("warn_at", fmt::format("has to rise, up to {}", kMostWarnPercent));
    before = percent;
  }
  const bool lowers = b.at_limit == BudgetAction::lower_class;
  if (lowers && b.lower_to.empty())
    return r.problem("lower_to", "is missing; `at_limit: lower-class` needs the class");
  if (!lowers && !b.lower_to.empty())
    return r.problem("lower_to", "is only for `at_limit: lower-class`");
  if (Found found = r.refer(PriorityClass::kName, b.lower_to, "lower_to")) return found;
  if (b.grace.us < 0 || b.grace > hours(24)) return r.problem("grace", "is outside of 0s to 24h");
  if (std::none_of(r.documents().begin(), r.documents().end(),
                   [](const Document& d) { return std::holds_alternative<PriceBook>(d); }))
    return r.problem("", "there is no PriceBook: without prices nothing costs anything");
  return std::nullopt;
}

}  // namespace gantry::tenancy
