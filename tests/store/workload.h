// A writer whose store can be judged later by a process that knows only the last acknowledged
// event. Every event holds the bounds of its batch, and every fold records the event that it folded
// to.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ctld/store/store.h"

namespace gantry::store {

class Workload {
 public:
  // Continues after the events that the store holds. On average, one turn in `fold_one_in` folds.
  Workload(Store& store, std::uint64_t seed, std::uint64_t fold_one_in = 8)
      : store_(store),
        random_(seed),
        fold_one_in_(fold_one_in),
        next_job_(store.stats().last.value() + 1) {}

  // One turn appends 1 to 100 events, and sometimes folds and trims.
  Result<void> turn() {
    AppendBatch batch;
    std::uint64_t first = store_.stats().last.value() + 1;
    std::uint64_t count = 1 + random_() % (random_() % 4 == 0 ? 100 : 5);
    for (std::uint64_t i = 0; i < count; ++i) {
      batch.events.push_back({EventSeq{first + i}, event(first, first + i, first + count - 1)});
      if (random_() % 2 == 0) {
        std::uint64_t job = std::max(next_job_, first + i);
        batch.specs.emplace_back(JobId{job}, fmt::format("spec {}", job));
        next_job_ = job + 1;
      }
    }
    if (auto done = store_.append(batch); !done) return done;
    if (random_() % fold_one_in_ == 0) {
      if (auto done = store_.fold(fold()); !done) return done;
      TRY(store_.maintain());
    }
    return {};
  }

  static Bytes event(std::uint64_t first, std::uint64_t seq, std::uint64_t last) {
    Bytes data = fmt::format("{} {} {} ", first, seq, last);
    data.append(20 + seq * 37 % 900, static_cast<char>('a' + seq % 26));
    return data;
  }

  // Returns what is wrong with the store if all events up to `acked` were acknowledged, or "" if
  // nothing is.
  static std::string judge(const Store& store, std::uint64_t acked) {
    Stats stats = store.stats();
    if (stats.last.value() < acked)
      return fmt::format("event {} was acknowledged, the last is {}", acked, stats.last.value());
    std::string wrong;
    std::uint64_t folded_to = 0;
    std::size_t folded_records = 0;
    std::uint64_t seen = 0;
    std::uint64_t batch_end = 0;
    LoadVisitor visitor;
    visitor.record = [&](Table table, std::string_view key, std::string_view v) -> Result<void> {
      if (table == Table::meta) folded_to = std::stoull(std::string(v));
      if (table == Table::job_state && v != fmt::format("{}", folded_to))
        wrong = fmt::format("record {} is not of the last fold", ordered_key_value(key));
      folded_records += table == Table::job_state ? 1 : 0;
      return {};
    };
    visitor.spec = [&](JobId job, std::string_view spec) -> Result<void> {
      if (spec != fmt::format("spec {}", job.value())) wrong = "a spec has the wrong content";
      return {};
    };
    visitor.blob = [](const Digest&, std::size_t) -> Result<void> { return {}; };
    visitor.event = [&](EventSeq seq, std::string_view data) -> Result<void> {
      unsigned long long first = 0;
      unsigned long long self = 0;
      std::string text(data);
      unsigned long long end = 0;
      if (std::sscanf(text.c_str(), "%llu %llu %llu ", &first, &self, &end) != 3 ||
          self != seq.value() || data != event(first, self, end))
        wrong = fmt::format("event {} has the wrong content", seq.value());
      seen = seq.value();
      batch_end = end;
      return {};
    };
    if (auto loaded = store.load(visitor); !loaded) return loaded.error().message;
    if (!wrong.empty()) return wrong;
    if (folded_to != stats.applied.value())
      return fmt::format("records are of event {}, applied is {}", folded_to,
                         stats.applied.value());
    if (stats.applied.value() > 0 && folded_records != kRecords) return "a fold is torn";
    if (seen != batch_end) return fmt::format("a batch up to {} is torn at {}", batch_end, seen);
    if (seen != 0 && seen != stats.last.value()) return "events are missing at the end";
    return history_is_whole(store, stats);
  }

 private:
  static constexpr std::size_t kRecords = 40;

  // Folds to the last event, which ends a batch, so that the rest of the journal starts with a
  // whole batch.
  FoldBatch fold() {
    FoldBatch fold;
    fold.applied = store_.stats().last;
    std::string to = fmt::format("{}", fold.applied.value());
    fold.records.push_back({Table::meta, "applied", to});
    for (std::uint64_t i = 0; i < kRecords; ++i)
      fold.records.push_back({Table::job_state, ordered_key(i * 1000), to});
    fold.history.push_back({Instant{static_cast<std::int64_t>(fold.applied.value())},
                            JobId{1 + random_() % 1000}, JobId{5000}, to});
    for (int i = 0; i < 3; ++i) {
      JobId job{1 + random_() % next_job_};
      if (fold.spec_deletes.empty() || fold.spec_deletes.back() < job)
        fold.spec_deletes.push_back(job);
    }
    return fold;
  }

  // The history must have the same number of entries by time and by index, and the newest one must
  // come from the last fold.
  static std::string history_is_whole(const Store& store, const Stats& stats) {
    HistoryScan scan;
    scan.limit = 100;
    auto by_time = store.read_history(scan);
    scan.id = JobId{5000};
    auto by_id = store.read_history(scan);
    if (!by_time || !by_id) return "the history cannot be read";
    if (stats.applied.value() == 0) return by_time->entries.empty() ? "" : "history before a fold";
    if (by_time->entries.empty() || by_time->entries.size() != by_id->entries.size())
      return "the history and its index differ";
    if (by_time->entries.front().data != fmt::format("{}", stats.applied.value()))
      return "the newest history entry is not of the last fold";
    return "";
  }

  Store& store_;
  std::mt19937_64 random_;
  std::uint64_t fold_one_in_;
  std::uint64_t next_job_;
};

}  // namespace gantry::store
