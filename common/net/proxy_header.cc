#include "common/net/proxy_header.h"

#include <array>

namespace gantry::net {
namespace {

constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr unsigned kVersionTwo = 0x20;
constexpr unsigned char kUniqueId = 0x05;
constexpr std::size_t kTypeAndLength = 3;

unsigned octet(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

std::size_t number(std::string_view text, std::size_t at) {
  return octet(text, at) << 8 | octet(text, at + 1);
}

std::string number(std::size_t value) {
  return {static_cast<char>(value >> 8 & 0xff), static_cast<char>(value & 0xff)};
}

// Address length by the upper half of the family octet: none, IPv4, IPv6, unix sockets.
constexpr std::array<std::size_t, 4> kAddresses{0, 12, 36, 216};

}  // namespace

std::string proxy_header(ProxyCommand command, std::string_view password) {
  std::string out(kSignature);
  out += static_cast<char>(kVersionTwo | static_cast<unsigned>(command));
  out += '\0';  // no family
  out += number(password.size() + kTypeAndLength);
  out += static_cast<char>(kUniqueId);
  out += number(password.size());
  out += password;
  return out;
}

std::optional<ProxyStart> read_proxy_start(std::string_view first) {
  if (first.size() != kProxyStart || !first.starts_with(kSignature)) return std::nullopt;
  const unsigned command = octet(first, 12), family = octet(first, 13) >> 4;
  if (command != kVersionTwo && command != (kVersionTwo | 1)) return std::nullopt;
  if (family >= kAddresses.size()) return std::nullopt;
  const ProxyStart start{static_cast<ProxyCommand>(command & 1), kAddresses[family],
                         number(first, 14)};
  if (start.rest > kMostProxyRest || start.rest < start.addresses) return std::nullopt;
  return start;
}

std::string_view read_proxy_id(const ProxyStart& start, std::string_view rest) {
  if (rest.size() != start.rest) return {};
  for (std::size_t at = start.addresses; at + kTypeAndLength <= rest.size();) {
    const std::size_t length = number(rest, at + 1);
    if (length > rest.size() - at - kTypeAndLength) return {};
    if (octet(rest, at) == kUniqueId) return rest.substr(at + kTypeAndLength, length);
    at += kTypeAndLength + length;
  }
  return {};
}

}  // namespace gantry::net
