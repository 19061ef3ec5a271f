// The addresses of jobs. Each job has one IPv6 address on each of its nodes, and an IPv4 address
// beside it where the blocks have room for one:
//
//   IPv6   PREFIX (48 bits) : NODE (16) : GROUP (24) : JOB (40)   never given to another job
//   IPv4   BLOCK (10 bits)  . NODE (12) . SLOT (10)               reused after the job
//
// GROUP is a number of the job's tenant, from 65,536 on, or 256 for a job without one; so a node
// can tell from a packet to which tenant its job belongs.
//
// Every node can compute the addresses of all parts of a job from the numbers of their nodes, the
// job's id and the slots that the controller assigned, so addresses need not be announced. PREFIX
// is a unique local prefix (RFC 4193). BLOCK is by default the shared address space of RFC 6598.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "common/result.h"
#include "common/types.h"

namespace gantry::network {

struct Ip6 {
  std::array<std::uint8_t, 16> bytes{};  // in network byte order
  friend auto operator<=>(const Ip6&, const Ip6&) = default;
};

struct Ip4 {
  std::uint32_t value = 0;  // in host byte order
  friend auto operator<=>(const Ip4&, const Ip4&) = default;
};

std::string text_of(const Ip6& address);
std::string text_of(const Ip4& address);

inline constexpr int kPrefixBits = 48,
                     kNodePrefixBits = 64;  // IPv6 prefix lengths: of the cluster, of a node
inline constexpr int kBlockBits = 10,
                     kNodeBlockBits = 22;  // IPv4 prefix lengths: of the cluster, of a node
inline constexpr std::uint32_t kMostNodes6 = 1U << 16, kMostNodes4 = 1U << 12;
inline constexpr std::uint32_t kMostSlots = 1U << 10, kMostGroups = 1U << 24;

// The address blocks of a cluster.
struct Blocks {
  Ip6 prefix;
  Ip4 block;
};

// Reads "fd12:3456:789a::/48" and "100.64.0.0/10". The error tells what is wrong with the text.
Result<Blocks> read_blocks(const std::string& prefix, const std::string& block);

// The prefix of a cluster whose configuration names none: fd and 40 bits of a hash of the text,
// which should be unique to this cluster (its public key).
Ip6 prefix_of(std::string_view cluster_key);

// The part of a job on one node.
struct Part {
  std::uint32_t node = 0;  // the node's number, below kMostNodes6
  JobId job{};
  std::optional<std::uint32_t> slot;  // below kMostSlots; not set: it has no IPv4 address
  std::uint32_t group = 0;            // below kMostGroups; 0 = of no tenant
  friend auto operator<=>(const Part&, const Part&) = default;
};

Ip6 address6(const Blocks& blocks, const Part& part);
std::optional<Ip4> address4(const Blocks& blocks, const Part& part);
Ip6 node_prefix(const Blocks& blocks, std::uint32_t node);                // 64 bits
std::optional<Ip4> node_block(const Blocks& blocks, std::uint32_t node);  // 22 bits

// The common prefix of the addresses of all jobs of this group, and its mask.
Ip6 group_address(const Blocks& blocks, std::uint32_t group);
Ip6 group_mask();

// The node's own address in its prefix, the source of refusals to its jobs.
Ip6 node_address6(const Blocks& blocks, std::uint32_t node);

}  // namespace gantry::network
