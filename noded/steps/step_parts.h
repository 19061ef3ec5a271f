// Small parts of the step service: the stream port, tickets, and finding a node in a permission.
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
// On `host`; the wildcard address listens everywhere and is shown as the loopback's, which is right
// only on one machine: give nodes of a real cluster their own address.
Result<StreamPort> listen_on_any_port(const std::string& host);

inline constexpr std::size_t kTicketBytes = 32;
Bytes new_ticket();  // so many hex digits, random
bool is_ticket(std::string_view text);

// May a shim, which is root and in the host's network, dial `address` ("tcp://HOST:PORT") for one
// who asks from `asker` (as numbers)? Only if the host is the asker's own: everybody reaches that
// anyway. permission_denied: it is another's; invalid_argument: it is no such address.
Result<void> may_dial(std::string_view address, const std::string& asker);
// `address` ("HOST:PORT") as an endpoint to which connections come from `host`, where both are
// numbers of one family; else from wherever the kernel says.
std::string endpoint_from(const std::string& host, const std::string& address);

// What a grun that has gone can no longer say: that its step has ended. As from inside the job.
proto::NodeRelay unheard_end(const runtime::RuntimeEvent& event);

const proto::StepNode* find_node(const proto::StepPermission& permission, const std::string& name);

}  // namespace gantry::node
