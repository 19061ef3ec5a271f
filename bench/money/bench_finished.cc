// Ten million finished jobs on disk: the bench measures the space of each, the time to find one of
// them (gacct -j), and how much reading slows durable submits.
//
//   bench_finished DIRECTORY [jobs [tenants]]     defaults 10,000,000 and 1,000; takes some 4 GB
//
// The rows are those that the controller's core makes for a batch job of one GPU. Submits are
// appended as the controller appends them, 64 together (an event and a spec of 600 bytes each, one
// fsync). This is done alone, and while the history reader answers one question after the other:
// jobs by id, and a page of a user's jobs.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/codec/codec.h"
#include "common/proto/history.h"
#include "ctld/acct/history.h"
#include "ctld/store/lmdb_store.h"
#include "ctld/store/store.h"

namespace gantry {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTogether = 64;
constexpr std::size_t kInFold = 50'000;
constexpr int kRounds = 5;
constexpr double kSeconds = 2;
constexpr Instant kBegin{1'767'225'600'000'000};  // 2026-01-01T00:00:00Z

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <class T>
T need(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "bench_finished: {}\n", result.error().message);
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

proto::HistoryRow row_of(std::uint64_t i, std::uint32_t tenants) {
  proto::HistoryRow row;
  row.row.job = JobId(i + 1);
  row.row.name = "train";
  row.row.user = fmt::format("user{}", i / tenants % 10);
  row.row.uid = Uid(static_cast<std::uint32_t>(1000 + i / tenants % 10));
  row.row.account = fmt::format("project{}", i % 3);
  row.row.partition = fmt::format("tenant{:04}", i * 7919 % tenants);
  row.row.phase = Phase::ended;
  row.row.outcome = Outcome::completed;
  row.row.node_list = fmt::format("gpu{:03}", i % 500);
  row.row.nodes = 1;
  row.row.cpus = 4;
  row.row.time_limit = hours(4);
  row.row.submitted = kBegin + Duration{static_cast<std::int64_t>(i) * 250'000};
  row.row.started = row.row.submitted + seconds(5);
  row.row.ended = *row.row.started + seconds(30 + static_cast<std::int64_t>(i * 31 % 3600));
  row.row.cost = Money{1'234'567};
  row.work_dir = "/home/user/project";
  row.submit_line = "gbatch --gpus=1 train.sh";
  row.usage = {1'000'000'000, 10'000'000, std::int64_t{20} << 30, 1'000'000, 1'000'000, {}};
  return row;
}

class Finished {
 public:
  Finished(const std::string& directory, std::uint64_t jobs, std::uint32_t tenants)
      : store_(need(store::LmdbStore::open({.directory = directory,
                                            .map_bytes = std::uint64_t{64} << 30,
                                            .max_map_bytes = std::uint64_t{256} << 30}))),
        jobs_(jobs),
        tenants_(tenants) {}

  void fill() {
    const std::uint64_t before = store_->stats().file_bytes;
    std::uint64_t rows = 0;
    for (std::uint64_t done = 0; done < jobs_;) {
      store::AppendBatch one;  // A fold needs an event that it goes up to.
      one.events.push_back({next(), "fill"});
      need(store_->append(one));
      store::FoldBatch fold;
      fold.applied = seq_;
      for (std::size_t n = 0; n < kInFold && done < jobs_; ++n, ++done) {
        fold.history.push_back(acct::to_entry(row_of(done, tenants_)));
        rows += fold.history.back().data.size();
      }
      need(store_->fold(fold));
      while (need(store_->maintain())) continue;
    }
    const auto each = [&](std::uint64_t bytes) {
      return static_cast<double>(bytes) / static_cast<double>(jobs_);
    };
    fmt::print("{:<60} {:>10.0f} bytes\n", "a finished job's record", each(rows));
    fmt::print("{:<60} {:>10.0f} bytes\n", "a finished job on disk, all of it",
               each(store_->stats().file_bytes - before));
  }

  // Measures the milliseconds of one answer: the worst of a hundred and their median.
  void find() {
    std::vector<double> by_id;
    for (int i = 0; i < 100; ++i) {
      const Clock::time_point start = Clock::now();
      if (answer_by_id() != 1) std::exit(2);
      by_id.push_back(since(start) * 1e3);
    }
    fmt::print("{:<60} {:>10.3f} ms, at most {:.3f}\n", "gacct -j: the history's answer",
               median(by_id), *std::max_element(by_id.begin(), by_id.end()));
  }

  void submit() {
    std::vector<double> alone, beside;
    for (int round = 0; round < kRounds; ++round) {
      alone.push_back(submits());
      reading_ = true;
      std::thread reader([this] { read(); });
      beside.push_back(submits());
      reading_ = false;
      reader.join();
    }
    fmt::print("{:<60} {:>10.0f} a second\n", "durable submits", median(alone));
    fmt::print("{:<60} {:>10.0f} a second, {:+.1f} %\n", "durable submits while history is read",
               median(beside), (median(beside) / median(alone) - 1) * 100);
    fmt::print("{:<60} {:>10}\n", "answers meanwhile", answers_.load());
  }

 private:
  EventSeq next() { return seq_ = EventSeq(seq_.value() + 1); }

  std::size_t answer_by_id() {
    proto::QueryHistory query;
    query.filter.jobs = {{JobId(1 + random_() % jobs_), {}}};
    const auto asked = need(acct::HistoryQuery::make(query, std::nullopt));
    std::size_t rows = 0;
    proto::HistoryReply reply = need(acct::next_page(*store_, asked, {}, kBegin));
    rows += reply.rows.size();
    while (reply.more) {
      query.position = reply.position;
      reply = need(acct::next_page(*store_, need(acct::HistoryQuery::make(query, std::nullopt)), {},
                                   kBegin));
      rows += reply.rows.size();
    }
    return rows;
  }

  void read() {
    while (reading_) {
      for (int i = 0; i < 20 && reading_; ++i) {
        answer_by_id();
        ++answers_;
      }
      proto::QueryHistory page;
      page.filter.users = {"user3"};
      page.start = kBegin;
      page.limit = 1000;
      need(acct::next_page(*store_, need(acct::HistoryQuery::make(page, std::nullopt)), {},
                           kBegin + hours(24 * 40)));
      ++answers_;
    }
  }

  double submits() {
    const Bytes spec(600, 's'), event(96, 'e');
    const Clock::time_point start = Clock::now();
    std::uint64_t done = 0;
    while (since(start) < kSeconds) {
      store::AppendBatch batch;
      for (std::size_t i = 0; i < kTogether; ++i) {
        batch.events.push_back({next(), event});
        batch.specs.emplace_back(JobId(jobs_ + 1 + submitted_++), spec);
      }
      need(store_->append(batch));
      done += kTogether;
    }
    return static_cast<double>(done) / since(start);
  }

  std::unique_ptr<store::Store> store_;
  std::uint64_t jobs_;
  std::uint32_t tenants_;
  EventSeq seq_;
  std::uint64_t submitted_ = 0;
  std::mt19937_64 random_{7};
  std::atomic<bool> reading_{false};
  std::atomic<std::uint64_t> answers_{0};
};

}  // namespace
}  // namespace gantry

int main(int argc, char** argv) {
  using namespace gantry;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc < 2 || argv[1][0] == '-') {
    fmt::print(stderr, "usage: bench_finished DIRECTORY [JOBS [TENANTS]]\n");
    return 2;
  }
  const std::uint64_t jobs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10'000'000;
  const auto tenants =
      static_cast<std::uint32_t>(argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1'000);
  std::filesystem::create_directories(argv[1]);
  Finished finished(argv[1], jobs, tenants);
  fmt::print("{} finished jobs of {} tenants\n", jobs, tenants);
  finished.fill();
  finished.find();
  finished.submit();
  return 0;
}
