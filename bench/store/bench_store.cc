// The costs of the durable queue, beside its floor on the same disk in the same run: a plain file
// that is appended to and synced with fdatasync. Further tables show the costs of folding,
// trimming, loading and reading history.
//
// The group commit is a closed loop with N submits outstanding. Each turn takes them all, appends N
// specs of 1,000 bytes and N events of 96 bytes in one transaction, and answers. The figures are
// medians of the rounds. A round lasts --seconds.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "ctld/store/lmdb_store.h"

namespace {

using namespace gantry;
using namespace gantry::store;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kSpecBytes = 1000;
constexpr std::size_t kEventBytes = 96;

struct Options {
  std::string directory = ".";  // a directory on the disk to measure
  double seconds = 1.0;
  int rounds = 5;
  std::uint64_t jobs = 200'000;  // used by the tables after the first
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "bench_store: {}\n", why);
  std::exit(1);
}

template <class T>
T need(Result<T> result) {
  if (!result) give_up(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Makes content that does not compress, in case the file system compresses.
Bytes content(std::uint64_t seed, std::size_t size) {
  Bytes bytes(size, '\0');
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ULL + 1;
  for (char& c : bytes) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    c = static_cast<char>(x);
  }
  return bytes;
}

struct Round {
  double per_second = 0;
  double p50_ms = 0;
  double p99_ms = 0;
};

// Calls `turn` again and again for `seconds`. Each call is one commit of n submits.
template <class Turn>
Round measure(double seconds, std::size_t n, Turn&& turn) {
  std::vector<double> times;
  Clock::time_point start = Clock::now();
  do {
    Clock::time_point begin = Clock::now();
    turn();
    times.push_back(seconds_since(begin) * 1e3);
  } while (seconds_since(start) < seconds);
  double total = seconds_since(start);
  std::sort(times.begin(), times.end());
  return {static_cast<double>(n * times.size()) / total, times[times.size() / 2],
          times[times.size() * 99 / 100]};
}

class Scratch {
 public:
  explicit Scratch(const std::string& parent) : path_(parent + "/bench-store.XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) give_up("cannot write to " + parent);
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Round floor_round(const Options& options, std::size_t n) {
  Scratch scratch(options.directory);
  int fd = ::open((scratch.path() + "/floor").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (fd < 0) give_up("cannot create a file in " + scratch.path());
  Bytes block = content(n, n * (kSpecBytes + kEventBytes));
  Round round = measure(options.seconds, n, [&] {
    if (::write(fd, block.data(), block.size()) != static_cast<ssize_t>(block.size()) ||
        ::fdatasync(fd) != 0)
      give_up("cannot write in " + scratch.path());
  });
  ::close(fd);
  return round;
}

Round store_round(const Options& options, std::size_t n) {
  Scratch scratch(options.directory);
  LmdbOptions lmdb;
  lmdb.directory = scratch.path() + "/state";
  auto store = need(LmdbStore::open(lmdb));
  Bytes spec = content(1, kSpecBytes);
  Bytes event = content(2, kEventBytes);
  std::uint64_t next = 1;
  return measure(options.seconds, n, [&] {
    AppendBatch batch;  // The batch is made anew each turn, as the controller does.
    batch.events.reserve(n);
    batch.specs.reserve(n);
    for (std::size_t i = 0; i < n; ++i, ++next) {
      batch.events.push_back({EventSeq{next}, event});
      batch.specs.emplace_back(JobId{next}, spec);
    }
    need(store->append(batch));
  });
}

void bench_group_commit(const Options& options) {
  fmt::print("Durable submits of 1 KB, {} rounds of {} s, median\n\n", options.rounds,
             options.seconds);
  fmt::print("{:>11}  {:>11}  {:>8} {:>8}  {:>13}  {:>8} {:>8}  {:>8}\n", "outstanding",
             "submits/s", "p50 ms", "p99 ms", "plain file/s", "p50 ms", "p99 ms", "of floor");
  for (std::size_t n : {1, 16, 128, 512}) {
    std::vector<double> store[3];
    std::vector<double> floor[3];
    for (int round = 0; round < options.rounds; ++round) {
      Round s = store_round(options, n);
      Round f = floor_round(options, n);
      for (auto [into, from] : {std::pair{store, &s}, std::pair{floor, &f}}) {
        into[0].push_back(from->per_second);
        into[1].push_back(from->p50_ms);
        into[2].push_back(from->p99_ms);
      }
    }
    fmt::print("{:>11}  {:>11.0f}  {:>8.2f} {:>8.2f}  {:>13.0f}  {:>8.2f} {:>8.2f}  {:>7.0f}%\n", n,
               median(store[0]), median(store[1]), median(store[2]), median(floor[0]),
               median(floor[1]), median(floor[2]), 100 * median(store[0]) / median(floor[0]));
  }
}

void report(std::string_view what, double seconds, std::uint64_t count) {
  fmt::print("{:<52} {:>9.1f} ms  {:>12.0f}/s\n", what, seconds * 1e3,
             static_cast<double>(count) / seconds);
}

template <class Work>
double timed(Work&& work) {
  Clock::time_point start = Clock::now();
  work();
  return seconds_since(start);
}

FoldBatch fold_of(std::uint64_t applied, std::uint64_t jobs, std::uint64_t stride) {
  FoldBatch fold;
  fold.applied = EventSeq{applied};
  for (std::uint64_t i = 0; i < 10'000; ++i)
    fold.records.push_back({Table::job_state, ordered_key(1 + i * stride % jobs), content(i, 64)});
  return fold;
}

void fill(Store& store, std::uint64_t jobs) {
  constexpr std::uint64_t kBatch = 1000;
  for (std::uint64_t next = 1; next <= jobs;) {
    AppendBatch batch;
    for (std::uint64_t i = 0; i < kBatch; ++i, ++next) {
      batch.events.push_back({EventSeq{next}, content(next, kEventBytes)});
      batch.specs.emplace_back(JobId{next}, content(next, kSpecBytes));
    }
    need(store.append(batch));
  }
}

void bench_upkeep(const Options& options) {
  fmt::print("\nUpkeep with {} jobs\n\n", options.jobs);
  Scratch scratch(options.directory);
  LmdbOptions lmdb;
  lmdb.directory = scratch.path() + "/state";
  lmdb.compact_from_bytes = ~0ULL;
  auto store = need(LmdbStore::open(lmdb));
  fill(*store, options.jobs);
  std::uint64_t jobs = store->stats().last.value();
  FoldBatch first;
  for (std::uint64_t job = 1; job <= jobs; ++job)
    first.records.push_back({Table::job_state, ordered_key(job), content(job, 64)});
  report("fold: a new record for every job", timed([&] { need(store->fold(first)); }), jobs);
  FoldBatch dense = fold_of(0, jobs, 1);
  report("fold: 10,000 changed records, neighbours", timed([&] { need(store->fold(dense)); }),
         10'000);
  FoldBatch sparse = fold_of(0, jobs, jobs / 10'000);
  report("fold: 10,000 changed records, all over", timed([&] { need(store->fold(sparse)); }),
         10'000);
  FoldBatch history;
  history.applied = EventSeq{jobs};
  for (std::uint64_t job = 1; job <= 10'000; ++job) {
    history.history.push_back({Instant{static_cast<std::int64_t>(job) * 1000}, JobId{job},
                               std::nullopt, content(job, 600)});
    history.spec_deletes.push_back(JobId{job});
    history.records.push_back({Table::job_state, ordered_key(job), std::nullopt});
  }
  report("fold: 10,000 jobs to history", timed([&] { need(store->fold(history)); }), 10'000);
  std::uint64_t left = store->stats().journal_entries;
  report("trim: the whole journal, in pieces", timed([&] {
           while (need(store->maintain())) {
           }
         }),
         left);
  std::uint64_t read = 0;
  HistoryScan scan;
  double reading = timed([&] {
    do {
      HistoryPage page = need(store->read_history(scan));
      read += page.entries.size();
      scan.resume = page.resume;
    } while (scan.resume);
  });
  report("history: all of it, newest first", reading, read);
  store.reset();
  report("open and load, warm", timed([&] {
           store = need(LmdbStore::open(lmdb));
           LoadVisitor visitor;
           std::uint64_t octets = 0;
           visitor.record = [&](Table, std::string_view, std::string_view v) -> Result<void> {
             octets += v.size();
             return {};
           };
           visitor.spec = [&](JobId, std::string_view spec) -> Result<void> {
             octets += static_cast<std::uint8_t>(spec.front());
             return {};
           };
           need(store->load(visitor));
         }),
         jobs);
  Stats stats = store->stats();
  fmt::print("file {} MiB, in use {} MiB\n", stats.file_bytes >> 20, stats.used_bytes >> 20);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    bool more = i + 1 < argc;
    if (arg == "--dir" && more) {
      options.directory = argv[++i];
    } else if (arg == "--seconds" && more) {
      options.seconds = std::atof(argv[++i]);
    } else if (arg == "--rounds" && more && std::atoi(argv[i + 1]) > 0) {
      options.rounds = std::atoi(argv[++i]);
    } else if (arg == "--jobs" && more && std::atoll(argv[i + 1]) >= 20'000) {
      options.jobs = std::strtoull(argv[++i], nullptr, 10);
    } else {
      fmt::print(stderr,
                 "usage: bench_store [--dir DIRECTORY] [--seconds S] [--rounds N] "
                 "[--jobs N, at least 20000]\n");
      return 2;
    }
  }
  bench_group_commit(options);
  bench_upkeep(options);
  return 0;
}
