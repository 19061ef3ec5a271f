// Messages of rtnetlink, only for the files of netlink.h.
#pragma once

#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <sys/socket.h>

#include <string>

#include "noded/network/netlink.h"

namespace gantry::network {

// Marks a route in the machine's own namespace as Gantry's.
inline constexpr std::uint8_t kOwnRoutes = 103;

// A message of one type with its fixed header; send() frees it.
template <class Header>
nl_msg* message(int type, int flags, const Header& header) {
  nl_msg* out = ::nlmsg_alloc_simple(type, flags);
  ::nlmsg_append(out, const_cast<Header*>(&header), sizeof header, NLMSG_ALIGNTO);
  return out;
}

inline void put(nl_msg* m, int type, const void* data, std::size_t bytes) {
  ::nla_put(m, type, static_cast<int>(bytes), data);
}
inline void put(nl_msg* m, int type, const std::string& text) {
  ::nla_put_string(m, type, text.c_str());
}
inline void put(nl_msg* m, int type, const Mac& mac) {
  put(m, type, mac.data(), mac.size());
}
inline void put(nl_msg* m, int type, const Ip6& address) {
  put(m, type, address.bytes.data(), address.bytes.size());
}

class Nest {
 public:
  Nest(nl_msg* m, int type) : message_(m), start_(::nla_nest_start(m, type)) {}
  Nest(const Nest&) = delete;
  Nest& operator=(const Nest&) = delete;
  ~Nest() { ::nla_nest_end(message_, start_); }

 private:
  nl_msg* message_;
  nlattr* start_;
};

inline ifinfomsg link_header(std::uint32_t index = 0, unsigned flags = 0) {
  ifinfomsg out{};
  out.ifi_family = AF_UNSPEC;
  out.ifi_index = static_cast<int>(index);
  out.ifi_flags = flags;
  out.ifi_change = flags;
  return out;
}

}  // namespace gantry::network
