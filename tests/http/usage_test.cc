// Tests the file of usage events: each event is in it once and in order, even after a crash that
// left an incomplete line; and it can be read in pages, by number and tenant.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/codec/codec.h"
#include "ctld/acct/usage_log.h"

using namespace gantry;
using namespace gantry::acct;

namespace {

core::UsageEvent event_of(std::uint64_t seq, const std::string& tenant = "fraud") {
  core::UsageEvent e;
  e.id = fmt::format("c-{}", seq);
  e.seq = seq;
  e.kind = "end";
  e.tenant = tenant;
  e.cost = "1.2500";
  e.things.push_back({"cpu", "", "", "1.250", "1.25"});
  return e;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::uint64_t> numbers(const std::string& lines) {
  std::vector<std::uint64_t> out;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);)
    out.push_back(codec::from_json<core::UsageEvent>(line)->seq);
  return out;
}

struct Scratch {
  std::string path = fmt::format("{}/gantry-usage.{}",
                                 std::filesystem::temp_directory_path().string(), ::getpid());
  Scratch() { std::filesystem::remove(path); }
  ~Scratch() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("a usage event stands in the file once, however often it is reported") {
  Scratch scratch;
  {
    auto log = UsageLog::open(scratch.path);
    REQUIRE_MESSAGE(log, log.error().message);
    CHECK((*log)->append({event_of(3), event_of(5)}));
    CHECK((*log)->append({event_of(5), event_of(9)}));
    CHECK((*log)->sync());
  }
  CHECK(numbers(text_of(scratch.path)) == std::vector<std::uint64_t>{3, 5, 9});
  {
    std::ofstream(scratch.path, std::ios::app) << "{\"id\":\"c-12\",\"seq\":12,\"ki";
    auto log = UsageLog::open(scratch.path);
    REQUIRE_MESSAGE(log, log.error().message);
    CHECK((*log)->append({event_of(5), event_of(9), event_of(12), event_of(13)}));
  }
  CHECK(numbers(text_of(scratch.path)) == std::vector<std::uint64_t>{3, 5, 9, 12, 13});
  {
    std::ofstream(scratch.path, std::ios::app) << "that is none\n";
    const auto log = UsageLog::open(scratch.path);
    REQUIRE(!log);
    CHECK(log.error().message.find("a line is no usage event") != std::string::npos);
  }
}

TEST_CASE("pages of usage events begin after a number and hold one tenant's events") {
  Scratch scratch;
  auto log = UsageLog::open(scratch.path);
  REQUIRE(log);
  std::vector<core::UsageEvent> events;
  for (std::uint64_t seq = 1; seq <= 2000; ++seq)
    events.push_back(event_of(2 * seq, seq % 3 == 0 ? "search" : "fraud"));
  REQUIRE((*log)->append(events));
  const auto page = [&](std::uint64_t after, const std::string& tenant, std::size_t limit) {
    const auto lines = usage_lines(scratch.path, after, tenant, limit);
    REQUIRE_MESSAGE(lines, lines.error().message);
    return numbers(*lines);
  };
  CHECK(page(0, "", 1).front() == 2);
  CHECK(page(4000, "", 1000).empty());
  CHECK(page(3999, "", 1000) == std::vector<std::uint64_t>{4000});
  for (const std::uint64_t after : {1u, 2u, 777u, 778u, 2500u, 3998u}) {
    CAPTURE(after);
    CHECK(page(after, "", 1).front() == after / 2 * 2 + 2);
  }
  for (const std::uint64_t seq : page(0, "search", 20'000)) CHECK(seq % 6 == 0);
  // Reading page after page misses no event.
  std::uint64_t after = 0, seen = 0;
  while (true) {
    const auto some = page(after, "fraud", 5'000);
    if (some.empty()) break;
    seen += some.size();
    after = some.back();
  }
  CHECK(seen == 2000 - 666);
}
