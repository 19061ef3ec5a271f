// Host lists: the tests check the forms that clients read and write, the limits, and that a written
// list reads as the same names.
#include <random>

#include <doctest/doctest.h>

#include "common/limits.h"
#include "common/text/hostlist.h"

using gantry::compress_counts;
using gantry::compress_hostlist;
using gantry::expand_hostlist;
using Names = std::vector<std::string>;

namespace {

Names expanded(std::string_view text) {
  const auto names = expand_hostlist(text);
  REQUIRE_MESSAGE(names.has_value(), (names ? "" : names.error().message));
  return *names;
}

std::string refused(std::string_view text) {
  const auto names = expand_hostlist(text);
  REQUIRE_FALSE(names.has_value());
  return names.error().message;
}

}  // namespace

TEST_CASE("names, ranges and several brackets are expanded") {
  CHECK(expanded("") == Names{});
  CHECK(expanded("x1") == Names{"x1"});
  CHECK(expanded("gpu[01-04,07],x1") == Names{"gpu01", "gpu02", "gpu03", "gpu04", "gpu07", "x1"});
  CHECK(expanded("n[9-11]") == Names{"n9", "n10", "n11"});
  CHECK(expanded("n[098-101]") == Names{"n098", "n099", "n100", "n101"});
  CHECK(expanded("r[1-2]n[1-2]") == Names{"r1n1", "r1n2", "r2n1", "r2n2"});
  CHECK(expanded("a[1-2]-ib.cluster") == Names{"a1-ib.cluster", "a2-ib.cluster"});
  CHECK(expanded("b,a,b") == Names{"b", "a", "b"});
}

TEST_CASE("compressing keeps the order and leading zeros, and uses one bracket for each name") {
  const auto compressed = [](Names names) { return compress_hostlist(names); };
  CHECK(compressed({}) == "");
  CHECK(compressed({"c1"}) == "c1");
  CHECK(compressed({"c1", "c2", "c3", "c4", "c7"}) == "c[1-4,7]");
  CHECK(compressed({"a01", "a02", "a03", "b2"}) == "a[01-03],b2");
  CHECK(compressed({"n9", "n10"}) == "n[9-10]");
  CHECK(compressed({"n09", "n10"}) == "n[09-10]");
  CHECK(compressed({"n9", "n010"}) == "n[9,010]");
  CHECK(compressed({"n2", "n1"}) == "n[2,1]");
  CHECK(compressed({"x1", "y1", "x2"}) == "x1,y1,x2");
  CHECK(compressed({"login", "login1", "login2"}) == "login,login[1-2]");
  CHECK(compressed({"r1n1", "r1n2", "r2n1"}) == "r1n[1-2],r2n1");
}

TEST_CASE("a malformed host list is refused with the position of the mistake") {
  CHECK(refused("a[1-3") == "host list \"a[1-3\": the bracket is not closed at position 2");
  CHECK(refused("a b") == "host list \"a b\": unexpected ' ' at position 2");
  CHECK(refused("a,,b") == "host list \"a,,b\": a name is missing at position 3");
  CHECK(refused("a,") == "host list \"a,\": a name is missing after the comma at position 3");
  CHECK(refused("a[3-1]").find("ends below its start at position 6") != std::string::npos);
  CHECK(refused("a[x]").find("unexpected 'x' at position 3") != std::string::npos);
  CHECK(refused("a[]").find("unexpected ']' at position 3") != std::string::npos);
  CHECK(refused("a]").find("unexpected ']' at position 2") != std::string::npos);
  CHECK(refused("a[1-0000000001]").find("more than 9 digits") != std::string::npos);
  CHECK(refused(std::string(300, 'a')).find("longer than 253 bytes") != std::string::npos);
}

TEST_CASE("a host list cannot name more than kMaxHosts hosts") {
  CHECK(expanded("n[1-65536]").size() == gantry::kMaxHosts);
  CHECK(expand_hostlist("n[1-65537]").error().code == gantry::ErrorCode::limit_exceeded);
  CHECK(expand_hostlist("n[0-999999999]").error().code == gantry::ErrorCode::limit_exceeded);
  CHECK(expand_hostlist("a[1-999]b[1-999]").error().code == gantry::ErrorCode::limit_exceeded);
  CHECK(expand_hostlist("n[1-65536],x").error().code == gantry::ErrorCode::limit_exceeded);
}

TEST_CASE("expanding a compressed list gives the same names") {
  std::mt19937 random(7);
  const std::vector<std::string> prefixes{"n", "gpu", "r1-", "x.y", "a12b"};
  for (int round = 0; round < 500; ++round) {
    Names names;
    unsigned number = random() % 120;
    for (unsigned i = 0; i < random() % 20; ++i) {
      number = random() % 3 == 0 ? random() % 1200 : number + 1;
      std::string digits = std::to_string(number);
      if (random() % 4 == 0) digits.insert(0, random() % 3, '0');
      names.push_back(prefixes[random() % prefixes.size()] + digits);
      if (random() % 9 == 0) names.push_back(prefixes[random() % prefixes.size()]);
    }
    for (std::string& name : names)
      if (name.back() == '.' || name.back() == '-') name += 'z';
    CHECK(expanded(compress_hostlist(names)) == names);
  }
}

TEST_CASE("equal counts of neighbouring nodes are written once") {
  const auto folded = [](std::vector<std::uint32_t> counts) { return compress_counts(counts); };
  CHECK(folded({}) == "");
  CHECK(folded({4}) == "4");
  CHECK(folded({2, 2, 2, 1}) == "2(x3),1");
  CHECK(folded({1, 2, 1}) == "1,2,1");
}
