#include "ctld/core/tenancy/network.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/proto/job_network.h"

namespace gantry::core {
namespace {

using tenancy::kBasicProfile;
using tenancy::kOwnProfile;
using tenancy::NetworkProfile;
using tenancy::NetworkService;
using tenancy::Tenant;

// Numbers below it mean something else in an address.
constexpr std::uint32_t kFirstGroup = 1U << 16, kGroups = 1U << 24;

std::uint32_t group_of(sched::ShareId tenant) {
  const std::uint64_t group = std::uint64_t{kFirstGroup} + tenant.value();
  return group < kGroups ? static_cast<std::uint32_t>(group) : 0;
}

// 0 = no job of the tenant has ever been submitted.
std::uint32_t group_named(const State& state, const std::string& tenant) {
  const auto& ids = state.tenancy.share_ids;
  const auto it = ids.find({std::nullopt, tenant});
  return it == ids.end() ? 0 : group_of(it->second);
}

template <class T>
const T* find(const State& state, const std::string& name) {
  const auto it = state.tenancy.documents.find({T::kKind, name});
  return it == state.tenancy.documents.end() ? nullptr : &std::get<T>(it->second);
}

std::string default_profile(const Tenant& tenant) {
  return tenant.network.default_profile.empty() ? std::string(kBasicProfile)
                                                : tenant.network.default_profile;
}

// The names of the profiles that jobs of the tenant may have.
std::vector<std::string> profiles_of(const Tenant& tenant) {
  std::vector<std::string> out{default_profile(tenant)};
  for (const std::string& name : tenant.network.profiles)
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  if (std::find(out.begin(), out.end(), kOwnProfile) == out.end()) out.emplace_back(kOwnProfile);
  return out;
}

void add_services(const State& state, const std::vector<std::string>& names,
                  proto::NetworkReach& out) {
  for (const std::string& name : names)
    if (const auto* service = find<NetworkService>(state, name))
      out.ranges.insert(out.ranges.end(), service->to.begin(), service->to.end());
}

void add_tenants(const State& state, const std::vector<std::string>& peers,
                 std::vector<proto::NetworkGroup>& out) {
  for (const std::string& peer : peers) {
    const auto space = peer.find(' ');
    const std::uint32_t group = group_named(state, peer.substr(0, space));
    if (group == 0) continue;
    out.push_back({group, space == std::string::npos ? "" : peer.substr(space + 1)});
  }
}

}  // namespace

std::uint32_t network_group(const State& state, const Job& job) {
  if (!job.share) return 0;
  const auto& shares = state.tenancy.shares;
  sched::ShareId at = *job.share;
  while (shares.at(at.value()).parent) at = *shares.at(at.value()).parent;
  return group_of(at);
}

std::string tenant_of_group(const State& state, std::uint32_t group) {
  const auto& shares = state.tenancy.shares;
  if (group < kFirstGroup || group - kFirstGroup >= shares.size()) return {};
  const ShareNode& node = shares[group - kFirstGroup];
  return node.parent ? std::string() : node.name;
}

Result<void> check_network_profile(const State& state, const Partition& queue,
                                   const std::string& profile) {
  const CompiledTenant* tenant = state.tenancy.tenant(queue.payer());
  if (tenant == nullptr) {
    if (profile == kOwnProfile) return {};
    return fail(ErrorCode::permission_denied,
                fmt::format("only jobs of a tenant have network profiles, and partition {} is no "
                            "tenant's",
                            queue.name));
  }
  const std::vector<std::string> allowed = profiles_of(tenant->effective);
  if (std::find(allowed.begin(), allowed.end(), profile) != allowed.end()) return {};
  return fail(ErrorCode::permission_denied,
              fmt::format("jobs of tenant {} may not have the network profile \"{:.64}\"; its "
                          "document names {}",
                          tenant->effective.name, profile, fmt::join(allowed, ", ")));
}

std::optional<std::string> no_job_networks(const State& state, const Partition& queue) {
  std::optional<std::string> why;
  for (const NodeId id : queue.nodes) {
    const auto& off = state.node(id).facts.layers_off;
    const auto line = std::find_if(off.begin(), off.end(), [](const std::string& layer) {
      return layer.starts_with(proto::kNoJobNetworks);
    });
    if (line == off.end()) return std::nullopt;
    why = line->substr(proto::kNoJobNetworks.size());
  }
  return why;
}

proto::NetworkReach reach_of(const State& state, const Job& job, const std::string& asked) {
  proto::NetworkReach out;
  out.profile = kOwnProfile;
  const Partition& queue = state.partition(class_of(state, job).partition);
  const CompiledTenant* tenant = state.tenancy.tenant(queue.payer());
  if (tenant == nullptr) return out;
  const Tenant& t = tenant->effective;
  const std::string name = asked.empty() ? default_profile(t) : asked;
  if (name == kOwnProfile || !check_network_profile(state, queue, name)) return out;
  const auto* profile = find<NetworkProfile>(state, name);
  if (profile == nullptr && name != kBasicProfile) return out;
  out.profile = name;
  if (profile == nullptr) {
    out.resolvers = true;
    add_services(state, t.network.services, out);
    out.required = !out.ranges.empty();
    return out;
  }
  out.required = true;
  out.resolvers = profile->resolvers;
  out.internet = profile->internet;
  out.ranges = profile->to;
  add_services(state, profile->services, out);
  const std::uint32_t group = network_group(state, job);
  if (profile->same_tenant && group != 0) {
    out.to.push_back({group, ""});
    out.from.push_back({group, ""});
  }
  add_tenants(state, profile->to_tenants, out.to);
  add_tenants(state, profile->from_tenants, out.from);
  return out;
}

}  // namespace gantry::core
