// The planned faults of MemoryStore, on which the simulator relies.
#include <doctest/doctest.h>

#include "store_fixture.h"

namespace gantry::store {

TEST_CASE("a crash before the commit loses the whole batch, and one after it keeps all of it") {
  for (CrashPoint point : {CrashPoint::before_commit, CrashPoint::after_commit}) {
    MemoryStore store;
    require_ok(store.append(events_after(EventSeq{0}, 2)));
    store.crash_next_append(point);
    AppendBatch batch = events_after(EventSeq{2}, 3);
    batch.specs = {{JobId{1}, "spec"}};
    auto result = store.append(batch);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == ErrorCode::io_error);
    CHECK(store.poisoned());
    store.restart();
    bool durable = point == CrashPoint::after_commit;
    CHECK(load_image(store).events.size() == (durable ? 5 : 2));
    CHECK(load_image(store).specs.size() == (durable ? 1 : 0));
    require_ok(store.append(events_after(store.stats().last, 1)));
  }
}

TEST_CASE("after a crash in a fold, its records and `applied` are both there or both missing") {
  for (CrashPoint point : {CrashPoint::before_commit, CrashPoint::after_commit}) {
    MemoryStore store;
    require_ok(store.append(events_after(EventSeq{0}, 4)));
    store.crash_next_fold(point);
    FoldBatch fold = fold_to(EventSeq{3});
    fold.records = {put(Table::meta, "epoch", "1")};
    CHECK_FALSE(store.fold(fold).has_value());
    store.restart();
    Image image = load_image(store);
    bool durable = point == CrashPoint::after_commit;
    CHECK(image.records.size() == (durable ? 1 : 0));
    CHECK(image.events.begin()->first == (durable ? 4 : 1));
  }
}

TEST_CASE("after a failure everything is refused with the same error") {
  MemoryStore store;
  store.crash_next_append(CrashPoint::before_commit);
  Error first = store.append(events_after(EventSeq{0}, 1)).error();
  CHECK(store.append(events_after(EventSeq{0}, 1)).error().message == first.message);
  CHECK(store.fold({}).error().message == first.message);
  CHECK(store.maintain().error().message == first.message);
  CHECK(store.load({}).error().message == first.message);
  CHECK(store.read_spec(JobId{1}).error().message == first.message);
  CHECK(store.read_blob(digest_of(1)).error().message == first.message);
  CHECK(store.read_history({}).error().message == first.message);
}

TEST_CASE("a full simulated disk refuses, and works again once there is space") {
  MemoryStore store;
  store.limit_space(1000);
  EventSeq last{0};
  Result<void> result;
  while ((result = store.append(events_after(last, 1))).has_value()) last = store.stats().last;
  CHECK(result.error().code == ErrorCode::out_of_space);
  CHECK(last == EventSeq{13});  // Each event takes 72 bytes.
  store.restart();
  CHECK(store.append(events_after(last, 1)).error().code == ErrorCode::out_of_space);
  store.restart();
  require_ok(store.fold(fold_to(last)));  // Folding frees the space of the events.
  require_ok(store.append(events_after(last, 13)));
  CHECK(load_image(store).events.size() == 13);
}

TEST_CASE("space is counted exactly, so after all is deleted none is in use") {
  MemoryStore store;
  AppendBatch batch = events_after(EventSeq{0}, 5);
  batch.specs = {{JobId{1}, "one"}, {JobId{2}, "two"}};
  batch.blobs = {{digest_of(1), "blob"}};
  require_ok(store.append(batch));
  FoldBatch fold;
  fold.records = {put(Table::node, "n1", "up"), put(Table::node, "n2", "down")};
  require_ok(store.fold(fold));
  fold.records = {put(Table::node, "n1", "drained"), {Table::node, "n2", std::nullopt}};
  require_ok(store.fold(fold));
  fold.applied = EventSeq{5};
  fold.records = {{Table::node, "n1", std::nullopt}};
  fold.spec_deletes = {JobId{1}, JobId{2}};
  fold.blob_deletes = {digest_of(1)};
  require_ok(store.fold(fold));
  CHECK(store.stats().used_bytes == 0);
}

TEST_CASE("with keep_everything, folded events and deleted specs can still be read") {
  MemoryStore store({.keep_everything = true});
  AppendBatch batch = events_after(EventSeq{0}, 5);
  batch.specs = {{JobId{1}, "one"}};
  require_ok(store.append(batch));
  FoldBatch fold = fold_to(EventSeq{5});
  fold.spec_deletes = {JobId{1}};
  require_ok(store.fold(fold));
  REQUIRE(store.every_event().size() == 5);
  CHECK(store.every_event()[4].data == event_data(5));
  REQUIRE(store.every_spec().size() == 1);
  CHECK(load_image(store) == Image{});
}

}  // namespace gantry::store
