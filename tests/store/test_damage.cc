// Damage to the file. For thousands of places, a changed byte or bit is either reported or makes no
// difference. A file that is cut off is reported. A store from before checksums gets them when it
// is opened.
#include <doctest/doctest.h>
#include <lmdb.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <random>
#include <thread>

#include "child.h"
#include "ctld/store/checksum.h"
#include "ctld/store/fault_guard.h"
#include "ctld/store/scrubber.h"
#include "store_fixture.h"

namespace gantry::store {

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

Result<void> read_all_history(const Store& store, std::optional<JobId> id, std::string& out) {
  HistoryScan scan;
  scan.id = id;
  do {
    ASSIGN(page, store.read_history(scan));
    for (const HistoryEntry& entry : page->entries)
      out += fmt::format("h {} {} {}\n", entry.end.us, entry.job.value(), entry.data);
    scan.resume = page->resume;
  } while (scan.resume);
  return {};
}

// Everything that can be read from a store, as one text.
Result<std::string> read_everything(const LmdbOptions& options) {
  ASSIGN(opened, LmdbStore::open(options));
  const LmdbStore& store = **opened;
  std::string out;
  std::vector<Digest> blobs;
  LoadVisitor visitor;
  visitor.record = [&](Table table, std::string_view key, std::string_view value) -> Result<void> {
    out += fmt::format("r {} {} {}\n", name_of(table), key, value);
    return {};
  };
  visitor.spec = [&](JobId job, std::string_view spec) -> Result<void> {
    out += fmt::format("s {} {}\n", job.value(), spec);
    return {};
  };
  visitor.blob = [&](const Digest& digest, std::size_t size) -> Result<void> {
    blobs.push_back(digest);
    out += fmt::format("b {}\n", size);
    return {};
  };
  visitor.event = [&](EventSeq seq, std::string_view data) -> Result<void> {
    out += fmt::format("e {} {}\n", seq.value(), data);
    return {};
  };
  TRY(store.load(visitor));
  for (const Digest& digest : blobs) {
    ASSIGN(blob, store.read_blob(digest));
    out += *blob;
  }
  for (std::uint64_t job = 1; job <= 20; ++job)
    if (auto spec = store.read_spec(JobId{job}))
      out += *spec;
    else if (spec.error().code != ErrorCode::not_found)
      return tl::unexpected(spec.error());
  TRY(read_all_history(store, std::nullopt, out));
  for (std::uint64_t job : {7, 5000}) TRY(read_all_history(store, JobId{job}, out));
  const Stats stats = store.stats();
  out += fmt::format("last {} applied {}", stats.last.value(), stats.applied.value());
  return out;
}

// A small store that has all kinds of pages: branch pages, overflow pages and a free list.
struct SmallStore {
  SmallStore() {
    LmdbOptions& options = disk.options;
    options.map_bytes = 16 << 20;
    disk.reopen();
    EventSeq last{0};
    for (std::uint64_t turn = 0; turn < 12; ++turn) {
      AppendBatch batch = events_after(last, 15, 100);
      batch.specs.emplace_back(JobId{turn + 1}, Bytes(300, static_cast<char>('a' + turn)));
      if (turn % 4 == 0) batch.specs.back().second.resize(6000, 'z');
      batch.blobs = {{digest_of(turn), Bytes(200 * turn + 9, static_cast<char>('A' + turn))}};
      require_ok(disk.store().append(batch));
      last = disk.store().stats().last;
      FoldBatch fold = fold_to(EventSeq{last.value() - 5});
      fold.records = {put(Table::meta, "controller", fmt::format("meta {}", turn))};
      for (std::uint64_t job = 0; job < 8; ++job)
        fold.records.push_back(put(Table::job_state, ordered_key(job * 3 + turn), Bytes(120, 'j')));
      fold.records.push_back(put(Table::node, fmt::format("node{}", turn), "a node"));
      for (std::uint64_t job = 1; job <= 6; ++job)
        fold.history.push_back({Instant{static_cast<std::int64_t>(turn * 1000 + job)},
                                JobId{job + turn}, JobId{5000},
                                fmt::format("ended {} {}", turn, job)});
      require_ok(disk.store().fold(fold));
    }
    disk.lmdb.reset();
    path = disk.options.directory + "/data.mdb";
    whole = read_file(path);
    const auto everything = read_everything(disk.options);
    REQUIRE(everything.has_value());
    content = *everything;
  }
  LmdbDisk disk;
  std::string path;
  std::string whole;    // the bytes of the file
  std::string content;  // the result of read_everything()
};

bool is_said(const Error& error, const std::string& path) {
  const bool code = error.code == ErrorCode::malformed || error.code == ErrorCode::version_mismatch;
  return code && error.message.find(path) != std::string::npos;
}

struct Outcome {
  int said = 0;
  int same = 0;
};

// Returns what is wrong when the store is read from a file with these `bytes`; "" if nothing is.
std::string judge(const SmallStore& small, std::string_view bytes, Outcome& outcome) {
  write_file(small.path, bytes);
  const auto read = read_everything(small.disk.options);
  if (read) {
    ++outcome.same;
    return *read == small.content ? "" : "other content was read, and nothing was said";
  }
  ++outcome.said;
  return is_said(read.error(), small.path) ? "" : read.error().message;
}

}  // namespace

TEST_CASE("the checksum is XXH64") {
  // The values are test vectors of the specification and the reference implementation.
  CHECK(xxh64("", 0) == 0xEF46DB3751D8E999ULL);
  CHECK(xxh64("a", 0) == 0xD24EC4F1A98C6E5BULL);
  CHECK(xxh64("abc", 0) == 0x44BC2CF5AD770999ULL);
  CHECK(xxh64("Nobody inspects the spammish repetition", 0) == 0xFBCEA83C8A378BF1ULL);
}

TEST_CASE("a changed byte anywhere in the file is reported or makes no difference") {
  SmallStore small;
  constexpr int kPlaces = 6000;
  Child child([&](int report) {
    ::alarm(240);
    std::mt19937_64 random(7);
    Outcome outcome;
    for (int i = 0; i < kPlaces; ++i) {
      std::string bytes = small.whole;
      // One change of eight hits the start of the first two pages, where each byte counts most. One
      // change of four alters a whole byte, and the others alter one bit.
      const std::size_t at =
          i % 8 == 0 ? random() % 300 + (random() % 2) * 4096 : random() % bytes.size();
      const auto by = i % 4 == 0 ? 1 + random() % 255 : 1ULL << random() % 8;
      bytes[at] = static_cast<char>(static_cast<std::uint8_t>(bytes[at]) ^ by);
      say(report, fmt::format("\n{} ^ {:#x}: ", at, by));
      if (const std::string wrong = judge(small, bytes, outcome); !wrong.empty()) {
        say(report, wrong);
        return 1;
      }
    }
    say(report, fmt::format("\n{} said, {} the same", outcome.said, outcome.same));
    return outcome.said > kPlaces / 6 && outcome.same > 100 ? 0 : 2;
  });
  const ChildEnd end = child.wait();
  INFO(end.report.substr(end.report.size() > 300 ? end.report.size() - 300 : 0));
  CHECK(end.signal == 0);
  CHECK(end.exit_code == 0);
  MESSAGE(end.report.substr(end.report.rfind('\n') + 1));
}

TEST_CASE("a page with other content, zeros or a bad sector is reported or makes no difference") {
  SmallStore small;
  Outcome outcome;
  std::mt19937_64 random(11);
  const std::size_t pages = small.whole.size() / 4096;
  for (int i = 0; i < 600; ++i) {
    std::string bytes = small.whole;
    const std::size_t a = random() % pages;
    const std::size_t b = random() % pages;
    if (i % 3 == 0) bytes.replace(a * 4096, 4096, small.whole, b * 4096, 4096);
    if (i % 3 == 1) std::memset(bytes.data() + a * 4096, 0, 4096);
    if (i % 3 == 2) std::memset(bytes.data() + a * 4096 + 512 * (random() % 8), 0xff, 512);
    const std::string wrong = judge(small, bytes, outcome);
    INFO("way ", i % 3, " page ", a, " from ", b);
    REQUIRE(wrong == "");
  }
  CHECK(outcome.said > 200);
}

TEST_CASE("a file that was cut off is reported, wherever the cut is") {
  SmallStore small;
  Outcome outcome;
  for (std::size_t bytes = 0; bytes < small.whole.size();
       bytes += bytes % 4096 == 0 ? 2049 : 2047) {
    INFO(bytes, " octets are left");
    REQUIRE(judge(small, small.whole.substr(0, bytes), outcome) == "");
  }
  CHECK(outcome.said >= 20);
}

TEST_CASE("a file that is cut off while it is open ends the process with a message") {
  SmallStore small;
  write_file(small.path, small.whole);
  Child child([&](int report) {
    ::dup2(report, STDERR_FILENO);
    say_store_faults("gantry-ctld");
    auto store = LmdbStore::open(small.disk.options);
    if (!store || ::truncate(small.path.c_str(), 8192) != 0) return 1;
    std::string out;
    return read_all_history(**store, std::nullopt, out) ? 2 : 3;
  });
  const ChildEnd end = child.wait();
  CHECK(end.exit_code == kDamagedExit);
  INFO(end.report);
  CHECK(end.report.starts_with("gantry-ctld: " + small.path + " cannot be read at octet "));
  CHECK(end.report.ends_with("then restore the file from a copy (docs/store.md)\n"));
}

TEST_CASE("checking a closed store names what is damaged and changes nothing") {
  SmallStore small;
  write_file(small.path, small.whole);
  auto report = check_store(small.disk.options.directory);
  REQUIRE(report.has_value());
  CHECK(report->damaged.empty());
  CHECK(report->entries > 200);
  CHECK(read_file(small.path) == small.whole);
  std::string bytes = small.whole;
  for (std::size_t at = 0; (at = bytes.find("ended 3 ", at)) != std::string::npos; ++at)
    bytes[at] = 'E';
  write_file(small.path, bytes);
  report = check_store(small.disk.options.directory);
  REQUIRE(report.has_value());
  CHECK(report->damaged.size() == 6);
  CHECK(report->damaged.front().find("the entry of job 4, ended at 3001 us of table history") !=
        std::string::npos);
  CHECK(read_file(small.path) == bytes);
  CHECK(check_store("/nowhere").error().code == ErrorCode::io_error);
}

TEST_CASE("a scrub in pieces beside a writer finds the same as a scrub in one piece") {
  SmallStore small;
  write_file(small.path, small.whole);
  small.disk.open();
  ScrubAt all;
  const auto whole = small.disk.lmdb->scrub(all, ~0ULL);
  REQUIRE(whole.has_value());
  CHECK(whole->end);
  CHECK(whole->damaged.empty());
  ScrubAt at;
  std::uint64_t entries = 0;
  for (bool end = false; !end;) {
    const auto piece = small.disk.lmdb->scrub(at, 100);
    REQUIRE(piece.has_value());
    entries += piece->entries;
    end = piece->end;
  }
  CHECK(entries == whole->entries);
  small.disk.lmdb.reset();
}

TEST_CASE("the background scrub finds damaged entries that were never read, and goes on") {
  SmallStore small;
  std::string bytes = small.whole;
  for (std::size_t at = 0; (at = bytes.find("ended 3 ", at)) != std::string::npos; ++at)
    bytes[at] = 'E';
  write_file(small.path, bytes);
  small.disk.open();  // Opening does not read the history.
  std::mutex mutex;
  std::vector<std::string> said;
  {
    Scrubber scrubber(
        *small.disk.lmdb,
        {.octets = 500, .pause = std::chrono::milliseconds(0), .between = std::chrono::minutes(0)},
        [&](std::string sentence) {
          std::lock_guard guard(mutex);
          said.push_back(std::move(sentence));
        });
    while (scrubber.status().passes < 3) std::this_thread::yield();
    CHECK(scrubber.status().damaged == 6);
  }
  CHECK(said.size() >= 18);
  CHECK(said.front().find("the entry of job 4, ended at 3001 us of table history") !=
        std::string::npos);
  small.disk.lmdb.reset();
}

TEST_CASE("the message about damage names the file, the table and the entry") {
  SmallStore small;
  std::string bytes = small.whole;
  // The damage hits the value of the newest meta record, whose page is in use.
  for (std::size_t at = 0; (at = bytes.find("meta 11", at)) != std::string::npos; ++at)
    bytes[at] = 'M';
  write_file(small.path, bytes);
  const auto read = read_everything(small.disk.options);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().code == ErrorCode::malformed);
  CHECK(read.error().message ==
        small.path +
            " is damaged: the entry \"controller\" of table t.meta does not have its checksum; "
            "check the disk, then restore the state directory from a copy (docs/store.md)");
}

TEST_CASE("a value under another key is reported") {
  SmallStore small;
  // The key of one node is changed, while its value stays as it was.
  std::string bytes = small.whole;
  const auto swap = [&](std::string_view a, std::string_view b) {
    for (std::size_t at = 0; (at = bytes.find(a, at)) != std::string::npos; ++at)
      bytes.replace(at, a.size(), b);
  };
  swap("node10", "node1x");
  write_file(small.path, bytes);
  const auto read = read_everything(small.disk.options);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().code == ErrorCode::malformed);
}

namespace {

// Turns the store in `directory` into one of format 6, which had no checksums.
void take_seals_off(const std::string& directory) {
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  REQUIRE(mdb_env_create(&env) == 0);
  REQUIRE(mdb_env_set_maxdbs(env, 40) == 0);
  REQUIRE(mdb_env_set_mapsize(env, 64 << 20) == 0);
  REQUIRE(mdb_env_open(env, directory.c_str(), 0, 0600) == 0);
  REQUIRE(mdb_txn_begin(env, nullptr, 0, &txn) == 0);
  std::vector<std::string> names{"store", "journal", "specs", "blobs", "history", "history_index"};
  for (Table table : kTables) names.push_back("t." + std::string(name_of(table)));
  for (const std::string& name : names) {
    MDB_dbi dbi = 0;
    REQUIRE(mdb_dbi_open(txn, name.c_str(), 0, &dbi) == 0);
    MDB_cursor* cursor = nullptr;
    REQUIRE(mdb_cursor_open(txn, dbi, &cursor) == 0);
    std::vector<std::pair<std::string, std::string>> entries;
    MDB_val key{};
    MDB_val value{};
    const auto text = [](const MDB_val& v) {
      return std::string(static_cast<const char*>(v.mv_data), v.mv_size);
    };
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
      entries.emplace_back(text(key), text(value));
    mdb_cursor_close(cursor);
    for (auto& [k, v] : entries) {
      key = {k.size(), k.data()};
      if (k == "format-seal") {
        REQUIRE(mdb_del(txn, dbi, &key, nullptr) == 0);
        continue;
      }
      if (k == "format")
        v[0] = 6;
      else
        v.resize(v.size() - 8);
      value = {v.size(), v.data()};
      REQUIRE(mdb_put(txn, dbi, &key, &value, 0) == 0);
    }
  }
  REQUIRE(mdb_txn_commit(txn) == 0);
  mdb_env_close(env);
}

}  // namespace

TEST_CASE("a store from before checksums gets them when it is opened") {
  SmallStore small;
  write_file(small.path, small.whole);
  take_seals_off(small.disk.options.directory);
  // An earlier upgrade was cut off.
  std::filesystem::create_directory(small.disk.options.directory + "/upgrade.tmp");
  CHECK(read_everything(small.disk.options) == small.content);
  CHECK_FALSE(std::filesystem::exists(small.disk.options.directory + "/upgrade.tmp"));
  CHECK(read_file(small.path).find("format-seal") != std::string::npos);
  CHECK(read_everything(small.disk.options) == small.content);
}

TEST_CASE("an upgrade that is killed leaves the store intact") {
  SmallStore small;
  write_file(small.path, small.whole);
  take_seals_off(small.disk.options.directory);
  const std::string old = read_file(small.path);
  for (int round = 0; round < 12; ++round) {
    write_file(small.path, old);
    Child child([&](int report) {
      say(report, "go");
      return LmdbStore::open(small.disk.options).has_value() ? 0 : 1;
    });
    char go[2];
    REQUIRE(::read(child.report(), go, 2) == 2);
    child.watch(std::chrono::microseconds(round * 700));
    child.kill();
    child.wait();
    REQUIRE(read_everything(small.disk.options) == small.content);
  }
}

}  // namespace gantry::store
