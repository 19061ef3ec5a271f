#include "noded/steps/step_parts.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

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

bool is_ticket(std::string_view text) {
  return text.size() == kTicketBytes &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

namespace {

// The address in network order, IPv4 as ::ffff:1.2.3.4; nothing if `host` is no number.
std::optional<std::array<std::uint8_t, 16>> number_of_host(const std::string& host) {
  std::array<std::uint8_t, 16> bytes{};
  if (::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1) return bytes;
  return ::inet_pton(AF_INET6, ("::ffff:" + host).c_str(), bytes.data()) == 1 ? std::optional(bytes)
                                                                              : std::nullopt;
}

constexpr std::string_view kTcp = "tcp://";

}  // namespace

Result<void> may_dial(std::string_view address, const std::string& asker) {
  const auto parts = address.starts_with(kTcp)
                         ? net::split_address(address.substr(kTcp.size()))
                         : Result<net::HostPort>(fail(ErrorCode::invalid_argument, ""));
  const auto host = parts ? number_of_host(parts->host) : std::nullopt;
  const unsigned long port = host ? std::stoul(parts->port) : 0;
  if (port == 0 || port > 65'535)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("'{}' is not the address of a step's stream; tcp://NUMBER:PORT is", address));
  if (host == number_of_host(asker)) return {};
  return fail(ErrorCode::permission_denied,
              fmt::format("a step's stream goes to the host that asks for it, {}, and not to {}",
                          asker, parts->host));
}

std::string endpoint_from(const std::string& host, const std::string& address) {
  std::array<std::uint8_t, 16> ignored{};
  const auto parts = net::split_address(address);
  for (const int family : {AF_INET, AF_INET6}) {
    if (!parts || host == "0.0.0.0" || host == "::" ||
        ::inet_pton(family, host.c_str(), ignored.data()) != 1 ||
        ::inet_pton(family, parts->host.c_str(), ignored.data()) != 1)
      continue;
    return fmt::format(fmt::runtime(family == AF_INET ? "tcp://{}:0;{}" : "tcp://[{}]:0;{}"), host,
                       address);
  }
  return fmt::format("{}{}", kTcp, address);
}

proto::NodeRelay unheard_end(const runtime::RuntimeEvent& event) {
  proto::StepDone done;
  done.key = event.key;
  done.step = event.step;
  done.exit = event.record.exit;
  done.started = event.record.started.value_or(event.record.ended);
  done.ended = event.record.ended;
  done.usage = event.record.usage;
  proto::NodeRelay relay;  // its channel 0 belongs to no connection: nobody waits for the answer
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
