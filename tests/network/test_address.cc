// Tests the addresses of jobs, and which texts are blocks of addresses.
#include <doctest/doctest.h>

#include "noded/network/address.h"

using namespace gantry;
using namespace gantry::network;

namespace {
Blocks blocks() {
  const auto read = read_blocks("fd12:3456:789a::/48", "100.64.0.0/10");
  REQUIRE(read);
  return *read;
}
}  // namespace

TEST_CASE("a job has an address on each of its nodes, by node, job and slot") {
  const Part part{.node = 3, .job = JobId(1'000'000), .slot = 7};
  CHECK(text_of(address6(blocks(), part)) == "fd12:3456:789a:3:1:0:f:4240");
  CHECK(text_of(*address4(blocks(), part)) == "100.64.12.7");
  CHECK(text_of(node_prefix(blocks(), 65'535)) == "fd12:3456:789a:ffff::");
  CHECK(text_of(*node_block(blocks(), 4'095)) == "100.127.252.0");
  CHECK(text_of(node_address6(blocks(), 1)) == "fd12:3456:789a:1::1");
}

TEST_CASE("a job without a slot, or on a node beyond the block, has no IPv4 address") {
  CHECK_FALSE(address4(blocks(), {.node = 3, .job = JobId(1), .slot = {}}));
  CHECK_FALSE(address4(blocks(), {.node = 3, .job = JobId(1), .slot = kMostSlots}));
  CHECK_FALSE(address4(blocks(), {.node = kMostNodes4, .job = JobId(1), .slot = 0}));
  CHECK_FALSE(node_block(blocks(), kMostNodes4));
}

TEST_CASE("only unique local prefixes of 48 bits and blocks of 10 bits are read") {
  const char* good4 = "10.64.0.0/10";
  CHECK(read_blocks("fdff:ffff:ffff::/48", good4));
  for (const char* bad : {"", "fd12::/47", "fd12:3456:789a:1::/48", "2001:db8:1::/48",
                          "fd12::", "fd12:3456:789a::/48x", "10.0.0.0/48"}) {
    const auto read = read_blocks(bad, good4);
    REQUIRE_FALSE(read);
    CHECK(read.error().message.find("is not a unique local IPv6 prefix") != std::string::npos);
  }
  for (const char* bad : {"", "100.64.0.0", "100.64.0.0/11", "100.65.0.0/10", "100.64.0/10"}) {
    const auto read = read_blocks("fd12:3456:789a::/48", bad);
    REQUIRE_FALSE(read);
    CHECK(read.error().message.find("is not an IPv4 block") != std::string::npos);
  }
}

TEST_CASE("the prefix of a cluster comes from its key") {
  const Ip6 one = prefix_of("one"), other = prefix_of("other");
  CHECK(one == prefix_of("one"));
  CHECK(one != other);
  CHECK(one.bytes[0] == 0xfd);
  CHECK(read_blocks(text_of(one) + "/48", "100.64.0.0/10"));
}
