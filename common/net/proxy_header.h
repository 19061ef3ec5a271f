// The header of the PROXY protocol, version 2, as gates send it to the doors of replicas: it
// carries a password as the connection's unique id, and no addresses that anybody relies on.
// https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt, section 2.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::net {

inline constexpr std::size_t kProxyStart = 16;  // octets, from which the rest's length is known
inline constexpr std::size_t kMostProxyRest = 1024;  // octets after those

// local: the gate only checks whether a server listens, and sends nothing more. proxy: a request
// follows.
enum class ProxyCommand : std::uint8_t { local = 0, proxy = 1 };

// The whole header, without addresses.
std::string proxy_header(ProxyCommand command, std::string_view password);

struct ProxyStart {
  ProxyCommand command = ProxyCommand::local;
  std::size_t addresses = 0;  // octets of the rest that come before the values with types
  std::size_t rest = 0;
};

// Reads the first kProxyStart octets. Nothing: they are no such header, or it is too long.
std::optional<ProxyStart> read_proxy_start(std::string_view first);

// The unique id in the octets after the start; "" = there is none.
std::string_view read_proxy_id(const ProxyStart& start, std::string_view rest);

}  // namespace gantry::net
