#include "common/text/network_range.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace gantry {
namespace {

constexpr std::size_t kMostText = 100;  // bytes of a range

tl::unexpected<Error> bad(std::string why) {
  return fail(ErrorCode::invalid_argument, std::move(why));
}

// Only digits: from_chars() would take a sign.
template <class Number>
bool read_number(std::string_view text, Number low, Number high, Number& out) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return false;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && rest == text.data() + text.size() && out >= low && out <= high;
}

bool bit(const std::array<std::uint8_t, 16>& bytes, int at) {
  return (bytes[static_cast<std::size_t>(at / 8)] >> (7 - at % 8) & 1) != 0;
}

}  // namespace

bool NetworkRange::holds(const NetworkRange& other) const {
  if (six != other.six || bits > other.bits) return false;
  for (int i = 0; i < bits; ++i)
    if (bit(address, i) != bit(other.address, i)) return false;
  return true;
}

std::vector<NetworkRange> without(const NetworkRange& range, const NetworkRange& other) {
  if (other.holds(range)) return {};
  if (!range.holds(other)) return {range};
  std::vector<NetworkRange> out;
  NetworkRange rest =
      range;  // contains the other range; each round splits off the half that does not
  while (rest.bits < other.bits) {
    NetworkRange half = rest;
    const auto at = static_cast<std::size_t>(rest.bits / 8);
    const auto mask = static_cast<std::uint8_t>(0x80 >> rest.bits % 8);
    ++half.bits;
    ++rest.bits;
    if (bit(other.address, rest.bits - 1))
      rest.address[at] = static_cast<std::uint8_t>(rest.address[at] | mask);
    else
      half.address[at] = static_cast<std::uint8_t>(half.address[at] | mask);
    out.push_back(half);
  }
  return out;
}

Result<PortRange> parse_ports(std::string_view text) {
  PortRange out;
  if (text.empty()) return out;
  const auto slash = text.find('/');
  const std::string_view protocol = text.substr(0, slash);
  if (protocol != "tcp" && protocol != "udp")
    return bad(fmt::format("\"{}\" is not tcp/PORT, udp/PORT or tcp/FIRST-LAST", text));
  out.protocol = protocol == "tcp" ? PortProtocol::tcp : PortProtocol::udp;
  if (slash == std::string_view::npos) return out;
  const std::string_view ports = text.substr(slash + 1);
  const auto dash = ports.find('-');
  constexpr std::uint16_t kLow = 1, kHigh = 65535;
  const bool good = read_number(ports.substr(0, dash), kLow, kHigh, out.first) &&
                    (dash == std::string_view::npos
                         ? (out.last = out.first, true)
                         : read_number(ports.substr(dash + 1), out.first, kHigh, out.last));
  if (!good) return bad(fmt::format("\"{}\" has no port or range of ports of 1 to 65535", text));
  return out;
}

Result<NetworkRange> parse_network_range(std::string_view text) {
  NetworkRange out;
  if (text.size() > kMostText) return bad("is longer than a range can be");
  const auto space = text.find(' ');
  const std::string_view cidr = text.substr(0, space);
  const auto slash = cidr.find('/');
  const std::string address(cidr.substr(0, slash));
  out.six = address.find(':') != std::string::npos;
  if (address.find('\0') != std::string::npos ||
      ::inet_pton(out.six ? AF_INET6 : AF_INET, address.c_str(), out.address.data()) != 1)
    return bad(
        fmt::format("\"{}\" is not an address, such as 10.1.0.0/16 or fd00:8::/32; names "
                    "of hosts are not looked up",
                    address));
  const int most = out.six ? 128 : 32;
  out.bits = most;
  if (slash != std::string_view::npos && !read_number(cidr.substr(slash + 1), 0, most, out.bits))
    return bad(fmt::format("\"{}\" has not 0 to {} bits behind the slash", cidr, most));
  for (int i = out.bits; i < most; ++i)
    if (bit(out.address, i))
      return bad(fmt::format("\"{}\" has bits set behind its first {}", cidr, out.bits));
  if (space == std::string_view::npos) return out;
  if (space + 1 == text.size()) return bad(fmt::format("\"{}\" ends with a space", text));
  ASSIGN(ports, parse_ports(text.substr(space + 1)));
  out.ports = *ports;
  return out;
}

std::string to_string(const PortRange& ports) {
  if (ports.protocol == PortProtocol::any) return {};
  const std::string_view name = ports.protocol == PortProtocol::tcp ? "tcp" : "udp";
  if (ports.first == 1 && ports.last == 65535) return std::string(name);
  if (ports.first == ports.last) return fmt::format("{}/{}", name, ports.first);
  return fmt::format("{}/{}-{}", name, ports.first, ports.last);
}

std::string address_text(const NetworkRange& range) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(range.six ? AF_INET6 : AF_INET, range.address.data(), text.data(), text.size());
  return fmt::format("{}/{}", text.data(), range.bits);
}

std::string to_string(const NetworkRange& range) {
  const std::string ports = to_string(range.ports);
  return ports.empty() ? address_text(range) : address_text(range) + " " + ports;
}

}  // namespace gantry
