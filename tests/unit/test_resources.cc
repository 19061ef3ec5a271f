// Arithmetic of resources: the tests check results, and that a negative result or an overflow fails
// an assertion.
#include <limits>

#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <csignal>

#include "common/resources/resources.h"

using gantry::Resource;
using gantry::Resources;

namespace {

Resources make(std::int64_t cpu, std::int64_t memory) {
  Resources r;
  r.row(Resource::cpu) = cpu;
  r.row(Resource::memory) = memory;
  return r;
}

// True if `action` ends its process by a failed assertion.
template <class Action>
bool asserts(Action action) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    ::close(2);  // The text of the assertion is not shown.
    action();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace

TEST_CASE("resources are added and subtracted row by row") {
  Resources r = make(4000, 100);
  r += make(500, 10);
  CHECK(r == make(4500, 110));
  r -= make(4500, 110);
  CHECK(r.is_zero());
  CHECK(make(2, 3) + make(1, 1) == make(3, 4));
  CHECK(make(2, 3) - make(1, 1) == make(1, 2));
}

TEST_CASE("covers() compares each resource on its own") {
  CHECK(make(4, 4).covers(make(4, 4)));
  CHECK_FALSE(make(4, 4).covers(make(5, 0)));
  CHECK_FALSE(make(4, 4).covers(make(0, 5)));
}

TEST_CASE("a negative result and an overflow fail an assertion") {
  CHECK(asserts([] { (void)(make(1, 5) - make(2, 0)); }));
  CHECK(asserts([] { (void)(make(0, std::numeric_limits<std::int64_t>::max()) + make(0, 1)); }));
  CHECK_FALSE(asserts([] { (void)(make(2, 5) - make(2, 5)); }));
}

TEST_CASE("resources are written as text") {
  CHECK(to_string(Resources{}) == "");
  CHECK(to_string(make(4000, std::int64_t{8} << 30)) == "cpu=4,mem=8G");
  CHECK(to_string(make(500, 0)) == "cpu=0.5");
  CHECK(to_string(make(1250, 1536 << 20)) == "cpu=1.25,mem=1536M");
  Resources r;
  r.row(Resource::gpu) = 10'000;
  r.row(Resource::scratch) = 1000;
  CHECK(to_string(r) == "gpu=10,scratch=1000B");
  Resources rates;
  rates.set<Resource::io>(gantry::ByteRate{1'500'000'000});
  rates.set<Resource::net>(gantry::BitRate{10'000'000'000});
  CHECK(to_string(rates) == "io=1500M,net=10G");
  CHECK(gantry::amount_words(Resource::io, 1'500'000'000) == "1.5 GB/s of io");
  CHECK(gantry::amount_words(Resource::net, 500'000'000) == "500 Mbit/s of net");
}

TEST_CASE("a rate is read as it is written") {
  CHECK(gantry::parse_rate("500M") == 500'000'000);
  CHECK(gantry::parse_rate("1000000T") == 1'000'000'000'000'000'000);
  CHECK(gantry::parse_rate("7") == 7);
  for (const char* wrong : {"", "0", "M", "-1M", "1.5G", "1Gi", "1000001T", "9999999999999999999T"})
    CHECK_FALSE(gantry::parse_rate(wrong));
  for (const std::int64_t rate :
       {1LL, 999LL, 1'000LL, 1'500'000LL, 20'000'000'000LL, 10'000'000'000'000LL, 123'456'789LL})
    CHECK(gantry::parse_rate(gantry::format_rate(rate)) == rate);
  CHECK(gantry::format_rate(0) == "0");
}
