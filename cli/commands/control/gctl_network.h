// gctl network: what jobs reach, and whether an address answers one.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"
#include "common/proto/job_query.h"

namespace gantry::cli::gctl_network {

// Returns what is wrong with the network of a running job, a sentence each: refused packets, and
// nodes of its own that its first node does not reach, of which the first four are tried. Empty if
// it has no network of its own, or the asker may not see it.
std::vector<std::string> network_trouble(Session& session, const proto::JobRow& row);

}  // namespace gantry::cli::gctl_network
