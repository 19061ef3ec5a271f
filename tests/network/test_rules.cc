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
        "add element inet gantry own4 { \"j5.1\" . 100.64.4.5 }\n"
        "add element inet gantry own6 { \"j5.1\" . fd00:0:1:1:1::5 }\n");
  CHECK(book.remove(attempt_of(5)) ==
        "delete element inet gantry own4 { \"j5.1\" . 100.64.4.5 }\n"
        "delete element inet gantry own6 { \"j5.1\" . fd00:0:1:1:1::5 }\n");
  CHECK(book.remove(attempt_of(5)).empty());
  CHECK(book.members().empty());
}

TEST_CASE("parts of a job may talk to each other in both directions") {
  RuleBook book(cluster_blocks());
  CHECK(book.add(attempt_of(5), {"j5.1", part_of(1, 5), {part_of(2, 5)}}) ==
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
