// What jobs may reach beside their own parts, as documents say it: profiles, services, and what a
// tenant's jobs may have of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/fields.h"

namespace gantry::tenancy {

// What the jobs of a tenant may reach. The profiles are NetworkProfiles; kBasicProfile and
// kOwnProfile exist without a document.
struct TenantNetwork {
  std::string default_profile;        // "" = kBasicProfile
  std::vector<std::string> profiles;  // that jobs may name, beside the default one and kOwnProfile
  std::vector<std::string> services;  // NetworkServices that are part of its kBasicProfile
  friend bool operator==(const TenantNetwork&, const TenantNetwork&) = default;
  GANTRY_FIELDS(FIELD(1, default_profile), FIELD(2, profiles), FIELD(3, services))
};

// What jobs may reach beside their own parts: only what is named.
struct NetworkProfile {
  static constexpr std::string_view kName = "NetworkProfile";
  static constexpr int kKind = 28;
  std::string name, description;
  bool same_tenant = false;           // all jobs of the job's tenant whose profile says so too
  bool resolvers = false;             // the site's resolvers, by DNS
  bool internet = false;              // all but private ranges, the cluster and metadata services
  std::vector<std::string> services;  // NetworkServices
  std::vector<std::string> to;        // ranges: "10.1.0.0/16 tcp/443"
  // Jobs of other tenants, "TENANT tcp/8080". Both jobs have to have a profile that allows it.
  std::vector<std::string> to_tenants, from_tenants;
  std::string proxy;  // an HTTP proxy, which knows names of hosts: "10.1.0.9 tcp/3128"; "" = none
  friend bool operator==(const NetworkProfile&, const NetworkProfile&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, description), FIELD(3, same_tenant), FIELD(4, resolvers),
                FIELD(5, internet), FIELD(6, services), FIELD(7, to), FIELD(8, to_tenants),
                FIELD(9, from_tenants), FIELD(10, proxy))
};

// A name for addresses and ports outside of the cluster's jobs: an object store, a registry.
struct NetworkService {
  static constexpr std::string_view kName = "NetworkService";
  static constexpr int kKind = 29;
  std::string name, description;
  std::vector<std::string> to;  // ranges
  friend bool operator==(const NetworkService&, const NetworkService&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, description), FIELD(3, to))
};

// The profiles that exist without a document. `own` is a job's own parts and nothing else; `basic`
// is the resolvers and the tenant's services, as far as the node has a way out.
inline constexpr std::string_view kOwnProfile = "own", kBasicProfile = "basic";

}  // namespace gantry::tenancy
