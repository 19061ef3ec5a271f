// Single cases of the detector: what is taken off, what is not blamed, when a finding ends.
#include <doctest/doctest.h>

#include "noded/neighbours/detector.h"

namespace gantry::neighbours {
namespace {

proto::AttemptKey key(std::uint64_t job) {
  return {JobId(job), Attempt(1)};
}

// One disk of 100 MB/s; what happened in each period of three seconds is added to the counters.
struct Bench {
  Detector detector{Rules{}};
  Sample sample;
  Bench() {
    sample.cpus = 4;
    sample.stalled.emplace();
    sample.disks = {{"vda", {}, 0, 0}};
    for (const std::uint64_t job : {1, 2}) {
      JobCount& one = sample.jobs.emplace_back();
      one.key = key(job);
      one.stalled.emplace();
      one.disks = {{"vda", 0, 0, 0}};
    }
    detector.take(sample);
  }
  void pass(double busy, double first_mb, double first_waits, double second_mb) {
    sample.at = sample.at + seconds(3);
    const auto bytes = [](double mb) { return static_cast<std::uint64_t>(mb * 3e6); };
    sample.disks[0].busy =
        sample.disks[0].busy + microseconds(static_cast<std::int64_t>(busy * 3e6));
    sample.disks[0].bytes += bytes(first_mb + second_mb);
    sample.jobs[0].disks[0].bytes += bytes(first_mb);
    sample.jobs[1].disks[0].bytes += bytes(second_mb);
    auto& io = sample.jobs[0].stalled->io;
    io = io + microseconds(static_cast<std::int64_t>(first_waits * 3e6));
    detector.take(sample);
  }
  const Finding* of(std::uint64_t job) {
    for (const Finding& f : detector.findings())
      if (f.victim == key(job)) return &f;
    return nullptr;
  }
};

TEST_CASE("a flood is named in the second row, and the finding ends when it is quiet again") {
  Bench b;
  for (int i = 0; i < 6; ++i) b.pass(0.2, 20, 0.02, 1);
  b.pass(1, 5, 0.8, 90);
  CHECK(b.of(1) == nullptr);
  b.pass(1, 5, 0.8, 90);
  REQUIRE(b.of(1) != nullptr);
  CHECK(b.of(1)->verdict.cause == Cause::neighbours);
  REQUIRE(b.of(1)->verdict.culprits.size() == 1);
  CHECK(b.of(1)->verdict.culprits[0].key == key(2));
  CHECK(b.of(1)->verdict.confidence > 0.7);
  // A twentieth of the use is its own, and so of its waiting.
  CHECK(b.of(1)->evidence.held_up == doctest::Approx(0.8 * 90 / 95));
  for (int i = 0; i < 4; ++i) b.pass(0.2, 20, 0.02, 1);
  CHECK_FALSE(b.of(1)->ended.has_value());
  b.pass(0.2, 20, 0.02, 1);
  CHECK(b.of(1)->ended.has_value());
}

TEST_CASE("who reads alone waits for what it reads, and nobody holds it up until somebody comes") {
  Bench b;
  for (int i = 0; i < 6; ++i) b.pass(0.95, 90, 0.9, 0);
  CHECK(b.of(1) == nullptr);
  for (int i = 0; i < 2; ++i) b.pass(1, 10, 0.95, 90);
  REQUIRE(b.of(1) != nullptr);
  CHECK(b.of(1)->verdict.cause == Cause::neighbours);
  CHECK(b.of(1)->verdict.confidence > 0.5);
}

TEST_CASE("a job that begins to fill a disk alone is its own cause, and a slow disk is nobody's") {
  Bench own;
  for (int i = 0; i < 4; ++i) own.pass(0.2, 20, 0.2, 0);
  for (int i = 0; i < 2; ++i) own.pass(1, 95, 0.98, 0);
  REQUIRE(own.of(1) != nullptr);
  CHECK(own.of(1)->verdict.cause == Cause::itself);
  CHECK(own.of(1)->verdict.confidence > 0.7);
  for (int i = 0; i < 5; ++i) own.pass(0.2, 20, 0.2, 0);
  CHECK(own.of(1)->ended.has_value());

  Bench slow;
  for (int i = 0; i < 4; ++i) slow.pass(0.2, 20, 0.2, 0);
  for (int i = 0; i < 2; ++i) slow.pass(1, 3, 0.98, 0);
  REQUIRE(slow.of(1) != nullptr);
  CHECK(slow.of(1)->verdict.cause == Cause::unknown);
}

TEST_CASE("reading back what memory had no room for is not filling a disk") {
  Bench b;
  for (int i = 0; i < 4; ++i) b.pass(0.2, 20, 0.2, 0);
  for (int i = 0; i < 3; ++i) {
    auto& memory = b.sample.jobs[0].stalled->memory;
    memory = memory + microseconds(2'700'000);
    b.pass(1, 95, 0.98, 0);
  }
  for (const Finding& f : b.detector.findings())
    if (f.victim == key(1)) CHECK(f.channel.resource != Resource::disk);
}

TEST_CASE("a job at its own limit holds itself up, whatever a neighbour does on a disk with room") {
  Bench b;
  b.sample.jobs[0].disks[0].limit = 10'000'000;
  for (int i = 0; i < 6; ++i) b.pass(0.1, 2, 0.02, 20);
  for (int i = 0; i < 3; ++i) b.pass(0.3, 9.8, 0.9, 30);
  REQUIRE(b.of(1) != nullptr);
  CHECK(b.of(1)->verdict.cause == Cause::itself);
}

TEST_CASE("a disk that becomes slow is nobody's fault") {
  Bench b;
  for (int i = 0; i < 6; ++i) b.pass(0.5, 20, 0.05, 30);
  for (int i = 0; i < 3; ++i) b.pass(1, 4, 0.9, 6);
  REQUIRE(b.of(1) != nullptr);
  CHECK(b.of(1)->verdict.cause == Cause::unknown);
}

TEST_CASE("cores: who has other cores is not to blame, and too many threads are a job's own") {
  Sample s;
  s.cpus = 4;
  s.stalled.emplace();
  for (const std::uint64_t job : {1, 2, 3}) {
    JobCount& one = s.jobs.emplace_back();
    one.key = key(job);
    one.stalled.emplace();
    one.cpus = job == 3 ? std::vector<std::uint16_t>{2, 3} : std::vector<std::uint16_t>{0, 1};
  }
  Detector d{Rules{}};
  d.take(s);
  const auto pass = [&](double first, double waits, double second, double third, double wait3) {
    s.at = s.at + seconds(3);
    const auto us = [](double seconds) {
      return microseconds(static_cast<std::int64_t>(seconds * 3e6));
    };
    s.cpu = s.cpu + us(first + second + third);
    s.stalled->cpu = s.stalled->cpu + us(std::max(waits, wait3));
    s.jobs[0].cpu = s.jobs[0].cpu + us(first);
    s.jobs[0].stalled->cpu = s.jobs[0].stalled->cpu + us(waits);
    s.jobs[1].cpu = s.jobs[1].cpu + us(second);
    s.jobs[2].cpu = s.jobs[2].cpu + us(third);
    s.jobs[2].stalled->cpu = s.jobs[2].stalled->cpu + us(wait3);
    d.take(s);
  };
  for (int i = 0; i < 6; ++i) pass(1.5, 0.02, 0.1, 0.1, 0);
  for (int i = 0; i < 4; ++i) pass(0.9, 0.9, 1.0, 2.0, 0.95);
  const Finding* first = nullptr;
  const Finding* third = nullptr;
  for (const Finding& f : d.findings()) {
    if (f.victim == key(1)) first = &f;
    if (f.victim == key(3)) third = &f;
  }
  REQUIRE(first != nullptr);
  REQUIRE(first->verdict.culprits.size() == 1);
  CHECK(first->verdict.culprits[0].key == key(2));
  REQUIRE(third != nullptr);
  CHECK(third->verdict.cause == Cause::itself);
}

}  // namespace
}  // namespace gantry::neighbours
