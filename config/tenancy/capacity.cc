#include "config/tenancy/capacity.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "common/text/hostlist.h"
#include "config/tenancy/amounts.h"
#include "config/tenancy/write.h"

namespace gantry::tenancy {
namespace {

template <class T>
std::vector<const T*> all_of(std::span<const Document> documents) {
  std::vector<const T*> out;
  for (const Document& document : documents)
    if (const T* found = std::get_if<T>(&document)) out.push_back(found);
  std::sort(out.begin(), out.end(), [](const T* a, const T* b) { return a->name < b->name; });
  return out;
}

bool has_all(const std::vector<std::string>& features, const std::vector<std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& w) {
    return std::find(features.begin(), features.end(), w) != features.end();
  });
}

struct Pools {
  struct Pool {
    const NodePool* document;
    std::set<std::string> hosts;
  };
  std::map<std::string, Pool> by_name;

  explicit Pools(std::span<const Document> documents) {
    for (const NodePool* pool : all_of<NodePool>(documents)) {
      const auto hosts = expand_hostlist(pool->nodes);
      by_name[pool->name] = {pool, hosts ? std::set<std::string>(hosts->begin(), hosts->end())
                                         : std::set<std::string>()};
    }
  }
  [[nodiscard]] bool has(const std::string& name, const std::string& host,
                         const std::vector<std::string>& features) const {
    const auto pool = by_name.find(name);
    return pool != by_name.end() &&
           (pool->second.document->nodes.empty() || pool->second.hosts.contains(host)) &&
           has_all(features, pool->second.document->features);
  }
};

std::size_t conditions_of(const Flavor& f) {
  return (f.node_pool.empty() ? 0u : 1u) + (f.gpu_model.empty() ? 0u : 1u) + f.features.size();
}

std::string_view word_of(Resource resource) {
  for (const auto& [r, key] : kResourceKeys)
    if (r == resource) return key;
  return "";
}

std::string cell_text(Resource resource, const std::string& flavor) {
  return flavor.empty() ? std::string(word_of(resource))
                        : fmt::format("{} of {}", word_of(resource), flavor);
}

// ---- parts

class Resolver {
 public:
  Resolver(const Capacity& capacity, std::vector<std::string>& notes)
      : capacity_(capacity), notes_(notes) {}

  Result<void> run(ReadDocument& read, const PartialLine& parts) {
    QuotaLine& line = (*quota_of(read.document))[parts.line];
    Resources total = capacity_.total;
    if (!line.flavor.empty()) {
      const auto found = capacity_.flavors.find(line.flavor);
      total = found == capacity_.flavors.end() ? Resources{} : found->second;
    }
    const std::string whose = fmt::format("{} {}", kind_of(read.document), name_of(read.document));
    const auto resolve = [&](const std::optional<Amount>& amount) -> Result<std::int64_t> {
      if (!amount->part) return amount->value;
      if (total[line.resource] == 0)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("{}: {}: the cluster has no {}", to_string(amount->place),
                                amount->path, cell_text(line.resource, line.flavor)));
      return part_of(whose, line, *amount, total[line.resource]);
    };
    ASSIGN(nominal, resolve(parts.nominal));
    line.nominal = *nominal;
    if (parts.nominal->part && !std::holds_alternative<Tier>(read.document)) {
      std::int64_t& sum = sums_[{line.flavor, line.resource}];
      sum += *parts.nominal->part;
      if (sum > kAll)
        return fail(
            ErrorCode::invalid_argument,
            fmt::format("{}: {}: with this, {} of all {} are guaranteed; parts sum to at most 100%",
                        to_string(parts.nominal->place), parts.nominal->path, percent(sum),
                        cell_text(line.resource, line.flavor)));
    }
    for (const auto& [from, is_burst] : {std::pair(&parts.borrow, false), {&parts.burst, true}}) {
      if (!*from) continue;
      ASSIGN(amount, resolve(*from));
      if (is_burst && *amount < line.nominal)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("{}: {}: is below what is guaranteed", to_string((*from)->place),
                                (*from)->path));
      line.borrow = *amount - (is_burst ? line.nominal : 0);
    }
    if (parts.lend) {
      ASSIGN(amount, resolve(parts.lend));
      line.lend = *amount;
    }
    return {};
  }

 private:
  static constexpr std::int64_t kAll = 1'000'000;

  static std::string percent(std::int64_t millionths) {
    std::string text = fmt::format("{}.{:04}", millionths / 10'000, millionths % 10'000);
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text + "%";
  }

  // Rounds down to whole devices and cores, and to whole MiB.
  std::int64_t part_of(const std::string& whose, const QuotaLine& line, const Amount& amount,
                       std::int64_t total) {
    const auto exact = static_cast<__int128>(total) * *amount.part;
    std::int64_t unit = 1;
    if (line.resource == Resource::cpu || line.resource == Resource::gpu) unit = 1000;
    if (line.resource == Resource::memory || line.resource == Resource::scratch) unit = 1 << 20;
    const auto value = static_cast<std::int64_t>(exact / kAll / unit * unit);
    const bool rounded = exact != static_cast<__int128>(value) * kAll;
    notes_.push_back(
        fmt::format("{}: {}: {} of {} {} is {}{}", whose, amount.path, percent(*amount.part),
                    show_amount(line.resource, total), cell_text(line.resource, line.flavor),
                    show_amount(line.resource, value),
                    !rounded ? std::string()
                    : line.resource == Resource::gpu
                        ? fmt::format(" (rounded down from {})",
                                      show_thousandths(static_cast<std::int64_t>(exact / kAll)))
                        : " (rounded down)"));
    return value;
  }

  const Capacity& capacity_;
  std::vector<std::string>& notes_;
  std::map<std::pair<std::string, Resource>, std::int64_t> sums_;
};

// ---- warnings

const Tier* tier_of(const Tenant& tenant, const std::vector<const Tier*>& tiers) {
  for (const Tier* tier : tiers)
    if (tier->name == tenant.tier) return tier;
  return nullptr;
}

void warn_of_guarantees(std::span<const Document> documents, const Capacity& capacity,
                        std::vector<std::string>& out) {
  std::map<std::pair<std::string, Resource>, std::int64_t> sums;
  const auto tiers = all_of<Tier>(documents);
  const auto add = [&](const std::vector<QuotaLine>& quota) {
    for (const QuotaLine& line : quota) {
      std::int64_t& sum = sums[{line.flavor, line.resource}];
      if (__builtin_add_overflow(sum, line.nominal, &sum)) sum = INT64_MAX;
    }
  };
  for (const Tenant* tenant : all_of<Tenant>(documents)) {
    const Tier* tier = tenant->quota.empty() ? tier_of(*tenant, tiers) : nullptr;
    add(tier == nullptr ? tenant->quota : tier->defaults.quota);
  }
  for (const Cohort* cohort : all_of<Cohort>(documents)) add(cohort->quota);
  for (const auto& [cell, sum] : sums) {
    const auto& [flavor, resource] = cell;
    if (!nodes_have(resource)) continue;
    std::int64_t there = capacity.total[resource];
    if (!flavor.empty()) {
      const auto found = capacity.flavors.find(flavor);
      there = found == capacity.flavors.end() ? 0 : found->second[resource];
    }
    if (sum > there)
      out.push_back(fmt::format(
          "{} {} are guaranteed in all, and the cluster has {}: not every guarantee can be kept at "
          "one time",
          show_amount(resource, sum), cell_text(resource, flavor), show_amount(resource, there)));
  }
}

void warn_of_tenant(const Tenant& tenant, const Tier* tier, std::vector<std::string>& out) {
  const std::string who = "Tenant " + tenant.name;
  const auto& quota = tenant.quota.empty() && tier != nullptr ? tier->defaults.quota : tenant.quota;
  const bool grants = !tenant.grants.empty() || (tier != nullptr && !tier->defaults.grants.empty());
  if (quota.empty()) out.push_back(who + ": has no quota: it may use everything that is free");
  if (tenant.cohort.empty() && std::any_of(quota.begin(), quota.end(), [](const QuotaLine& line) {
        return line.borrow.value_or(0) > 0;
      }))
    out.push_back(who +
                  ": is in no cohort, so there is nobody to borrow from: its borrowing limits have "
                  "no effect");
  if (!grants) out.push_back(who + ": has no roles: only administrators can use it");
  for (const Grant& grant : tenant.grants) {
    if (!of_cluster(grant.role)) continue;
    if (!grant.group.empty())
      out.push_back(
          fmt::format("{}: roles.{} of the group {} reaches the whole cluster, and whoever fills "
                      "the group decides who has it",
                      who, enum_name(grant.role), grant.group));
    else if (grant.role == Role::admin && !grant.until)
      out.push_back(
          fmt::format("{}: {} is administrator of the whole cluster without an end; `until` of the "
                      "role gives it one",
                      who, grant.user));
  }
}

}  // namespace

Capacity capacity_of(std::span<const Document> documents,
                     std::span<const proto::NodesAlike> nodes) {
  Capacity out;
  const Pools pools(documents);
  auto flavors = all_of<Flavor>(documents);
  std::stable_sort(flavors.begin(), flavors.end(), [](const Flavor* a, const Flavor* b) {
    return conditions_of(*a) > conditions_of(*b);
  });
  for (const proto::NodesAlike& group : nodes) {
    const auto hosts = expand_hostlist(group.nodes);
    if (!hosts) continue;
    for (const std::string& host : *hosts) {
      out.total += group.each;
      for (const Flavor* flavor : flavors) {
        if (!flavor->gpu_model.empty() && flavor->gpu_model != group.gpu_model) continue;
        if (!has_all(group.features, flavor->features)) continue;
        if (!flavor->node_pool.empty() && !pools.has(flavor->node_pool, host, group.features))
          continue;
        out.flavors[flavor->name] += group.each;
        break;
      }
    }
  }
  return out;
}

Result<void> resolve_parts(std::span<ReadDocument> documents, const Capacity& capacity,
                           std::vector<std::string>& notes) {
  Resolver resolver(capacity, notes);
  for (ReadDocument& read : documents) {
    for (const PartialLine& parts : read.parts)
      if (auto done = resolver.run(read, parts); !done) return done;
    read.parts.clear();
    normalise(read.document);
  }
  return {};
}

std::vector<std::string> warnings_of(std::span<const Document> documents,
                                     std::span<const proto::NodesAlike> nodes) {
  std::vector<std::string> out;
  const auto tiers = all_of<Tier>(documents);
  for (const Tenant* tenant : all_of<Tenant>(documents))
    warn_of_tenant(*tenant, tier_of(*tenant, tiers), out);
  if (nodes.empty()) return out;
  warn_of_guarantees(documents, capacity_of(documents, nodes), out);
  const Pools pools(documents);
  std::map<std::string, bool> found;
  for (const auto& [name, pool] : pools.by_name) found[name] = false;
  for (const proto::NodesAlike& group : nodes) {
    const auto hosts = expand_hostlist(group.nodes);
    if (!hosts) continue;
    for (const std::string& host : *hosts) {
      const NodePool* owner = nullptr;
      for (const auto& [name, pool] : pools.by_name) {
        if (!pools.has(name, host, group.features)) continue;
        found[name] = true;
        if (pool.document->tenant.empty()) continue;
        if (owner != nullptr && owner->tenant != pool.document->tenant)
          out.push_back(fmt::format("NodePool {}: node {} is {}'s own by pool {} as well", name,
                                    host, owner->tenant, owner->name));
        owner = pool.document;
      }
    }
  }
  for (const auto& [name, any] : found)
    if (!any) out.push_back(fmt::format("NodePool {}: no node of the cluster is in it", name));
  return out;
}

}  // namespace gantry::tenancy
