// The store in memory; see the header. It is as plain as possible, because tests compare LmdbStore
// with it.
#include "ctld/store/memory_store.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/assert.h"
#include "ctld/store/batch_check.h"
#include "ctld/store/history_key.h"

namespace gantry::store {

namespace {

constexpr std::uint64_t kEntryOctets = 8;  // a sequence number or a job id

std::uint64_t octets_of(const AppendBatch& batch) {
  std::uint64_t sum = 0;
  for (const JournalEntry& entry : batch.events) sum += kEntryOctets + entry.data.size();
  for (const auto& [job, spec] : batch.specs) sum += kEntryOctets + spec.size();
  for (const auto& [digest, content] : batch.blobs) sum += digest.size() + content.size();
  return sum;
}

std::uint64_t octets_of(const FoldBatch& batch) {
  std::uint64_t sum = 0;
  for (const RecordChange& change : batch.records)
    if (change.value) sum += change.key.size() + change.value->size();
  for (const HistoryEntry& entry : batch.history) sum += kHistoryKeyBytes + entry.data.size();
  return sum;
}

}  // namespace

Result<void> MemoryStore::usable() const {
  if (poisoned_) return tl::unexpected(*poisoned_);
  return {};
}

template <class Write>
Result<void> MemoryStore::commit(std::optional<CrashPoint>& crash, std::uint64_t growth,
                                 Write&& write) {
  bool full = space_ && growth > 0 && octets_ + growth > *space_;
  std::optional<CrashPoint> planned = std::exchange(crash, std::nullopt);
  if (planned != CrashPoint::before_commit && !full) {
    write();
    ++commits_;
    if (!planned) return {};
  }
  poisoned_ = planned ? Error{ErrorCode::io_error, "the simulated disk failed: restart()"}
                      : Error{ErrorCode::out_of_space,
                              "the simulated disk is full: limit_space(), then restart()"};
  return tl::unexpected(*poisoned_);
}

Result<void> MemoryStore::append(const AppendBatch& batch) {
  if (auto ok = usable(); !ok) return ok;
  check_append(batch, last_, last_spec_);
  if (batch.empty()) return {};
  return commit(append_crash_, octets_of(batch), [&] {
    for (const JournalEntry& entry : batch.events) {
      journal_.push_back(entry);
      last_ = entry.seq;
      octets_ += kEntryOctets + entry.data.size();
    }
    for (const auto& [job, spec] : batch.specs) {
      specs_.emplace(job, spec);
      last_spec_ = job;
      octets_ += kEntryOctets + spec.size();
    }
    for (const auto& [digest, content] : batch.blobs)
      if (blobs_.emplace(digest, content).second) octets_ += digest.size() + content.size();
    if (!options_.keep_everything) return;
    every_event_.insert(every_event_.end(), batch.events.begin(), batch.events.end());
    every_spec_.insert(every_spec_.end(), batch.specs.begin(), batch.specs.end());
  });
}

Result<void> MemoryStore::fold(const FoldBatch& batch) {
  if (auto ok = usable(); !ok) return ok;
  check_fold(batch, applied_, last_);
  return commit(fold_crash_, octets_of(batch), [&] {
    for (const RecordChange& change : batch.records) {
      std::pair key{change.table, change.key};
      if (auto it = records_.find(key); it != records_.end()) {
        octets_ -= it->first.second.size() + it->second.size();
        records_.erase(it);
      }
      if (!change.value) continue;
      octets_ += change.key.size() + change.value->size();
      records_.emplace(std::move(key), *change.value);
    }
    for (const HistoryEntry& entry : batch.history) {
      HistoryPosition position{entry.end, entry.job};
      auto [it, added] = history_.try_emplace(history_key(position));
      octets_ += entry.data.size() - it->second.size() + (added ? kHistoryKeyBytes : 0);
      it->second = entry.data;
      history_index_.insert(history_index_key(entry.job, position));
      if (entry.array) history_index_.insert(history_index_key(*entry.array, position));
    }
    for (JobId job : batch.spec_deletes) {
      auto it = specs_.find(job);
      if (it == specs_.end()) continue;
      octets_ -= kEntryOctets + it->second.size();
      specs_.erase(it);
    }
    for (const Digest& digest : batch.blob_deletes) {
      auto it = blobs_.find(digest);
      if (it == blobs_.end()) continue;
      octets_ -= digest.size() + it->second.size();
      blobs_.erase(it);
    }
    applied_ = batch.applied;
    trim();
  });
}

void MemoryStore::trim() {
  for (std::size_t i = 0; i < kTrimPerTransaction && !journal_.empty(); ++i) {
    if (journal_.front().seq > applied_) return;
    octets_ -= kEntryOctets + journal_.front().data.size();
    journal_.pop_front();
  }
}

Result<bool> MemoryStore::maintain() {
  TRY(usable());
  trim();
  return !journal_.empty() && journal_.front().seq <= applied_;
}

Result<void> MemoryStore::load(const LoadVisitor& visitor) const {
  Result<void> told = usable();
  for (auto it = records_.begin(); told && it != records_.end(); ++it)
    told = visitor.record(it->first.first, it->first.second, it->second);
  for (auto it = specs_.begin(); told && it != specs_.end(); ++it)
    told = visitor.spec(it->first, it->second);
  for (auto it = blobs_.begin(); told && it != blobs_.end(); ++it)
    told = visitor.blob(it->first, it->second.size());
  for (auto it = journal_.begin(); told && it != journal_.end(); ++it)
    if (it->seq > applied_) told = visitor.event(it->seq, it->data);
  return told;
}

Result<Bytes> MemoryStore::read_spec(JobId job) const {
  TRY(usable());
  auto it = specs_.find(job);
  if (it == specs_.end())
    return fail(ErrorCode::not_found, fmt::format("job {} has no specification", job.value()));
  return it->second;
}

Result<Bytes> MemoryStore::read_blob(const Digest& digest) const {
  TRY(usable());
  auto it = blobs_.find(digest);
  if (it == blobs_.end()) return fail(ErrorCode::not_found, "no such script or environment");
  return it->second;
}

bool MemoryStore::has_blob(const Digest& digest) const {
  return blobs_.contains(digest);
}

Result<HistoryPage> MemoryStore::read_history(const HistoryScan& scan) const {
  TRY(usable());
  const HistoryBounds bounds = history_bounds(scan);
  if (bounds.lo >= bounds.hi) return HistoryPage{};
  std::vector<Bytes> keys;  // history keys in range, oldest first
  if (scan.id) {
    auto end = history_index_.lower_bound(bounds.hi);
    for (auto it = history_index_.lower_bound(bounds.lo); it != end; ++it)
      keys.push_back(it->substr(it->size() - kHistoryKeyBytes));
  } else {
    auto end = history_.lower_bound(bounds.hi);
    for (auto it = history_.lower_bound(bounds.lo); it != end; ++it) keys.push_back(it->first);
  }
  if (scan.order == HistoryOrder::newest_first) std::reverse(keys.begin(), keys.end());
  HistoryPage page;
  std::size_t octets = 0;
  for (const Bytes& key : keys) {
    if (page.entries.size() == scan.limit || octets >= kMaxHistoryPageBytes) {
      page.resume = HistoryPosition{page.entries.back().end, page.entries.back().job};
      break;
    }
    HistoryPosition position = history_position(key);
    const Bytes& data = history_.at(key);
    page.entries.push_back({position.end, position.job, std::nullopt, data});
    octets += data.size();
  }
  return page;
}

Stats MemoryStore::stats() const {
  Stats stats;
  stats.last = last_;
  stats.applied = applied_;
  stats.journal_entries = journal_.size();
  stats.specs = specs_.size();
  stats.blobs = blobs_.size();
  stats.history = history_.size();
  stats.commits = commits_;
  stats.used_bytes = stats.file_bytes = stats.map_bytes = octets_;
  return stats;
}

void MemoryStore::restart() {
  poisoned_.reset();
  append_crash_.reset();
  fold_crash_.reset();
}

}  // namespace gantry::store
