#include "noded/network/address.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sodium.h>

#include <algorithm>
#include <charconv>

namespace gantry::network {
namespace {

constexpr std::uint64_t kJobBits = 40;
constexpr std::uint32_t kNoTenant = 256;

void put_group(Ip6& out, std::uint32_t group) {
  out.bytes[8] = static_cast<std::uint8_t>(group >> 16);
  out.bytes[9] = static_cast<std::uint8_t>(group >> 8);
  out.bytes[10] = static_cast<std::uint8_t>(group);
}

struct Cidr {
  std::string address;
  int bits = -1;
};

Cidr split_cidr(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return {text, -1};
  Cidr out{text.substr(0, slash), -1};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + slash + 1, end, out.bits);
  if (error != std::errc() || rest != end) out.bits = -1;
  return out;
}

}  // namespace

std::string text_of(const Ip6& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, address.bytes.data(), text.data(), text.size());
  return text.data();
}

std::string text_of(const Ip4& address) {
  return fmt::format("{}.{}.{}.{}", address.value >> 24, (address.value >> 16) & 255,
                     (address.value >> 8) & 255, address.value & 255);
}

Result<Blocks> read_blocks(const std::string& prefix, const std::string& block) {
  Blocks out;
  const Cidr six = split_cidr(prefix);
  const bool zero_tail = ::inet_pton(AF_INET6, six.address.c_str(), out.prefix.bytes.data()) == 1 &&
                         std::all_of(out.prefix.bytes.begin() + kPrefixBits / 8,
                                     out.prefix.bytes.end(), [](auto b) { return b == 0; });
  if (six.bits != kPrefixBits || !zero_tail || (out.prefix.bytes[0] & 0xfe) != 0xfc)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is not a unique local IPv6 prefix of 48 bits, such as "
                            "fd12:3456:789a::/48",
                            prefix));
  const Cidr four = split_cidr(block);
  in_addr bytes{};
  const bool good = ::inet_pton(AF_INET, four.address.c_str(), &bytes) == 1;
  out.block.value = ntohl(bytes.s_addr);
  if (!good || four.bits != kBlockBits || (out.block.value << kBlockBits) != 0)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is not an IPv4 block of 10 bits, such as 100.64.0.0/10", block));
  return out;
}

Ip6 prefix_of(std::string_view cluster_key) {
  Ip6 out;
  std::array<unsigned char, crypto_generichash_BYTES> hash{};
  crypto_generichash(hash.data(), hash.size(),
                     reinterpret_cast<const unsigned char*>(cluster_key.data()), cluster_key.size(),
                     nullptr, 0);
  out.bytes[0] = 0xfd;
  std::copy_n(hash.begin(), 5, out.bytes.begin() + 1);
  return out;
}

Ip6 node_prefix(const Blocks& blocks, std::uint32_t node) {
  Ip6 out = blocks.prefix;
  out.bytes[6] = static_cast<std::uint8_t>(node >> 8);
  out.bytes[7] = static_cast<std::uint8_t>(node);
  return out;
}

Ip6 node_address6(const Blocks& blocks, std::uint32_t node) {
  Ip6 out = node_prefix(blocks, node);
  out.bytes[15] = 1;
  return out;
}

Ip6 address6(const Blocks& blocks, const Part& part) {
  Ip6 out = node_prefix(blocks, part.node);
  put_group(out, part.group == 0 ? kNoTenant : part.group);
  for (std::uint64_t i = 0; i < kJobBits / 8; ++i)
    out.bytes[15 - i] = static_cast<std::uint8_t>(part.job.value() >> (8 * i));
  return out;
}

Ip6 group_address(const Blocks& blocks, std::uint32_t group) {
  Ip6 out = blocks.prefix;
  put_group(out, group);
  return out;
}

Ip6 group_mask() {
  Ip6 out;
  std::fill_n(out.bytes.begin(), kPrefixBits / 8, std::uint8_t{0xff});
  put_group(out, kMostGroups - 1);
  return out;
}

std::optional<Ip4> node_block(const Blocks& blocks, std::uint32_t node) {
  if (node >= kMostNodes4) return std::nullopt;
  return Ip4{blocks.block.value | node << (32 - kNodeBlockBits)};
}

std::optional<Ip4> address4(const Blocks& blocks, const Part& part) {
  auto out = node_block(blocks, part.node);
  if (!out || !part.slot || *part.slot >= kMostSlots) return std::nullopt;
  out->value |= *part.slot;
  return out;
}

}  // namespace gantry::network
