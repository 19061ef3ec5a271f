// What the network of a job may reach outside the job: the profile that the job asked for or that
// its tenant has by default, from the tenant's documents. Whether the tenant may have it is checked
// when a job is submitted and again at each launch, because documents change.
#pragma once

#include <optional>
#include <string>

#include "common/job/job_spec.h"
#include "common/proto/job_network.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

// The number in addresses that shows to which tenant a job belongs (noded/network/address.h); it
// stays with the tenant's name. 0 = the job belongs to no tenant, or to the 16,711,680th or a later
// one.
std::uint32_t network_group(const State& state, const Job& job);

// The tenant with this number; "" if there is none.
std::string tenant_of_group(const State& state, std::uint32_t group);

// Whether jobs of the queue may have the profile. Errors: invalid_argument (there is no such
// profile), permission_denied (the tenant may not).
Result<void> check_network_profile(const State& state, const Partition& queue,
                                   const std::string& profile);

// Why the node makes no networks for jobs, as it reported; nullopt if it makes them, or if it has
// not registered yet.
std::optional<std::string> no_job_networks(const Node& node);

// The first node of the queue, without the excluded ones, that makes no networks for jobs.
struct Lacking {
  std::string node, why;
};
std::optional<Lacking> without_job_networks(const State& state, const Partition& queue,
                                            const std::vector<std::string>& excluded);

// Whether a job that is submitted to the queue may have the network of its own that its spec asks
// for, with its profile; `made`: controller.job_networks.
Result<void> check_job_network(const State& state, bool made, const JobSpec& spec,
                               const Partition& queue);

// What the job's network reaches; `asked` = "" means the tenant's default. nullopt if the profile
// was removed or the tenant may not use it any more.
proto::NetworkReach reach_of(const State& state, const Job& job, const std::string& asked);

}  // namespace gantry::core
