// The history: the tests check windows, directions, pages, and scans by job and by array, on both
// implementations.
#include <doctest/doctest.h>

#include <random>

#include "store_fixture.h"

namespace gantry::store {

#define STORES MemoryDisk, LmdbDisk

namespace {

HistoryEntry ended(std::int64_t end, std::uint64_t job, std::optional<std::uint64_t> array = {}) {
  HistoryEntry entry{Instant{end}, JobId{job}, std::nullopt, fmt::format("{}@{}", job, end)};
  if (array) entry.array = JobId{*array};
  return entry;
}

void record(Store& store, std::vector<HistoryEntry> entries) {
  FoldBatch fold;
  fold.history = std::move(entries);
  require_ok(store.fold(fold));
}

// Reads all pages of a scan. The result has the form "job@end job@end | job@end", where | separates
// pages.
std::string all(Store& store, HistoryScan scan) {
  std::string text;
  for (;;) {
    auto page = store.read_history(scan);
    if (!page) FAIL(page.error().message);
    CHECK(page->entries.size() <= scan.limit);
    for (const HistoryEntry& entry : page->entries) {
      CHECK(entry.data == fmt::format("{}@{}", entry.job.value(), entry.end.us));
      text += (text.empty() || text.back() == ' ' ? "" : " ") + entry.data;
    }
    if (!page->resume) return text;
    text += " | ";
    scan.resume = page->resume;
  }
}

// Reads all pages and drops the page breaks, because a page of LMDB may also end early by the clock
// (kReadBudget).
std::string rows(Store& store, const HistoryScan& scan) {
  std::string text = all(store, scan);
  for (std::size_t at; (at = text.find(" | ")) != std::string::npos;) text.erase(at, 2);
  return text;
}

HistoryScan oldest() {
  HistoryScan scan;
  scan.order = HistoryOrder::oldest_first;
  return scan;
}

}  // namespace

TEST_CASE_TEMPLATE("history is read by time of end, in both directions", Disk, STORES) {
  Disk disk;
  CHECK(all(disk.store(), {}) == "");
  record(disk.store(), {ended(30, 1), ended(10, 2), ended(20, 4), ended(20, 3)});
  record(disk.store(), {ended(5, 9), ended(1'700'000'000'000'000, 5)});
  disk.reopen();
  CHECK(all(disk.store(), oldest()) == "9@5 2@10 3@20 4@20 1@30 5@1700000000000000");
  CHECK(all(disk.store(), {}) == "5@1700000000000000 1@30 4@20 3@20 2@10 9@5");
  CHECK(disk.store().stats().history == 6);
}

TEST_CASE_TEMPLATE("a time window includes its start and excludes its end", Disk, STORES) {
  Disk disk;
  record(disk.store(), {ended(10, 1), ended(20, 2), ended(30, 3)});
  HistoryScan scan = oldest();
  scan.from = Instant{10};
  scan.to = Instant{30};
  CHECK(all(disk.store(), scan) == "1@10 2@20");
  scan.order = HistoryOrder::newest_first;
  CHECK(all(disk.store(), scan) == "2@20 1@10");
  scan.to = Instant{10};
  CHECK(all(disk.store(), scan) == "");
  scan.to = Instant{5};
  CHECK(all(disk.store(), scan) == "");
  scan.from = Instant{-5};
  scan.to = Instant{11};
  CHECK(all(disk.store(), scan) == "1@10");
  scan = {};
  scan.from = Instant{31};
  CHECK(all(disk.store(), scan) == "");
}

TEST_CASE_TEMPLATE("a page continues where the page before it ended", Disk, STORES) {
  Disk disk;
  record(disk.store(), {ended(10, 1), ended(20, 2), ended(20, 3), ended(30, 4), ended(40, 5)});
  HistoryScan scan = oldest();
  scan.limit = 2;
  CHECK(all(disk.store(), scan) == "1@10 2@20 | 3@20 4@30 | 5@40");
  scan.order = HistoryOrder::newest_first;
  CHECK(all(disk.store(), scan) == "5@40 4@30 | 3@20 2@20 | 1@10");
  scan.limit = 5;
  CHECK(all(disk.store(), scan) == "5@40 4@30 3@20 2@20 1@10");  // No empty page follows.
}

TEST_CASE_TEMPLATE("history is read by job and by array", Disk, STORES) {
  Disk disk;
  record(disk.store(), {ended(10, 101, 100), ended(11, 102, 100), ended(12, 50),
                        ended(13, 101, 100), ended(14, 100, 100), ended(15, 99)});
  HistoryScan scan = oldest();
  scan.id = JobId{101};
  CHECK(all(disk.store(), scan) == "101@10 101@13");  // This job ran twice.
  scan.id = JobId{100};
  CHECK(all(disk.store(), scan) == "101@10 102@11 101@13 100@14");
  scan.limit = 1;
  CHECK(all(disk.store(), scan) == "101@10 | 102@11 | 101@13 | 100@14");
  scan.order = HistoryOrder::newest_first;
  scan.to = Instant{14};
  CHECK(all(disk.store(), scan) == "101@13 | 102@11 | 101@10");
  scan.id = JobId{98};
  CHECK(all(disk.store(), scan) == "");
}

TEST_CASE_TEMPLATE("an entry with the same end and job replaces the older one", Disk, STORES) {
  Disk disk;
  record(disk.store(), {{Instant{10}, JobId{1}, std::nullopt, "an earlier text"}});
  record(disk.store(), {ended(10, 1)});
  CHECK(all(disk.store(), {}) == "1@10");
  CHECK(disk.store().stats().history == 1);
}

TEST_CASE_TEMPLATE("a history page is bounded in bytes", Disk, STORES) {
  Disk disk;
  std::vector<HistoryEntry> entries;
  for (std::uint64_t job = 1; job <= 6; ++job)
    entries.push_back({Instant{5}, JobId{job}, std::nullopt, Bytes(kMaxHistoryPageBytes / 2, 'z')});
  record(disk.store(), entries);
  auto page = disk.store().read_history(oldest());
  REQUIRE(page.has_value());
  CHECK(page->entries.size() <= 2);
  REQUIRE(page->resume.has_value());
}

TEST_CASE("both implementations page random histories alike") {
  std::mt19937_64 random(20261121);
  MemoryDisk memory;
  LmdbDisk lmdb;
  std::vector<HistoryEntry> entries;
  for (int i = 0; i < 2000; ++i) {
    std::uint64_t job = 1 + random() % 300;
    std::optional<std::uint64_t> array;
    if (job < 100) array = 1000 + job / 10;
    entries.push_back(ended(static_cast<std::int64_t>(random() % 500), job, array));
  }
  record(memory.store(), entries);
  record(lmdb.store(), entries);
  for (int i = 0; i < 300; ++i) {
    HistoryScan scan;
    if (random() % 2) scan.from = Instant{static_cast<std::int64_t>(random() % 520) - 10};
    if (random() % 2) scan.to = Instant{static_cast<std::int64_t>(random() % 520) - 10};
    if (random() % 2) scan.order = HistoryOrder::oldest_first;
    if (random() % 2) scan.id = JobId{random() % 4 == 0 ? 1000 + random() % 12 : random() % 310};
    scan.limit = 1 + random() % 700;
    CHECK(rows(memory.store(), scan) == rows(lmdb.store(), scan));
  }
}

}  // namespace gantry::store
