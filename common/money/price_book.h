// The price book: what an hour of each thing costs from a date on, for whom it costs less, and what
// is credited. It is a tenancy document (tenancy_cluster.h), and is applied, versioned and shown
// like the others.
//
// If there are several books, the newest whose date has come is in force, as a whole. The price of
// a second is the one in force when the second passes: a change never alters the price of the past.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/money/money.h"
#include "common/special_members.h"
#include "common/time/time_zone.h"

namespace gantry::tenancy {

// What is credited for an attempt with such an end: nothing, the work since its newest checkpoint,
// or everything.
enum class CreditPart : std::uint8_t { none = 0, lost = 1, all = 2 };
GANTRY_NAMES(CreditPart, {none, "none"}, {lost, "lost"}, {all, "all"})

struct PricePlan {  // a factor on the prices of jobs that any of the lists names
  std::string name;
  std::int32_t factor = 1000;         // thousandths, 0..100000
  std::vector<std::string> classes;   // priority classes
  std::vector<std::string> projects;  // TENANT/PROJECT
  std::vector<std::string> tenants;
  std::vector<std::string> tiers;
  std::vector<std::string> sandboxes{};  // how strong the wall around a job is (job_access.h)
  friend bool operator==(const PricePlan&, const PricePlan&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, factor), FIELD(3, classes), FIELD(4, projects),
                FIELD(5, tenants), FIELD(6, tiers), FIELD(11, sandboxes))
};

struct PriceHours {  // hours of the local day; if `until` is not after `from`, they pass midnight
  std::string name;
  std::int32_t from = 0;          // minutes after midnight, 0..1439
  std::int32_t until = 0;         // 0..1439
  std::int32_t factor = 1000;     // thousandths, 0..100000
  std::vector<std::string> days;  // "mon".."sun" on which they begin; none = every day
  friend bool operator==(const PriceHours&, const PriceHours&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, from), FIELD(3, until), FIELD(4, factor), FIELD(5, days))
};

inline constexpr std::array<std::string_view, 7> kWeekdays{"sun", "mon", "tue", "wed",
                                                           "thu", "fri", "sat"};

struct PriceBook {
  GANTRY_SPECIAL_MEMBERS(PriceBook)
  static constexpr std::string_view kName = "PriceBook";
  static constexpr int kKind = 8;
  std::string name;
  std::string description;
  std::string from;      // local "2026-12-01" or "2026-12-01T06:00"; "" = from the beginning
  std::string currency;  // "EUR"; "" = as in another book
  ZoneName zone;         // where months end and hours count; "" = as another book says, or UTC
  std::map<std::string, ZoneName> tenant_zones;  // tenants whose months end elsewhere
  // Prices by GPU model; "a100:1g.10gb" for a slice, "a100:shared" for a share of the GPU's time,
  // "default" for others.
  std::map<std::string, Money> gpu;
  Money cpu, memory, scratch;  // price of a core, a GiB, a GiB
  Money io, net;               // price of a GB/s and of a Gbit/s
  // Price of one unit of what is metered elsewhere: "storage-gib-month", "egress-gib".
  std::map<std::string, Money> meters;
  // Costs of a month: those that all tenants share, by name; and the cost of the whole platform,
  // which is only compared with what it earns.
  std::map<std::string, Money> overhead;
  Money platform_cost;
  std::vector<PricePlan> plans;
  std::vector<PriceHours> hours;
  CreditPart preempted = CreditPart::none;
  CreditPart node_failure = CreditPart::lost;
  CreditPart launch_failure = CreditPart::all;
  std::string issuer;  // issuer of invoices: name and address; "" = as in another book
  friend bool operator==(const PriceBook&, const PriceBook&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, description), FIELD(3, from), FIELD(4, currency),
                FIELD(5, zone), FIELD(6, tenant_zones), FIELD(7, gpu), FIELD(8, cpu),
                FIELD(9, memory), FIELD(10, scratch), FIELD(11, plans), FIELD(12, hours),
                FIELD(13, preempted), FIELD(14, node_failure), FIELD(15, launch_failure),
                FIELD(16, meters), FIELD(17, overhead), FIELD(18, platform_cost), FIELD(19, issuer),
                FIELD(20, io), FIELD(21, net))
};

}  // namespace gantry::tenancy
