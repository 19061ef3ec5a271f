#include "ctld/core/tenancy/network.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/proto/job_network.h"
#include "common/text/network_range.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

using tenancy::kBasicProfile;
using tenancy::kOwnProfile;
using tenancy::NetworkProfile;
using tenancy::NetworkService;
using tenancy::Tenant;

// Numbers below this one have another meaning in an address.
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

std::optional<std::string> no_job_networks(const Node& node) {
  for (const std::string& layer : node.facts.layers_off)
    if (layer.starts_with(proto::kNoJobNetworks)) return layer.substr(proto::kNoJobNetworks.size());
  return std::nullopt;
}

std::optional<Lacking> without_job_networks(const State& state, const Partition& queue,
                                            const std::vector<std::string>& excluded) {
  for (const NodeId id : queue.nodes) {
    const Node& node = state.node(id);
    if (std::find(excluded.begin(), excluded.end(), node.name) != excluded.end()) continue;
    if (auto why = no_job_networks(node)) return Lacking{node.name, std::move(*why)};
  }
  return std::nullopt;
}

Result<void> check_job_network(const State& state, bool made, const JobSpec& spec,
                               const Partition& queue) {
  const auto bad = [](std::string why) {
    return fail(ErrorCode::invalid_argument, std::move(why));
  };
  const bool own = spec.network == NetworkMode::job;
  if (own && !made)
    return bad(
        "this cluster gives jobs no network of their own (controller.job_networks of gantry.yaml); "
        "--network takes none, or host where the partition allows it");
  if (own && spec.network_named)
    if (const auto lacking = without_job_networks(state, queue, spec.shape.excluded_nodes))
      return fail(ErrorCode::unsupported,
                  fmt::format("node {} of partition {} gives jobs no network of their own ({}); "
                              "leave such nodes out with --exclude",
                              lacking->node, queue.name, lacking->why));
  if (spec.network_profile.empty()) return {};
  if (!own)
    return bad("only a job with a network of its own (--network=job) has a network profile");
  return check_network_profile(state, queue, spec.network_profile);
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
  if (const auto proxy = parse_network_range(profile->proxy)) {
    out.ranges.push_back(profile->proxy);
    const std::string range = address_text(*proxy), address = range.substr(0, range.find('/'));
    out.proxy =
        fmt::format("http://{}:{}", proxy->six ? "[" + address + "]" : address, proxy->ports.first);
  }
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
