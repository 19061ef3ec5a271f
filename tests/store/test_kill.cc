// A writer is killed with SIGKILL at 60 random moments, always on the same directory. Every
// acknowledged event is there afterwards, and no batch or fold is torn. This does not test power
// loss; see test_power_loss.cc.
#include <doctest/doctest.h>

#include <cstring>

#include "child.h"
#include "store_fixture.h"
#include "workload.h"

namespace gantry::store {

namespace {

// Writes until it is killed, and reports each acknowledged event number as eight bytes.
int write_for_ever(const LmdbOptions& options, int report, std::uint64_t seed) {
  auto store = LmdbStore::open(options);
  if (!store) return 1;
  Workload workload(**store, seed, 2);
  while (workload.turn()) {
    std::uint64_t acked = (*store)->stats().last.value();
    say(report, {reinterpret_cast<const char*>(&acked), sizeof acked});
  }
  return 2;
}

std::uint64_t last_number(const std::string& report) {
  std::uint64_t number = 0;
  std::size_t whole = report.size() / sizeof number;
  if (whole > 0) std::memcpy(&number, report.data() + (whole - 1) * sizeof number, sizeof number);
  return number;
}

}  // namespace

TEST_CASE("a killed writer has lost nothing that it acknowledged") {
  TempDirectory directory;
  LmdbOptions options;
  options.directory = directory.path() + "/state";
  options.map_bytes = 1 << 20;     // The map is small, so that some kills hit while it grows.
  options.compact_from_bytes = 1;  // Compaction always runs, so that some kills hit it.
  std::mt19937_64 random(25);
  std::uint64_t acked = 0;
  for (int round = 0; round < 60; ++round) {
    Child writer([&](int report) { return write_for_ever(options, report, random()); });
    // The writer is killed after this many acknowledgements. In some rounds the number is 0, so
    // that the kill may come during the opening.
    std::uint64_t number = 0;
    std::uint64_t answers = round % 5 == 0 ? 0 : 1 + random() % 60;
    for (std::uint64_t i = 0; i < answers; ++i) {
      REQUIRE(::read(writer.report(), &number, sizeof number) == sizeof number);
      acked = std::max(acked, number);
    }
    writer.leave_alone(std::chrono::microseconds(random() % 3000));
    writer.kill();
    ChildEnd end = writer.wait();
    REQUIRE(end.signal == SIGKILL);
    acked = std::max(acked, last_number(end.report));
    auto store = LmdbStore::open(options);
    REQUIRE(store.has_value());
    CHECK(Workload::judge(**store, acked) == "");
    // The child drew its seed from its copy of `random`. Drawing here keeps this copy in step.
    (void)random();
  }
  CHECK(acked > 1000);
}

TEST_CASE("the judge of the workload finds missing, torn and wrong events") {
  MemoryStore store;
  Workload workload(store, 1);
  for (int i = 0; i < 50; ++i) require_ok(workload.turn());
  std::uint64_t last = store.stats().last.value();
  CHECK(Workload::judge(store, last) == "");
  CHECK(Workload::judge(store, last + 1) != "");
  AppendBatch torn;
  torn.events = {{EventSeq{last + 1}, Workload::event(last + 1, last + 1, last + 2)}};
  require_ok(store.append(torn));
  CHECK(Workload::judge(store, last) ==
        fmt::format("a batch up to {} is torn at {}", last + 2, last + 1));
  torn.events = {{EventSeq{last + 2}, "something else"}};
  require_ok(store.append(torn));
  CHECK(Workload::judge(store, last) != "");
}

}  // namespace gantry::store
