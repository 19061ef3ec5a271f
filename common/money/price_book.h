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
#include "common/time/time_zone.h"

namespace gantry::tenancy {

// What is credited for an attempt with such an end: nothing, the work since its newest checkpoint,
// or everything.
enum class CreditPart : std::uint8_t { none = 0, lost = 1, all = 2 };
constexpr auto enum_names(CreditPart) {
  using enum CreditPart;
  return std::array<std::pair<CreditPart, std::string_view>, 3>{
      {{none, "none"}, {lost, "lost"}, {all, "all"}}};
}

struct PricePlan {  // a factor on the prices of jobs that any of the lists names
  std::string name;
  std::int32_t factor = 1000;         // thousandths, 0..100000
  std::vector<std::string> classes;   // priority classes
  std::vector<std::string> projects;  // TENANT/PROJECT
  std::vector<std::string> tenants;
  std::vector<std::string> tiers;
  std::vector<std::string> sandboxes{};  // how strong the wall around a job is (job_access.h)
  friend bool operator==(const PricePlan&, const PricePlan&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "factor", s.factor);
    v(3, "classes", s.classes);
    v(4, "projects", s.projects);
    v(5, "tenants", s.tenants);
    v(6, "tiers", s.tiers);
    v(11, "sandboxes", s.sandboxes);
  }
};

struct PriceHours {  // hours of the local day; if `until` is not after `from`, they pass midnight
  std::string name;
  std::int32_t from = 0;          // minutes after midnight, 0..1439
  std::int32_t until = 0;         // 0..1439
  std::int32_t factor = 1000;     // thousandths, 0..100000
  std::vector<std::string> days;  // "mon".."sun" on which they begin; none = every day
  friend bool operator==(const PriceHours&, const PriceHours&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "from", s.from);
    v(3, "until", s.until);
    v(4, "factor", s.factor);
    v(5, "days", s.days);
  }
};

inline constexpr std::array<std::string_view, 7> kWeekdays{"sun", "mon", "tue", "wed",
                                                           "thu", "fri", "sat"};

struct PriceBook {
  static constexpr std::string_view kName = "PriceBook";
  static constexpr int kKind = 8;
  std::string name;
  std::string description;
  std::string from;      // local "2026-12-01" or "2026-12-01T06:00"; "" = from the beginning
  std::string currency;  // "EUR"; "" = what another book says
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
  std::string issuer;  // who writes the invoices: name and address; "" = what another book says
  friend bool operator==(const PriceBook&, const PriceBook&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "description", s.description);
    v(3, "from", s.from);
    v(4, "currency", s.currency);
    v(5, "zone", s.zone);
    v(6, "tenant_zones", s.tenant_zones);
    v(7, "gpu", s.gpu);
    v(8, "cpu", s.cpu);
    v(9, "memory", s.memory);
    v(10, "scratch", s.scratch);
    v(11, "plans", s.plans);
    v(12, "hours", s.hours);
    v(13, "preempted", s.preempted);
    v(14, "node_failure", s.node_failure);
    v(15, "launch_failure", s.launch_failure);
    v(16, "meters", s.meters);
    v(17, "overhead", s.overhead);
    v(18, "platform_cost", s.platform_cost);
    v(19, "issuer", s.issuer);
    v(20, "io", s.io);
    v(21, "net", s.net);
  }
};

}  // namespace gantry::tenancy
