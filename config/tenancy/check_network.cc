// Checks of network profiles and services, and of those that a tenant names.
#include <fmt/core.h>

#include <set>

#include "common/text/network_range.h"
#include "config/tenancy/check_references.h"
#include "config/tenancy/read_network.h"

namespace gantry::tenancy {
namespace {

Found check_ranges(const References& documents, const std::vector<std::string>& ranges) {
  if (ranges.size() > kMostRanges)
    return documents.problem(
        "to", fmt::format("has {} ranges; {} are allowed", ranges.size(), kMostRanges));
  for (const std::string& range : ranges)
    if (const std::string wrong = not_a_range(range); !wrong.empty())
      return documents.problem("to", wrong);
  return std::nullopt;
}

Found check_peers(const References& documents, const std::vector<std::string>& peers,
                  const std::string& path) {
  if (peers.size() > kMostPeers)
    return documents.problem(
        path, fmt::format("has {} tenants; {} are allowed", peers.size(), kMostPeers));
  for (const std::string& text : peers) {
    const auto peer = parse_peer(text);
    if (!peer) return documents.problem(path, peer.error().message);
    if (Found found = documents.refer(Tenant::kName, peer->tenant, path)) return found;
  }
  return std::nullopt;
}

Found check_proxy(const References& documents, const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (const std::string wrong = not_a_range(text); !wrong.empty())
    return documents.problem("proxy", wrong);
  const auto range = parse_network_range(text);
  const PortRange& ports = range->ports;
  if (range->bits != (range->six ? 128 : 32) || ports.protocol != PortProtocol::tcp ||
      ports.first != ports.last)
    return documents.problem(
        "proxy", fmt::format("`{}` is not one address and its port: 10.1.0.9 tcp/3128", text));
  return std::nullopt;
}

Found check_services(const References& documents, const std::vector<std::string>& services,
                     const std::string& path) {
  if (services.size() > kMostServices)
    return documents.problem(
        path, fmt::format("has {} services; {} are allowed", services.size(), kMostServices));
  for (const std::string& name : services)
    if (Found found = documents.refer(NetworkService::kName, name, path)) return found;
  return std::nullopt;
}

// Profiles that exist without a document are known too.
Found refer_profile(const References& documents, const std::string& name, const std::string& path) {
  if (name == kOwnProfile || name == kBasicProfile) return std::nullopt;
  return documents.refer(NetworkProfile::kName, name, path);
}

}  // namespace

Found check_network_profile(const References& documents, const NetworkProfile& profile) {
  if (profile.name == kOwnProfile)
    return documents.problem("name", "`own` is the profile of a job's own parts alone, always");
  if (Found found = check_ranges(documents, profile.to)) return found;
  if (Found found = check_proxy(documents, profile.proxy)) return found;
  if (Found found = check_services(documents, profile.services, "services")) return found;
  if (Found found = check_peers(documents, profile.to_tenants, "to_tenants")) return found;
  return check_peers(documents, profile.from_tenants, "from_tenants");
}

Found check_network_service(const References& documents, const NetworkService& service) {
  if (service.to.empty()) return documents.problem("to", "is missing: the service's addresses");
  return check_ranges(documents, service.to);
}

Found check_tenant_network(const References& documents, const TenantNetwork& network) {
  if (Found found = refer_profile(documents, network.default_profile, "network.default"))
    return found;
  for (const std::string& name : network.profiles)
    if (Found found = refer_profile(documents, name, "network.profiles")) return found;
  return check_services(documents, network.services, "network.services");
}

}  // namespace gantry::tenancy
