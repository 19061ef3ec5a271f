// The promises of every Store. Each test runs on both implementations.
#include <doctest/doctest.h>

#include "store_fixture.h"

namespace gantry::store {

#define STORES MemoryDisk, LmdbDisk

TEST_CASE_TEMPLATE("an empty store has no content and numbers events from 1", Disk, STORES) {
  Disk disk;
  CHECK(load_image(disk.store()) == Image{});
  CHECK(disk.store().stats().last == EventSeq{0});
  require_ok(disk.store().append({}));
  require_ok(disk.store().append(events_after(EventSeq{0}, 1)));
  CHECK(disk.store().stats().last == EventSeq{1});
}

TEST_CASE_TEMPLATE("appended events, specs and blobs are there after a restart", Disk, STORES) {
  Disk disk;
  AppendBatch batch = events_after(EventSeq{0}, 3);
  batch.specs = {{JobId{7}, "spec seven"}, {JobId{9}, Bytes(5000, 'x')}};
  batch.blobs = {{digest_of(1), "#!/bin/sh\n"}, {digest_of(2), Bytes(100'000, 'y')}};
  require_ok(disk.store().append(batch));
  require_ok(disk.store().append(events_after(EventSeq{3}, 2)));
  Image before = load_image(disk.store());
  CHECK(before.events.size() == 5);
  CHECK(before.events[4] == event_data(4));
  CHECK(before.specs[9].size() == 5000);
  CHECK(before.blobs[digest_of(2)] == 100'000);

  disk.reopen();
  CHECK(load_image(disk.store()) == before);
  CHECK(disk.store().stats().last == EventSeq{5});
  CHECK(disk.store().read_spec(JobId{7}) == "spec seven");
  CHECK(disk.store().read_spec(JobId{8}).error().code == ErrorCode::not_found);
  CHECK(disk.store().read_blob(digest_of(1)) == "#!/bin/sh\n");
  CHECK(disk.store().read_blob(digest_of(3)).error().code == ErrorCode::not_found);
}

TEST_CASE_TEMPLATE("a blob that is stored twice keeps its first content", Disk, STORES) {
  Disk disk;
  AppendBatch batch;
  batch.blobs = {{digest_of(1), "one"}, {digest_of(1), "twice in a batch"}};
  require_ok(disk.store().append(batch));
  batch.blobs = {{digest_of(1), "again"}, {digest_of(2), "two"}};
  require_ok(disk.store().append(batch));
  CHECK(disk.store().read_blob(digest_of(1)) == "one");
  CHECK(disk.store().read_blob(digest_of(2)) == "two");
  CHECK(disk.store().stats().blobs == 2);
  disk.reopen();
  CHECK(disk.store().has_blob(digest_of(2)));
  CHECK_FALSE(disk.store().has_blob(digest_of(3)));
  CHECK(disk.store().stats().blobs == 2);
}

TEST_CASE_TEMPLATE("a fold changes records, deletes, and moves `applied` in one step", Disk,
                   STORES) {
  Disk disk;
  AppendBatch batch = events_after(EventSeq{0}, 10);
  batch.specs = {{JobId{1}, "s1"}, {JobId{2}, "s2"}, {JobId{3}, "s3"}};
  batch.blobs = {{digest_of(1), "b1"}, {digest_of(2), "b2"}};
  require_ok(disk.store().append(batch));

  FoldBatch fold = fold_to(EventSeq{6});
  fold.records = {put(Table::meta, "epoch", "4"), put(Table::job_state, ordered_key(1), "queued"),
                  put(Table::job_state, ordered_key(2), "running")};
  require_ok(disk.store().fold(fold));
  disk.reopen();
  Image image = load_image(disk.store());
  CHECK(image.records.size() == 3);
  CHECK(image.events.size() == 4);
  CHECK(image.events.begin()->first == 7);

  fold = fold_to(EventSeq{10});
  fold.records = {{Table::job_state, ordered_key(1), std::nullopt},
                  put(Table::job_state, ordered_key(2), "finishing, and longer than before"),
                  {Table::job_state, ordered_key(77), std::nullopt}};
  fold.spec_deletes = {JobId{1}, JobId{77}};
  fold.blob_deletes = {digest_of(1), digest_of(1), digest_of(77)};
  require_ok(disk.store().fold(fold));
  disk.reopen();
  image = load_image(disk.store());
  CHECK(image.records == decltype(image.records){{{Table::meta, "epoch"}, "4"},
                                                 {{Table::job_state, ordered_key(2)},
                                                  "finishing, and longer than before"}});
  CHECK(image.specs == decltype(image.specs){{2, "s2"}, {3, "s3"}});
  CHECK(image.blobs == decltype(image.blobs){{digest_of(2), 2}});
  CHECK(image.events.empty());
  CHECK(disk.store().stats().applied == EventSeq{10});
  CHECK(disk.store().stats().last == EventSeq{10});
  require_ok(disk.store().append(events_after(EventSeq{10}, 1)));
}

TEST_CASE_TEMPLATE("a deleted blob can be stored again", Disk, STORES) {
  Disk disk;
  AppendBatch batch;
  batch.blobs = {{digest_of(1), "first"}};
  FoldBatch fold;
  fold.blob_deletes = {digest_of(1)};
  for (int i = 0; i < 3; ++i) {
    require_ok(disk.store().append(batch));
    require_ok(disk.store().fold(fold));
    CHECK_FALSE(disk.store().has_blob(digest_of(1)));
    disk.reopen();
  }
  require_ok(disk.store().append(batch));
  CHECK(disk.store().read_blob(digest_of(1)) == "first");
}

TEST_CASE_TEMPLATE("folded events are trimmed from the journal in bounded pieces", Disk, STORES) {
  Disk disk;
  constexpr std::uint64_t kEvents = 3 * kTrimPerTransaction - 100;
  require_ok(disk.store().append(events_after(EventSeq{0}, kEvents)));
  constexpr EventSeq kApplied{kEvents - 10};
  require_ok(disk.store().fold(fold_to(kApplied)));
  CHECK(disk.store().stats().journal_entries == kEvents - kTrimPerTransaction);
  // A folded event is not loaded, whether it is trimmed already or not.
  CHECK(load_image(disk.store()).events.size() == 10);
  disk.reopen();
  CHECK(load_image(disk.store()).events.size() == 10);
  int pieces = 0;
  for (Result<bool> more = true; *more; ++pieces) {
    more = disk.store().maintain();
    REQUIRE(more.has_value());
  }
  CHECK(pieces == 2);
  CHECK(disk.store().stats().journal_entries == 10);
  CHECK(load_image(disk.store()).events.begin()->first == kApplied.value() + 1);
  CHECK(disk.store().maintain() == false);
}

TEST_CASE_TEMPLATE("records are loaded by table, then by key as bytes", Disk, STORES) {
  Disk disk;
  FoldBatch fold;
  fold.records = {put(Table::job_state, ordered_key(255), "a"),
                  put(Table::job_state, ordered_key(256), "b"),
                  put(Table::job_state, ordered_key(1ULL << 40), "c"),
                  put(Table::node, Bytes(kMaxKeyBytes, 'n'), ""), put(Table::node, "n\xff", "d")};
  require_ok(disk.store().fold(fold));
  std::vector<Bytes> values;
  LoadVisitor visitor;
  visitor.record = [&](Table, std::string_view, std::string_view value) -> Result<void> {
    values.emplace_back(value);
    return {};
  };
  require_ok(disk.store().load(visitor));
  CHECK(values == std::vector<Bytes>{"a", "b", "c", "", "d"});
}

TEST_CASE_TEMPLATE("a visitor's error ends the load", Disk, STORES) {
  Disk disk;
  require_ok(disk.store().append(events_after(EventSeq{0}, 5)));
  int seen = 0;
  LoadVisitor visitor;
  visitor.event = [&](EventSeq, std::string_view) -> Result<void> {
    if (++seen == 3) return fail(ErrorCode::malformed, "event 3 is strange");
    return {};
  };
  auto loaded = disk.store().load(visitor);
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.error().message == "event 3 is strange");
  CHECK(seen == 3);
  CHECK(load_image(disk.store()).events.size() == 5);  // The store itself still works.
}

TEST_CASE("ordered keys sort as their numbers and give the numbers back") {
  CHECK(ordered_key(0x0102030405060708) == "\x01\x02\x03\x04\x05\x06\x07\x08");
  for (std::uint64_t n : {0ULL, 1ULL, 255ULL, 256ULL, ~0ULL})
    CHECK(ordered_key_value(ordered_key(n)) == n);
  CHECK(ordered_key(255) < ordered_key(256));
}

TEST_CASE("table numbers and names are permanent") {
  std::string listing;
  for (Table table : kTables)
    listing += fmt::format("{} {}\n", static_cast<int>(table), name_of(table));
  CHECK(listing ==
        "1 meta\n2 job_state\n3 node\n4 user_key\n5 node_key\n6 request\n7 partition\n8 usage\n"
        "9 document\n10 share\n11 reservation\n12 revision\n13 alert\n14 ledger\n15 increase\n"
        "16 posted\n"
        "17 trigger\n18 use\n19 secret\n20 service\n");
}

}  // namespace gantry::store
