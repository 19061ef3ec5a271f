// A bug of the caller stops the controller before anything is written. Each misuse here aborts with
// both implementations, and leaves the directory as it was.
#include <doctest/doctest.h>

#include "child.h"
#include "store_fixture.h"

namespace gantry::store {

namespace {

struct Misuse {
  const char* what;
  std::function<void(Store&)> act;
};

AppendBatch specs(std::vector<std::uint64_t> ids) {
  AppendBatch batch;
  for (std::uint64_t id : ids) batch.specs.emplace_back(JobId{id}, "spec");
  return batch;
}

FoldBatch records(std::vector<RecordChange> changes) {
  FoldBatch fold;
  fold.applied = EventSeq{2};
  fold.records = std::move(changes);
  return fold;
}

const std::vector<Misuse>& misuses() {
  static const std::vector<Misuse> list{
      {"a gap", [](Store& s) { (void)s.append(events_after(EventSeq{6}, 1)); }},
      {"an event again", [](Store& s) { (void)s.append(events_after(EventSeq{4}, 1)); }},
      {"a gap in the batch",
       [](Store& s) {
         AppendBatch batch = events_after(EventSeq{5}, 3);
         batch.events[2].seq = EventSeq{9};
         (void)s.append(batch);
       }},
      {"a lower job id", [](Store& s) { (void)s.append(specs({7})); }},
      {"the same job id", [](Store& s) { (void)s.append(specs({8})); }},
      {"job ids that do not ascend",
       [](Store& s) {
         (void)s.append(specs({12, 11}));
       }},
      {"a fold back", [](Store& s) { (void)s.fold(fold_to(EventSeq{1})); }},
      {"a fold beyond the journal", [](Store& s) { (void)s.fold(fold_to(EventSeq{6})); }},
      {"an empty key", [](Store& s) { (void)s.fold(records({put(Table::node, "", "v")})); }},
      {"a long key",
       [](Store& s) { (void)s.fold(records({put(Table::node, Bytes(501, 'k'), "v")})); }},
      {"records out of order",
       [](Store& s) {
         (void)s.fold(records({put(Table::node, "b", ""), put(Table::node, "a", "")}));
       }},
      {"a record twice",
       [](Store& s) {
         (void)s.fold(records({put(Table::node, "a", ""), put(Table::node, "a", "")}));
       }},
      {"tables out of order",
       [](Store& s) {
         (void)s.fold(records({put(Table::node, "a", ""), put(Table::meta, "a", "")}));
       }},
      {"a page of no records",
       [](Store& s) {
         HistoryScan scan;
         scan.limit = 0;
         (void)s.read_history(scan);
       }},
  };
  return list;
}

void prepare(Store& store) {
  AppendBatch batch = events_after(EventSeq{0}, 5);
  batch.specs = {{JobId{8}, "spec"}};
  require_ok(store.append(batch));
  require_ok(store.fold(fold_to(EventSeq{2})));
}

}  // namespace

TEST_CASE("each misuse of the store fails an assertion and writes nothing") {
  TempDirectory directory;
  LmdbOptions options;
  options.directory = directory.path() + "/state";
  {
    auto store = LmdbStore::open(options);
    REQUIRE(store.has_value());
    prepare(**store);
  }
  for (const Misuse& misuse : misuses()) {
    CAPTURE(misuse.what);
    Child on_disk([&](int report) {
      ::dup2(report, STDERR_FILENO);
      auto store = LmdbStore::open(options);
      if (!store) return 1;
      misuse.act(**store);
      return 0;
    });
    ChildEnd end = on_disk.wait();
    CHECK(end.signal == SIGABRT);
    CHECK(end.report.find("assertion failed") != std::string::npos);

    Child in_memory([&](int report) {
      ::dup2(report, STDERR_FILENO);
      MemoryStore store;
      prepare(store);
      misuse.act(store);
      return 0;
    });
    CHECK(in_memory.wait().signal == SIGABRT);
  }
  auto store = LmdbStore::open(options);
  REQUIRE(store.has_value());
  CHECK((*store)->stats().last == EventSeq{5});
  CHECK(load_image(**store).events.size() == 3);
}

}  // namespace gantry::store
