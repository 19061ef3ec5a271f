// Tests what the packet filter is told when jobs begin and end.
#include <doctest/doctest.h>

#include "noded/network/rules.h"

using namespace gantry;
using namespace gantry::network;

namespace {

Blocks cluster_blocks() {
  return *read_blocks("fd00:0:1::/48", "100.64.0.0/10");
}

proto::AttemptKey attempt_of(std::uint64_t job) {
  return {JobId(job), Attempt(1)};
}

Part part_of(std::uint32_t node, std::uint64_t job) {
  return {.node = node, .job = JobId(job), .slot = static_cast<std::uint32_t>(job)};
}

}  // namespace

TEST_CASE("a job alone gets its own addresses and nothing else") {
  RuleBook book(cluster_blocks());
  CHECK(book.add(attempt_of(5), {"j5.1", part_of(1, 5), {}}) ==
        "add element inet gantry denied_of { \"j5.1\" }\n"
        "add element inet gantry own4 { \"j5.1\" . 100.64.4.5 }\n"
        "add element inet gantry own6 { \"j5.1\" . fd00:0:1:1:1::5 }\n");
  CHECK(book.remove(attempt_of(5)) ==
        "delete element inet gantry denied_of { \"j5.1\" }\n"
        "delete element inet gantry own4 { \"j5.1\" . 100.64.4.5 }\n"
        "delete element inet gantry own6 { \"j5.1\" . fd00:0:1:1:1::5 }\n");
  CHECK(book.remove(attempt_of(5)).empty());
  CHECK(book.members().empty());
}

TEST_CASE("parts of a job may talk to each other in both directions") {
  RuleBook book(cluster_blocks());
  CHECK(book.add(attempt_of(5), {"j5.1", part_of(1, 5), {part_of(2, 5)}}) ==
        "add element inet gantry denied_of { \"j5.1\" }\n"
        "add element inet gantry own4 { \"j5.1\" . 100.64.4.5 }\n"
        "add element inet gantry own6 { \"j5.1\" . fd00:0:1:1:1::5 }\n"
        "add element inet gantry pairs4 { 100.64.4.5 . 100.64.8.5 }\n"
        "add element inet gantry pairs4 { 100.64.8.5 . 100.64.4.5 }\n"
        "add element inet gantry pairs6 { fd00:0:1:1:1::5 . fd00:0:1:2:1::5 }\n"
        "add element inet gantry pairs6 { fd00:0:1:2:1::5 . fd00:0:1:1:1::5 }\n");
}

TEST_CASE("what two components on one node both need stays until the second one has ended") {
  RuleBook book(cluster_blocks());
  (void)book.add(attempt_of(5), {"j5.1", part_of(1, 5), {part_of(1, 6)}});
  const std::string second = book.add(attempt_of(6), {"j6.1", part_of(1, 6), {part_of(1, 5)}});
  CHECK(second.find("pairs") == std::string::npos);
  CHECK(book.remove(attempt_of(5)).find("pairs") == std::string::npos);
  CHECK(book.remove(attempt_of(6)).find("pairs6") != std::string::npos);
}

TEST_CASE("a peer without an IPv4 address is reached by IPv6 alone") {
  RuleBook book(cluster_blocks());
  Part far = part_of(2, 5);
  far.slot.reset();
  const std::string text = book.add(attempt_of(5), {"j5.1", part_of(1, 5), {far}});
  CHECK(text.find("pairs6") != std::string::npos);
  CHECK(text.find("pairs4") == std::string::npos);
}

TEST_CASE("the whole table names every member, and the second add takes the place of the first") {
  RuleBook book(cluster_blocks());
  (void)book.add(attempt_of(5), {"j5.1", part_of(1, 5), {part_of(2, 5)}});
  (void)book.add(attempt_of(5), {"j5.1", part_of(1, 5), {part_of(3, 5)}});
  const std::string whole = book.whole();
  CHECK(whole.find("set own6 { type ifname . ipv6_addr; elements = { \"j5.1\" . "
                   "fd00:0:1:1:1::5 } }") != std::string::npos);
  CHECK(whole.find("fd00:0:1:3:1::5") != std::string::npos);
  CHECK(whole.find("fd00:0:1:2:1::5") == std::string::npos);
}

TEST_CASE("what a profile allows is a chain of the job, which goes with it") {
  RuleBook book(cluster_blocks());
  Member first{"j4.1", part_of(1, 4), {}, {}};
  first.reach.internet = true;
  const std::string whole = book.add(attempt_of(4), first);
  CHECK(whole.find("set never4 { type ipv4_addr; flags interval; auto-merge; elements = { "
                   "0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16") != std::string::npos);
  CHECK(whole.find("add rule inet gantry out_j4.1 ip daddr != @nowhere4 ct mark set 1025 counter "
                   "accept") != std::string::npos);
  Member member{"j5.1", part_of(1, 5), {}, {}};
  member.reach.resolvers = {*parse_network_range("10.0.0.2")};
  member.reach.ranges = {*parse_network_range("10.1.0.0/16 tcp/443"),
                         *parse_network_range("fd00:8::/32")};
  member.reach.from = {{65536, *parse_ports("tcp/8080-8090")}};
  const std::string head = book.add(attempt_of(5), member);
  CHECK(head.substr(head.find("add element inet gantry flows")) ==
        "add element inet gantry flows { 1281 . \"j5.1\" }\n"
        "add chain inet gantry out_j5.1\n"
        "add rule inet gantry out_j5.1 ct state != new counter name denied goto lie\n"
        "add rule inet gantry out_j5.1 ct count over 2048 counter name denied goto refuse\n"
        "add rule inet gantry out_j5.1 oifname != \"way\" return\n"
        "add rule inet gantry out_j5.1 ip daddr 10.0.0.2/32 udp dport 53-53 ct mark set 1281 "
        "counter accept\n"
        "add rule inet gantry out_j5.1 ip daddr 10.0.0.2/32 tcp dport 53-53 ct mark set 1281 "
        "counter accept\n"
        "add rule inet gantry out_j5.1 jump never\n"
        "add rule inet gantry out_j5.1 ip daddr 10.1.0.0/16 tcp dport 443-443 ct mark set 1281 "
        "counter accept\n"
        "add rule inet gantry out_j5.1 ip6 daddr fd00:8::/32 ct mark set 1281 counter accept\n"
        "add element inet gantry leave { \"j5.1\" : jump out_j5.1 }\n"
        "add chain inet gantry in_j5.1\n"
        "add rule inet gantry in_j5.1 ip6 saddr & ffff:ffff:ffff:0:ffff:ff00:: == "
        "fd00:0:1:0:100:: tcp dport 8080-8090 ct mark set 1281 counter accept\n"
        "add element inet gantry enter { \"j5.1\" : jump in_j5.1 }\n");
  const std::string gone = book.remove(attempt_of(5));
  for (const char* part :
       {"delete element inet gantry leave { \"j5.1\" }\nflush chain inet gantry out_j5.1\n"
        "delete chain inet gantry out_j5.1\n",
        "delete element inet gantry enter { \"j5.1\" }\nflush chain inet gantry in_j5.1\n"
        "delete chain inet gantry in_j5.1\n",
        "delete element inet gantry flows { 1281 . \"j5.1\" }\n"})
    CHECK(gone.find(part) != std::string::npos);
  CHECK(book.whole().find("j5.1") == std::string::npos);
}

TEST_CASE("the name servers of jobs are those that another machine can be") {
  const auto found = resolvers_of(
      "# by hand\nsearch a.b\nnameserver 127.0.0.53\n"
      "nameserver fe80::1%eth0\nnameserver 10.0.0.2\n"
      "nameserver 10.0.0.0/8\nnameserver 2001:db8::53\n"
      "nameserver; drop\n");
  REQUIRE(found.size() == 2);
  CHECK(address_text(found[0]) == "10.0.0.2/32");
  CHECK(address_text(found[1]) == "2001:db8::53/128");
}
