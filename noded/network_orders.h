// Translates what gantry.yaml and the controller's orders contain about networks of jobs into
// noded/network's terms.
#pragma once

#include <string>
#include <vector>

#include "common/proto/job_network.h"
#include "config/config.h"
#include "noded/job_networks.h"
#include "noded/network/fabric.h"
#include "noded/options.h"

namespace gantry::node {

// The settings in gantry.yaml for networks of jobs on this node.
JobNetworks::Options network_options(const NodeSettings& settings);

// For VXLAN: clusters with different names do not receive each other's packets.
std::uint32_t vni_of(const std::string& cluster);

network::Part part_of(const proto::NetworkPart& part);

// The numeric address and the port of "host:port"; the host may be a name. May call the resolver.
Result<network::Underlay> underlay_of(const proto::NetworkPart& part);

// All addresses of these machines that can be found here. May call the resolver.
std::vector<NetworkRange> addresses_of(const std::vector<std::string>& machines);

// The error names another node whose address is not known, or whose transport differs.
Result<network::JobNetwork> job_of(const proto::AttemptKey& key, const proto::JobNetwork& given,
                                   network::Transport transport);

// Removes the rests of interrupted fetches, and images over the cache's size.
void tidy_images(const NodedConfig& config);

// Makes one line for each image, for gantry-noded --images; only root can read the cache.
std::string image_table(const NodedConfig& config);

}  // namespace gantry::node
