// What gantry.yaml and the controller's orders say of networks of jobs, as noded/network has it.
#pragma once

#include <string>
#include <vector>

#include "common/proto/job_network.h"
#include "config/config.h"
#include "noded/job_networks.h"
#include "noded/network/fabric.h"
#include "noded/options.h"

namespace gantry::node {

// What gantry.yaml says of networks of jobs on this node.
JobNetworks::Options network_options(const NodeSettings& settings);

// Of VXLAN: clusters of different names do not hear each other.
std::uint32_t vni_of(const std::string& cluster);

network::Part part_of(const proto::NetworkPart& part);

// The numeric address and the port of "host:port"; the host may be a name. May ask the resolver.
Result<network::Underlay> underlay_of(const proto::NetworkPart& part);

// All addresses of these machines that are known here. May ask the resolver.
std::vector<NetworkRange> addresses_of(const std::vector<std::string>& machines);

// The error says which other node's address is not known, or that it has another transport.
Result<network::JobNetwork> job_of(const proto::AttemptKey& key, const proto::JobNetwork& given,
                                   network::Transport transport);

// Removes what interrupted fetches have left, and images over the cache's size.
void tidy_images(const NodedConfig& config);

// Makes one line for each image, for gantry-noded --images; only root can read the cache.
std::string image_table(const NodedConfig& config);

}  // namespace gantry::node
