// Whether this machine can make networks for jobs: its kernel may lack the transport, nftables or
// IPv6, or forbid namespaces, and a machine whose packets are routed has to forward them. Asked
// before the first job needs one.
#pragma once

#include <string>

#include "common/result.h"
#include "noded/network/nodes_link.h"

namespace gantry::network {

// Makes a network of one job and removes it again, in a namespace that stands for a machine, so
// nothing of this machine changes, and in a thread with mounts of its own, so nothing is left of a
// daemon that is killed meanwhile but the directory. It is made, and is gone afterwards. Root only;
// takes some milliseconds. The error says what could not be made.
Result<void> try_networks(const std::string& directory, Transport transport = Transport::vxlan);

}  // namespace gantry::network
