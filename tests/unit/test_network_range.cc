// Ranges of addresses and ports as people write them.
#include <doctest/doctest.h>

#include <algorithm>

#include "common/text/network_range.h"

using namespace gantry;

namespace {

std::string read(std::string_view text) {
  const auto range = parse_network_range(text);
  return range ? to_string(*range) : "error: " + range.error().message;
}

bool is_range(std::string_view text) {
  return parse_network_range(text).has_value();
}

}  // namespace

TEST_CASE("a range is read and written in one form") {
  CHECK(read("10.1.0.0/16") == "10.1.0.0/16");
  CHECK(read("10.1.0.7") == "10.1.0.7/32");
  CHECK(read("10.1.0.7 tcp/443") == "10.1.0.7/32 tcp/443");
  CHECK(read("10.1.0.7 tcp/1-65535") == "10.1.0.7/32 tcp");
  CHECK(read("FD00:8:0::/32 udp/5000-5010") == "fd00:8::/32 udp/5000-5010");
  CHECK(read("0.0.0.0/0") == "0.0.0.0/0");
}

TEST_CASE("what is no range is refused, whatever a packet filter would make of it") {
  for (const char* text : {"",
                           " ",
                           "10.1.0.0/33",
                           "10.1.0.1/16",
                           "10.1.0.0/+8",
                           "10.1.0.0/16 ",
                           "10.1/16",
                           "fd00::/129",
                           "10.1.0.0/16 tcp/0",
                           "10.1.0.0/16 tcp/65536",
                           "10.1.0.0/16 tcp/9-8",
                           "10.1.0.0/16 sctp/1",
                           "10.1.0.0/16 tcp/80; accept",
                           "10.1.0.0/16\naccept",
                           "10.1.0.0/16 tcp/80 accept",
                           "host.example",
                           "@set",
                           "{ 10.1.0.0/16 }",
                           "10.1.0.0-10.2.0.0",
                           "fe80::1%eth0",
                           "10.1.0.0/16 tcp/ 80",
                           "10.1.0.0/16  tcp/80",
                           "10.1.0.0/",
                           "/8",
                           "tcp/80"}) {
    CAPTURE(text);
    CHECK_FALSE(is_range(text));
  }
  CHECK_FALSE(is_range(std::string("10.1.0.0\0/16", 12)));
}

TEST_CASE("what is left of a range without another one is everything else") {
  const auto range = *parse_network_range("0.0.0.0/0");
  const auto hole = *parse_network_range("10.0.0.0/8");
  const auto left = without(range, hole);
  CHECK(left.size() == 8);
  for (const char* text : {"9.255.255.255", "11.0.0.0", "0.0.0.1", "255.0.0.1", "128.0.0.0"}) {
    const auto one = *parse_network_range(text);
    CHECK(std::count_if(left.begin(), left.end(), [&](const auto& r) { return r.holds(one); }) ==
          1);
  }
  for (const char* text : {"10.0.0.0", "10.255.255.255", "10.20.0.1"}) {
    const auto one = *parse_network_range(text);
    CHECK(std::none_of(left.begin(), left.end(), [&](const auto& r) { return r.holds(one); }));
  }
  CHECK(without(hole, range).empty());
  CHECK(without(hole, *parse_network_range("11.0.0.0/8")).front() == hole);
}
