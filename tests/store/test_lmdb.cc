// Properties that only the store on disk has: its lock and format, a map that grows beside readers,
// space that is used again, compaction, and readers that die.
#include <doctest/doctest.h>
#include <lmdb.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "child.h"
#include "ctld/store/checksum.h"
#include "store_fixture.h"

namespace gantry::store {

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::uint64_t file_size(const LmdbDisk& disk) {
  return std::filesystem::file_size(disk.options.directory + "/data.mdb");
}

FoldBatch history_of(std::uint64_t first_job, std::size_t count, std::size_t size) {
  FoldBatch fold;
  for (std::uint64_t job = first_job; job < first_job + count; ++job)
    fold.history.push_back({Instant{static_cast<std::int64_t>(job * 1000)}, JobId{job},
                            std::nullopt, Bytes(size, 'h')});
  return fold;
}

void trim_all(Store& store) {
  for (;;) {
    auto more = store.maintain();
    REQUIRE(more.has_value());
    if (!*more) return;
  }
}

// Reads the whole history again and again until it is told to stop, and counts the passes.
class BusyReader {
 public:
  explicit BusyReader(const Store& store) : thread_([this, &store] { run(store); }) {}
  ~BusyReader() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] int passes() const { return passes_; }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  void run(const Store& store) {
    while (!stop_) {
      HistoryScan scan;
      scan.limit = 500;
      do {
        auto page = store.read_history(scan);
        if (!page) {
          failed_ = true;
          return;
        }
        for (const HistoryEntry& entry : page->entries)
          if (entry.data.find_first_not_of('h') != Bytes::npos) failed_ = true;
        scan.resume = page->resume;
      } while (scan.resume && !stop_);
      ++passes_;
    }
  }
  std::atomic<bool> stop_ = false;
  std::atomic<bool> failed_ = false;
  std::atomic<int> passes_ = 0;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a directory belongs to one controller") {
  LmdbDisk disk;
  auto second = LmdbStore::open(disk.options);
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code == ErrorCode::already_exists);
  CHECK(second.error().message.find(fmt::format("process {}", ::getpid())) != std::string::npos);
  Child other([&](int) { return LmdbStore::open(disk.options).has_value() ? 0 : 1; });
  CHECK(other.wait().exit_code == 1);
  disk.reopen();  // Closing the store releases the lock.
}

TEST_CASE("only the owner can read the state") {
  LmdbDisk disk;
  struct stat st {};
  REQUIRE(::stat(disk.options.directory.c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0700);
  REQUIRE(::stat((disk.options.directory + "/data.mdb").c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
}

TEST_CASE("a directory that cannot be made, or holds another file, gives a clear error") {
  TempDirectory directory;
  LmdbOptions options;
  options.directory = directory.path() + "/no/such/parent";
  auto opened = LmdbStore::open(options);
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().message.find(options.directory) != std::string::npos);

  options.directory = directory.path();
  FILE* f = std::fopen((directory.path() + "/data.mdb").c_str(), "w");
  REQUIRE(f != nullptr);
  for (int i = 0; i < 10'000; ++i) std::fputs("not a database", f);
  std::fclose(f);
  opened = LmdbStore::open(options);
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().code == ErrorCode::malformed);
  CHECK(opened.error().message.find("damaged") != std::string::npos);
}

TEST_CASE("a creation that was cut off is begun anew") {
  TempDirectory directory;
  LmdbOptions options;
  options.directory = directory.path();
  std::filesystem::create_directory(directory.path() + "/create.tmp");
  std::FILE* f = std::fopen((directory.path() + "/create.tmp/data.mdb").c_str(), "w");
  REQUIRE(f != nullptr);
  std::fputs("half a page", f);
  std::fclose(f);
  auto store = LmdbStore::open(options);
  REQUIRE(store.has_value());
  require_ok((*store)->append(events_after(EventSeq{0}, 1)));
  CHECK_FALSE(std::filesystem::exists(directory.path() + "/create.tmp"));
}

TEST_CASE("a newer format is refused and left alone") {
  LmdbDisk disk;
  require_ok(disk.store().append(events_after(EventSeq{0}, 3)));
  disk.lmdb.reset();
  auto set_format = [&](std::uint64_t format) {
    MDB_env* env = nullptr;
    MDB_txn* txn = nullptr;
    MDB_dbi dbi = 0;
    REQUIRE(mdb_env_create(&env) == 0);
    REQUIRE(mdb_env_set_maxdbs(env, 32) == 0);
    REQUIRE(mdb_env_open(env, disk.options.directory.c_str(), 0, 0600) == 0);
    REQUIRE(mdb_txn_begin(env, nullptr, 0, &txn) == 0);
    REQUIRE(mdb_dbi_open(txn, "store", 0, &dbi) == 0);
    MDB_val key{6, const_cast<char*>("format")};
    MDB_val value{sizeof format, &format};
    REQUIRE(mdb_put(txn, dbi, &key, &value, 0) == 0);
    std::uint64_t seal = xxh64({reinterpret_cast<const char*>(&format), sizeof format},
                               xxh64("format", xxh64("store", 0)));
    key = {11, const_cast<char*>("format-seal")};
    value = {sizeof seal, &seal};
    REQUIRE(mdb_put(txn, dbi, &key, &value, 0) == 0);
    REQUIRE(mdb_txn_commit(txn) == 0);
    mdb_env_close(env);
  };
  set_format(kFormatVersion + 1);
  auto opened = LmdbStore::open(disk.options);
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().code == ErrorCode::version_mismatch);
  CHECK(opened.error().message.find("newer") != std::string::npos);
  set_format(kFormatVersion);
  disk.open();
  CHECK(load_image(disk.store()).events.size() == 3);
}

TEST_CASE("the map grows while the history is being read") {
  LmdbDisk disk;
  disk.options.map_bytes = kMiB;
  disk.lmdb.reset();
  std::filesystem::remove_all(disk.options.directory);
  disk.open();
  require_ok(disk.store().fold(history_of(1, 1000, 200)));
  {
    BusyReader reader(disk.store());
    EventSeq last{0};
    for (int i = 0; i < 200; ++i, last = disk.store().stats().last)
      require_ok(disk.store().append(events_after(last, 500, 1000)));
    while (reader.passes() < 2) std::this_thread::yield();
    CHECK_FALSE(reader.failed());
  }
  CHECK(disk.store().stats().map_growths >= 6);
  Image image = load_image(disk.store());
  CHECK(image.events.size() == 100'000);
  for (std::uint64_t seq : {1, 49'999, 100'000}) CHECK(image.events[seq] == event_data(seq, 1000));
  disk.reopen();  // The file is now larger than the configured map.
  CHECK(load_image(disk.store()) == image);
  require_ok(disk.store().append(events_after(EventSeq{100'000}, 5000, 1000)));
}

TEST_CASE("an append that meets a full map is repeated in full") {
  LmdbDisk disk;
  disk.options.map_bytes = kMiB;
  disk.reopen();
  AppendBatch batch = events_after(EventSeq{0}, 1000, 500);
  for (std::uint64_t n = 1; n <= 100; ++n) {
    batch.specs.emplace_back(JobId{n}, Bytes(900, 's'));
    batch.blobs.emplace_back(digest_of(n), Bytes(40'000, static_cast<char>('a' + n % 26)));
  }
  require_ok(disk.store().append(batch));
  CHECK(disk.store().stats().map_growths >= 2);
  disk.reopen();
  Image image = load_image(disk.store());
  CHECK(image.events.size() == 1000);
  CHECK(image.specs.size() == 100);
  CHECK(image.blobs.size() == 100);
  for (std::uint64_t n = 1; n <= 100; ++n)
    CHECK(disk.store().read_blob(digest_of(n)) == Bytes(40'000, static_cast<char>('a' + n % 26)));
}

TEST_CASE("a fold that meets a full map is repeated in full") {
  LmdbDisk disk;
  disk.options.map_bytes = kMiB;
  disk.reopen();
  AppendBatch batch = events_after(EventSeq{0}, 5000);
  batch.blobs = {{digest_of(1), Bytes(3000, 'b')}};
  for (std::uint64_t job = 1; job <= 200; ++job)
    batch.specs.emplace_back(JobId{job}, Bytes(900, 's'));
  require_ok(disk.store().append(batch));
  FoldBatch fold = history_of(1, 20'000, 300);
  fold.applied = EventSeq{5000};
  fold.records = {put(Table::meta, "epoch", "1")};
  for (std::uint64_t job = 1; job <= 100; ++job) fold.spec_deletes.push_back(JobId{job});
  fold.blob_deletes = {digest_of(1)};
  require_ok(disk.store().fold(fold));
  CHECK(disk.store().stats().map_growths >= 3);
  disk.reopen();
  CHECK(disk.store().stats().history == 20'000);
  CHECK(disk.store().stats().specs == 100);
  CHECK(disk.store().stats().blobs == 0);
  CHECK(load_image(disk.store()).records.size() == 1);
}

TEST_CASE("when the map may grow no further, the store fails with a message that says so") {
  LmdbDisk disk;
  disk.options.map_bytes = kMiB;
  disk.options.max_map_bytes = 4 * kMiB;
  disk.reopen();
  EventSeq last{0};
  Result<void> result;
  while ((result = disk.store().append(events_after(last, 500, 1000))).has_value())
    last = disk.store().stats().last;
  CHECK(result.error().code == ErrorCode::out_of_space);
  CHECK(result.error().message.find(disk.options.directory + "/data.mdb") != std::string::npos);
  CHECK(result.error().message.find("largest map size of 4 MiB") != std::string::npos);
  CHECK(disk.store().append(events_after(last, 1)).error().message == result.error().message);
  CHECK(disk.store().read_history({}).error().message == result.error().message);
  disk.reopen();
  CHECK(disk.store().stats().last == last);
  CHECK(load_image(disk.store()).events.size() == last.value());
}

TEST_CASE("appending, folding and trimming for long keeps the file small") {
  LmdbDisk disk;
  EventSeq last{0};
  std::uint64_t settled = 0;
  for (int turn = 0; turn < 60; ++turn) {
    require_ok(disk.store().append(events_after(last, 2000, 1000)));
    last = disk.store().stats().last;
    require_ok(disk.store().fold(fold_to(last)));
    trim_all(disk.store());
    if (turn == 10) settled = file_size(disk);
  }
  CHECK(file_size(disk) <= settled + settled / 4);
  CHECK(file_size(disk) < 16 * kMiB);  // 120 MB were written in total.
}

TEST_CASE("a reader that reads in pages does not keep freed pages from being used again") {
  LmdbDisk disk;
  require_ok(disk.store().fold(history_of(1, 20'000, 300)));
  std::vector<RecordChange> records;
  for (std::uint64_t job = 0; job < 2000; ++job)
    records.push_back(put(Table::job_state, ordered_key(job), Bytes(500, 'r')));
  auto rewrite = [&](int times) {
    for (int i = 0; i < times; ++i) {
      FoldBatch fold;
      fold.records = records;
      for (RecordChange& change : fold.records)
        (*change.value)[0] = static_cast<char>('a' + i % 26);
      require_ok(disk.store().fold(fold));
    }
  };
  rewrite(20);
  std::uint64_t alone = file_size(disk);
  {
    BusyReader reader(disk.store());
    // This rewrites 200 MB. All of it would stay in the file if a reader held the old pages.
    rewrite(200);
    CHECK_FALSE(reader.failed());
    CHECK(reader.passes() > 0);
  }
  CHECK(file_size(disk) < alone + 24 * kMiB);
}

TEST_CASE("a file that is mostly free is compacted at open") {
  LmdbDisk disk;
  disk.options.compact_from_bytes = kMiB;
  AppendBatch batch = events_after(EventSeq{0}, 30'000, 1000);
  batch.specs = {{JobId{3}, "kept"}};
  batch.blobs = {{digest_of(1), "kept as well"}};
  require_ok(disk.store().append(batch));
  FoldBatch fold = history_of(1, 500, 300);
  fold.applied = EventSeq{29'000};
  fold.records = {put(Table::meta, "epoch", "7")};
  require_ok(disk.store().fold(fold));
  trim_all(disk.store());
  Image before = load_image(disk.store());
  std::uint64_t large = file_size(disk);

  // An earlier compaction was cut off.
  std::filesystem::create_directory(disk.options.directory + "/compact.tmp");
  std::FILE* f = std::fopen((disk.options.directory + "/compact.tmp/data.mdb").c_str(), "w");
  REQUIRE(f != nullptr);
  std::fclose(f);
  disk.reopen();
  CHECK(file_size(disk) < large / 4);
  CHECK_FALSE(std::filesystem::exists(disk.options.directory + "/compact.tmp"));
  CHECK(load_image(disk.store()) == before);
  CHECK(disk.store().stats().history == 500);
  CHECK(disk.store().read_blob(digest_of(1)) == "kept as well");
  require_ok(disk.store().append(events_after(EventSeq{30'000}, 10)));

  std::uint64_t small = file_size(disk);
  disk.reopen();  // The file is mostly used now, so it is left alone.
  CHECK(file_size(disk) == small);
  CHECK(load_image(disk.store()).events.size() == 1010);
}

TEST_CASE("a compaction killed at any moment leaves the state intact") {
  LmdbDisk disk;
  require_ok(disk.store().append(events_after(EventSeq{0}, 30'000, 1000)));
  require_ok(disk.store().fold(fold_to(EventSeq{29'000})));
  trim_all(disk.store());
  Image before = load_image(disk.store());
  disk.lmdb.reset();
  std::filesystem::path original = disk.directory.path() + "/original.mdb";
  std::filesystem::path data = disk.options.directory + "/data.mdb";
  std::filesystem::copy_file(data, original);
  std::filesystem::path compacted = disk.options.directory + "/compact.tmp/data.mdb";
  for (int round = 0; round < 15; ++round) {
    std::filesystem::remove(data);
    std::filesystem::copy_file(original, data);
    disk.options.compact_from_bytes = kMiB;
    Child child([&](int report) {
      say(report, "go");
      auto store = LmdbStore::open(disk.options);
      return store.has_value() ? 0 : 1;
    });
    char go[2];
    REQUIRE(::read(child.report(), go, 2) == 2);
    child.watch(std::chrono::microseconds(round * 1500));
    child.kill();
    child.wait();
    disk.options.compact_from_bytes = ~0ULL;
    disk.open();
    CHECK(load_image(disk.store()) == before);
    disk.lmdb.reset();
    CHECK_FALSE(std::filesystem::exists(compacted));
  }
}

TEST_CASE("the reader slot of a dead process is freed at open") {
  LmdbDisk disk;
  require_ok(disk.store().append(events_after(EventSeq{0}, 10)));
  // Two other processes have the file open, as mdb_stat may. One keeps LMDB's reader table alive,
  // the other is killed in the middle of a read. They are forked while this process has the file
  // closed; see LmdbEnv.
  std::string directory = disk.options.directory;
  auto open_and_wait = [&](int report, bool read) {
    MDB_env* env = nullptr;
    MDB_txn* txn = nullptr;
    if (mdb_env_create(&env) != 0 || mdb_env_set_mapsize(env, 64ULL << 30) != 0 ||
        mdb_env_open(env, directory.c_str(), MDB_RDONLY, 0600) != 0 ||
        (read && mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn) != 0))
      return 1;
    say(report, "ready");
    ::pause();
    return 0;
  };
  disk.lmdb.reset();
  Child lives([&](int report) { return open_and_wait(report, false); });
  Child dies([&](int report) { return open_and_wait(report, true); });
  char ready[5];
  REQUIRE(::read(lives.report(), ready, 5) == 5);
  REQUIRE(::read(dies.report(), ready, 5) == 5);
  dies.kill();
  dies.wait();
  auto rewrite = [&] {
    for (int i = 0; i < 50; ++i) {
      FoldBatch fold = fold_to(disk.store().stats().last);
      for (std::uint64_t job = 0; job < 500; ++job)
        fold.records.push_back(put(Table::job_state, ordered_key(job), Bytes(1000, 'r')));
      require_ok(disk.store().fold(fold));
    }
  };
  disk.open();
  rewrite();
  // 25 MB were written, and the slot of the dead reader would have kept them all.
  CHECK(file_size(disk) < 8 * kMiB);
}

}  // namespace gantry::store
