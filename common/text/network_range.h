// Ranges of addresses and ports as people write them:
//
//   10.1.0.0/16                every port, every protocol
//   10.1.0.7 tcp/443           one address, one port
//   fd00:8::/32 udp/5000-5010  ports from one to another
//
// Reading is strict, and what is written again has no other characters than digits, letters of
// hexadecimal numbers, ":", ".", "/", "-" and a space; so a text of a document cannot become
// anything else in the rules of a packet filter.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace gantry {

enum class PortProtocol : std::uint8_t { any, tcp, udp };

struct PortRange {
  PortProtocol protocol = PortProtocol::any;  // any: every port too
  std::uint16_t first = 1, last = 65535;
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

struct NetworkRange {
  bool six = false;                        // IPv6
  std::array<std::uint8_t, 16> address{};  // in network byte order; IPv4 uses the first four bytes
  int bits = 0;                            // all bits after these are 0
  PortRange ports;
  friend bool operator==(const NetworkRange&, const NetworkRange&) = default;
  // Whether every address of `other` is in this range; ports do not count.
  [[nodiscard]] bool holds(const NetworkRange& other) const;
};

// No profile may allow these: loopback, link-local and multicast addresses, including clouds'
// metadata services, also at other addresses.
inline constexpr std::string_view kNeverReached[] = {
    "0.0.0.0/8",        "127.0.0.0/8", "169.254.0.0/16",   "100.100.100.200/32",
    "168.63.129.16/32", "224.0.0.0/4", "240.0.0.0/4",      "::/8",
    "fe80::/10",        "ff00::/8",    "fd00:ec2::254/128"};
// What `internet` additionally excludes: private, shared and reserved addresses, and IPv6 addresses
// that stand for IPv4 addresses.
inline constexpr std::string_view kNotInternet[] = {
    "10.0.0.0/8",      "100.64.0.0/10",  "172.16.0.0/12",  "192.0.0.0/24",
    "192.0.2.0/24",    "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "::/3",           "4000::/2",
    "8000::/1",        "2001::/23",      "2001:db8::/32",  "2002::/16"};

// What is left of a range without another one: as few ranges as possible, in no order.
std::vector<NetworkRange> without(const NetworkRange& range, const NetworkRange& other);

// "tcp/443", "udp/5000-5010", "tcp"; "" = all. The error says what is wrong in a clause.
Result<PortRange> parse_ports(std::string_view text);
Result<NetworkRange> parse_network_range(std::string_view text);

std::string to_string(const PortRange& ports);
std::string address_text(const NetworkRange& range);  // "10.1.0.0/16"
std::string to_string(const NetworkRange& range);

}  // namespace gantry
