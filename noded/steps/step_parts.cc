#include "noded/steps/step_parts.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/codec/codec.h"
#include "common/net/keys.h"
#include "common/proto/messages.h"

namespace gantry::node {

Result<StreamPort> listen_on_any_port(const std::string& host) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  const bool v4 = ::inet_pton(AF_INET, host.c_str(), &in.sin_addr) == 1;
  if (!v4 && ::inet_pton(AF_INET6, host.c_str(), &in6.sin6_addr) != 1)
    return fail(ErrorCode::invalid_argument,
                fmt::format("listen address '{}': give a number such as 10.0.0.7", host));
  sockaddr* address = v4 ? reinterpret_cast<sockaddr*>(&in) : reinterpret_cast<sockaddr*>(&in6);
  socklen_t size = v4 ? sizeof in : sizeof in6;
  net::Socket socket(
      ::socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.fd() < 0 || ::bind(socket.fd(), address, size) != 0 ||
      ::listen(socket.fd(), SOMAXCONN) != 0 || ::getsockname(socket.fd(), address, &size) != 0)
    return fail(ErrorCode::io_error, fmt::format("cannot listen for step streams on {}: {}", host,
                                                 std::strerror(errno)));
  const bool wildcard = host == "0.0.0.0" || host == "::";
  const std::uint16_t port = ntohs(v4 ? in.sin_port : in6.sin6_port);
  const std::string shown = wildcard ? (v4 ? "127.0.0.1" : "[::1]") : v4 ? host : "[" + host + "]";
  return StreamPort{std::move(socket), fmt::format("tcp://{}:{}", shown, port)};
}

Bytes new_ticket() {
  std::array<char, 16> raw{};
  ::randombytes_buf(raw.data(), raw.size());
  return net::to_hex({raw.data(), raw.size()});
}

proto::NodeRelay unheard_end(const runtime::RuntimeEvent& event) {
  proto::StepDone done;
  done.key = event.key;
  done.step = event.step;
  done.exit = event.record.exit;
  done.started = event.record.started.value_or(event.record.ended);
  done.ended = event.record.ended;
  done.usage = event.record.usage;
  proto::NodeRelay relay;  // on channel 0, which no connection has: nobody waits for the answer
  relay.key = event.key;
  relay.type = static_cast<std::uint16_t>(proto::number_of<proto::StepDone>);
  relay.body = codec::encode(done);
  return relay;
}

const proto::StepNode* find_node(const proto::StepPermission& permission, const std::string& name) {
  const auto it = std::find_if(permission.nodes.begin(), permission.nodes.end(),
                               [&](const proto::StepNode& n) { return n.node == name; });
  return it == permission.nodes.end() ? nullptr : &*it;
}

}  // namespace gantry::node
