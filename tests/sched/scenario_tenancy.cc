// Commands of scenarios about tenants: flavors, classes, cohorts, shares, reservations.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include "common/text/hostlist.h"
#include "tests/sched/scenario.h"

namespace gantry::sched {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// A word such as "gpu", "gpu.borrow", "gpu@a100" or "gpu@a100.lend"; the unit is cores, GiB or
// devices.
struct QuotaWord {
  std::size_t resource = 0;
  std::string flavor;
  std::string what;  // "", "borrow", "lend"
};
std::optional<QuotaWord> parse_quota_word(std::string key) {
  QuotaWord word;
  if (const auto dot = key.find('.'); dot != std::string::npos) {
    word.what = key.substr(dot + 1);
    key.resize(dot);
  }
  if (const auto at = key.find('@'); at != std::string::npos) {
    word.flavor = key.substr(at + 1);
    key.resize(at);
  }
  for (const ResourceRow& row : kResourceTable)
    if (row.name == key) {
      word.resource = static_cast<std::size_t>(row.id);
      return word;
    }
  return std::nullopt;
}

}  // namespace

std::uint32_t Scenario::flavor_named(const std::string& name) {
  REQUIRE_MESSAGE(flavors_.contains(name), name);
  return flavors_.at(name);
}
std::uint32_t Scenario::class_named(const std::string& name) {
  REQUIRE_MESSAGE(classes_.contains(name), name);
  return classes_.at(name);
}
ShareId Scenario::share_named(const std::string& name) {
  REQUIRE_MESSAGE(shares_.contains(name), name);
  return shares_.at(name).share;
}

void Scenario::quota_node(Words& w, bool tenant) {
  const bool known = quota_nodes_.contains(w.first);
  const auto index =
      known ? quota_nodes_.at(w.first) : static_cast<std::uint32_t>(tenancy_.nodes.size());
  quota_nodes_[w.first] = index;
  if (!known) tenancy_.nodes.emplace_back();
  QuotaNode& node = tenancy_.nodes[index];
  node = QuotaNode{};
  node.name = w.first;
  node.tenant = tenant;
  if (const auto in = w.take("in")) node.parent = quota_nodes_.at(*in);
  node.weight = static_cast<std::uint32_t>(w.number_or("weight", 1) * 1000);
  if (const auto jobs = w.take("jobs"))
    node.max_running = static_cast<std::uint32_t>(scenario_number(*jobs));
  if (const auto reclaim = w.take("reclaim")) {
    for (const auto& [value, name] : enum_names(tenancy::Reclaim{}))
      if (name == *reclaim) node.reclaim = value;
  }
  node.limits.resize(tenancy_.flavors.size());
  for (FlavorLimits& l : node.limits) {
    l.nominal.fill(tenant ? kUnlimited : 0);
    l.borrow.fill(kUnlimited);
    l.lend.fill(kUnlimited);
  }
  const auto values = w.values;
  for (const auto& [key, value] : values) {
    const auto word = parse_quota_word(key);
    if (!word) continue;
    w.take(key);
    FlavorLimits& l = node.limits[word->flavor.empty() ? 0 : flavor_named(word->flavor)];
    const bool thousandths = word->resource == static_cast<std::size_t>(Resource::cpu) ||
                             word->resource == static_cast<std::size_t>(Resource::gpu);
    const std::int64_t unit = thousandths ? 1000 : kGiB;
    auto& cells = word->what.empty() ? l.nominal : word->what == "lend" ? l.lend : l.borrow;
    cells[word->resource] = scenario_number(value) * unit;
  }
}

void Scenario::share(Words& w) {
  ShareChanged s;
  s.share = shares_.contains(w.first) ? shares_.at(w.first).share
                                      : ShareId{static_cast<std::uint32_t>(shares_.size())};
  if (const auto of = w.take("of")) s.parent = share_named(*of);
  s.shares = static_cast<std::uint32_t>(w.number_or("shares", 1));
  s.usage.amount = static_cast<double>(w.number_or("usage", 0));
  s.usage.rate = static_cast<double>(w.number_or("rate", 0));
  s.usage.at = now_;
  shares_[w.first] = s;
  replica_.apply(s);
}

void Scenario::reserve(Words& w) {
  ReservationChanged r;
  r.name = w.first;
  r.removed = w.flag("gone");
  if (const auto nodes = w.take("nodes")) {
    const auto names = expand_hostlist(*nodes);
    REQUIRE(names.has_value());
    for (const std::string& name : *names) r.nodes.push_back(node_id(name));
  }
  r.from = Instant{} + seconds(w.number_or("from", 0));
  r.until = Instant{} + seconds(w.number_or("until", 0));
  r.maintenance = w.flag("maintenance");
  replica_.apply(r);
}

bool Scenario::tenancy_command(Words& w) {
  if (w.name == "share") return share(w), true;
  if (w.name == "reserve") return reserve(w), true;
  if (w.name == "flavor") {
    REQUIRE_MESSAGE(tenancy_.nodes.empty(), "flavors come before cohorts and tenants");
    flavors_[w.first] = static_cast<std::uint32_t>(tenancy_.flavors.size());
    tenancy_.flavors.push_back({w.first, {}});
    tenancy_.flavors.back().charge[static_cast<std::size_t>(Resource::gpu)] =
        static_cast<double>(w.number_or("gpu", 1)) / kGpuUnit;
  } else if (w.name == "class") {
    ClassView c;
    c.name = w.first;
    c.value = static_cast<std::int32_t>(w.number_or("value", 500));
    c.preempts = w.flag("preempts");
    c.preemptible = !w.flag("keeps");
    c.grace = seconds(w.number_or("grace", 0));
    c.min_run_time = seconds(w.number_or("min_run", 0));
    if (const auto most = w.take("most"))
      c.max_preemptions = static_cast<std::uint32_t>(scenario_number(*most));
    classes_[c.name] = static_cast<std::uint32_t>(tenancy_.classes.size());
    tenancy_.classes.push_back(c);
  } else if (w.name == "cohort" || w.name == "tenant") {
    quota_node(w, w.name == "tenant");
  } else {
    return false;
  }
  tenancy_changed_ = true;
  return true;
}

void Scenario::tell_tenancy() {
  if (!std::exchange(tenancy_changed_, false)) return;
  ++tenancy_.revision;
  auto& gpu = tenancy_.flavors[0].charge[static_cast<std::size_t>(Resource::gpu)];
  if (gpu == 0) gpu = 1.0 / kGpuUnit;
  replica_.apply(TenancyChanged{std::make_shared<const Tenancy>(tenancy_)});
  for (const auto& [name, p] : partitions_) replica_.apply(p);
}

}  // namespace gantry::sched
