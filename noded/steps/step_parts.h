// Small parts of the step service: the stream port, tickets, addresses, and finding a node in a
// permission.
#pragma once

#include <string>
#include <string_view>

#include "common/net/socket.h"
#include "common/proto/node_relay.h"
#include "common/proto/steps.h"
#include "common/result.h"
#include "noded/runtime/runtime.h"

namespace gantry::node {

struct StreamPort {
  net::Socket socket;
  std::string address;  // tcp://HOST:PORT, as another node dials it
};
// Listens on `host`. For the wildcard address it listens everywhere and gives the loopback address
// to others. That is right only if all nodes are on one machine, so give the nodes of a real
// cluster their own addresses.
Result<StreamPort> listen_on_any_port(const std::string& host);

inline constexpr std::size_t kTicketBytes = 32;
Bytes new_ticket();  // so many hex digits, random
bool is_ticket(std::string_view text);

// May a shim, which is root and in the host's network, dial `address` ("tcp://HOST:PORT") for a
// client at `asker` (as numbers)? It may if the host is the asker's own, because everybody can
// reach that one anyway. permission_denied: the host is another one; invalid_argument: it is no
// such address.
Result<void> may_dial(std::string_view address, const std::string& asker);
// Adds to `address` ("HOST:PORT") that connections come from `host`, if both are numbers of one
// family; otherwise the kernel chooses from where.
std::string endpoint_from(const std::string& host, const std::string& address);

// The message that a step has ended, in place of a grun that is gone. It looks as if it came from
// inside the job.
proto::NodeRelay unheard_end(const runtime::RuntimeEvent& event);

const proto::StepNode* find_node(const proto::StepPermission& permission, const std::string& name);

}  // namespace gantry::node
