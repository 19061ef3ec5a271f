// Writing, loading and point reads of the store on LMDB; history reads are in lmdb_history.cc.
#include "ctld/store/lmdb_store.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/assert.h"
#include "ctld/store/batch_check.h"
#include "ctld/store/history_key.h"
#include "ctld/store/lmdb_env.h"
#include "ctld/store/lmdb_values.h"
#include "ctld/store/sealed.h"

namespace gantry::store {

namespace {

constexpr std::chrono::minutes kReaderCheckEvery{1};
// Appends to tables with ascending keys. A wrong order is a bug, not an error.
int append_one(Cursor& cursor, const TableHandle& table, MDB_val key, std::string_view value) {
  int rc = put_sealed(cursor, table, key, value, MDB_APPEND);
  GANTRY_ASSERT(rc != MDB_KEYEXIST, "append out of order");
  return rc;
}

int put_record(MDB_txn* txn, const TableHandle& table, Cursor& cursor, const RecordChange& change) {
  if (change.value) return put_sealed(cursor, table, as_val(change.key), *change.value, 0);
  MDB_val key = as_val(change.key);
  int rc = mdb_del(txn, table.dbi, &key, nullptr);
  return rc == MDB_NOTFOUND ? 0 : rc;
}

int put_records(MDB_txn* txn, const LmdbEnv& env, const std::vector<RecordChange>& records) {
  int rc = 0;
  for (std::size_t i = 0; rc == 0 && i < records.size();) {
    Table table = records[i].table;
    Cursor cursor(txn, env.dbi(table));
    for (; rc == 0 && i < records.size() && records[i].table == table; ++i)
      rc = put_record(txn, env.table(table), cursor, records[i]);
  }
  return rc;
}

int put_history(MDB_txn* txn, const LmdbEnv& env, const std::vector<HistoryEntry>& history) {
  if (history.empty()) return 0;
  Cursor records(txn, env.dbi(Db::history));
  Cursor index(txn, env.dbi(Db::history_index));
  int rc = 0;
  for (const HistoryEntry& entry : history) {
    HistoryPosition position{entry.end, entry.job};
    const auto add_index = [&](JobId id) {
      return put_sealed(index, env.table(Db::history_index),
                        as_val(history_index_key(id, position)), {}, 0);
    };
    rc = put_sealed(records, env.table(Db::history), as_val(history_key(position)), entry.data, 0);
    if (rc == 0) rc = add_index(entry.job);
    if (rc == 0 && entry.array && *entry.array != entry.job) rc = add_index(*entry.array);
    if (rc != 0) break;
  }
  return rc;
}

// Removes up to `limit` of the oldest entries at or below `applied`; `first` moves past them.
int trim_journal(MDB_txn* txn, const LmdbEnv& env, EventSeq applied, EventSeq& first) {
  Cursor cursor(txn, env.dbi(Db::journal));
  for (std::size_t i = 0; i < kTrimPerTransaction; ++i) {
    MDB_val key{};
    int rc = cursor.get(key, nullptr, MDB_FIRST);
    if (rc == MDB_NOTFOUND) {
      first = EventSeq{applied.value() + 1};
      return 0;
    }
    if (rc != 0) return rc;
    first = EventSeq{as_number(key)};
    if (first > applied) return 0;
    if (rc = cursor.del(); rc != 0) return rc;
    first = EventSeq{first.value() + 1};
  }
  return 0;
}

}  // namespace

LmdbStore::LmdbStore(std::unique_ptr<LmdbEnv> env)
    : env_(std::move(env)),
      next_reader_check_(std::chrono::steady_clock::now() + kReaderCheckEvery) {}
LmdbStore::~LmdbStore() = default;

Result<std::unique_ptr<LmdbStore>> LmdbStore::open(const LmdbOptions& options) {
  ASSIGN(env, LmdbEnv::open({options.directory, options.map_bytes, options.max_map_bytes}));
  EnvUse use;
  if (int rc = (*env)->measure(use); rc != 0)
    return tl::unexpected((*env)->error(rc, "measuring the state"));
  if (use.file_bytes >= options.compact_from_bytes && use.free_bytes > use.file_bytes / 2) {
    ASSIGN(compacted, (*env)->compact());
  }
  std::unique_ptr<LmdbStore> store(new LmdbStore(std::move(*env)));
  ASSIGN(read, store->read_positions());
  return store;
}

Result<void> LmdbStore::read_positions() {
  Damage damage;
  int rc = env_->read([&](MDB_txn* txn) {
    MDB_val key = as_val("applied");
    MDB_val value{};
    int e = mdb_get(txn, env_->dbi(Db::store), &key, &value);
    if (e == 0) {
      if (!unseal(env_->table(Db::store), "applied", value) || value.mv_size != 8)
        return damage.say(env_->table(Db::store), "applied");
      applied_ = EventSeq{as_number(value)};
    }
    if (e != 0 && e != MDB_NOTFOUND) return e;
    last_ = applied_;
    first_ = EventSeq{applied_.value() + 1};
    Cursor journal(txn, env_->dbi(Db::journal));
    if (e = journal.get(key, nullptr, MDB_FIRST); e == 0) {
      first_ = EventSeq{as_number(key)};
      e = journal.get(key, nullptr, MDB_LAST);
      if (e == 0) last_ = std::max(last_, EventSeq{as_number(key)});
    }
    if (e != 0 && e != MDB_NOTFOUND) return e;
    Cursor specs(txn, env_->dbi(Db::specs));
    if (e = specs.get(key, nullptr, MDB_LAST); e == 0) last_spec_ = JobId{as_number(key)};
    if (e != 0 && e != MDB_NOTFOUND) return e;
    Cursor blobs(txn, env_->dbi(Db::blobs));
    while ((e = blobs.get(key, &value, MDB_NEXT)) == 0) {
      std::string_view bytes = as_view(key);
      if (bytes.size() != kBlobKeyBytes || value.mv_size < kSealBytes)
        return damage.say(env_->table(Db::blobs), bytes);
      const Digest digest = digest_of_blob(bytes);
      std::uint64_t number = ordered_key_value(bytes.substr(0, 8));
      blobs_[digest] = {number, value.mv_size - kSealBytes};
      next_blob_ = number + 1;
    }
    return e == MDB_NOTFOUND ? 0 : e;
  });
  if (rc != 0) return tl::unexpected(error(rc, damage, "reading the state"));
  return {};
}

Error LmdbStore::error(int rc, const Damage& damage, std::string_view doing) const {
  return rc == kDamaged ? env_->error(damage) : env_->error(rc, doing);
}

Result<void> LmdbStore::usable() const {
  if (poisoned_.load(std::memory_order_acquire)) return tl::unexpected(error_);
  return {};
}

Error LmdbStore::poison(int rc, std::string_view doing) {
  error_ = env_->error(rc, doing);
  poisoned_.store(true, std::memory_order_release);
  return error_;
}

Result<void> LmdbStore::append(const AppendBatch& batch) {
  if (auto ok = usable(); !ok) return ok;
  check_append(batch, last_, last_spec_);
  if (batch.empty()) return {};
  BlobIndex added;
  int rc = env_->write([&](MDB_txn* txn) {
    int e = 0;
    if (!batch.events.empty()) {
      Cursor journal(txn, env_->dbi(Db::journal));
      for (const JournalEntry& entry : batch.events) {
        std::uint64_t seq = entry.seq.value();
        e = append_one(journal, env_->table(Db::journal), number_val(seq), entry.data);
        if (e != 0) return e;
      }
    }
    if (!batch.specs.empty()) {
      Cursor specs(txn, env_->dbi(Db::specs));
      for (const auto& [job, spec] : batch.specs) {
        std::uint64_t id = job.value();
        e = append_one(specs, env_->table(Db::specs), number_val(id), spec);
        if (e != 0) return e;
      }
    }
    if (!batch.blobs.empty()) {
      added.clear();
      Cursor blobs(txn, env_->dbi(Db::blobs));
      for (const auto& [digest, content] : batch.blobs) {
        if (blobs_.contains(digest) || added.contains(digest)) continue;
        std::uint64_t number = next_blob_ + added.size();
        added[digest] = {number, content.size()};
        e = append_one(blobs, env_->table(Db::blobs), as_val(blob_key(number, digest)), content);
        if (e != 0) return e;
      }
    }
    return e;
  });
  if (rc != 0) return tl::unexpected(poison(rc, "writing to the journal"));
  ++commits_;
  if (!batch.events.empty()) last_ = batch.events.back().seq;
  if (!batch.specs.empty()) last_spec_ = batch.specs.back().first;
  next_blob_ += added.size();
  blobs_.merge(added);
  return {};
}

Result<void> LmdbStore::fold(const FoldBatch& batch) {
  if (auto ok = usable(); !ok) return ok;
  check_fold(batch, applied_, last_);
  EventSeq first;
  int rc = env_->write([&](MDB_txn* txn) {
    first = first_;
    int e = put_records(txn, *env_, batch.records);
    if (e == 0) e = put_history(txn, *env_, batch.history);
    for (std::size_t i = 0; e == 0 && i < batch.spec_deletes.size(); ++i) {
      std::uint64_t id = batch.spec_deletes[i].value();
      MDB_val key = number_val(id);
      e = mdb_del(txn, env_->dbi(Db::specs), &key, nullptr);
      if (e == MDB_NOTFOUND) e = 0;
    }
    for (std::size_t i = 0; e == 0 && i < batch.blob_deletes.size(); ++i) {
      auto it = blobs_.find(batch.blob_deletes[i]);
      if (it == blobs_.end()) continue;
      Bytes bytes = blob_key(it->second.number, it->first);
      MDB_val key = as_val(bytes);
      e = mdb_del(txn, env_->dbi(Db::blobs), &key, nullptr);
      if (e == MDB_NOTFOUND) e = 0;  // the same blob was named twice
    }
    if (e != 0) return e;
    std::uint64_t applied = batch.applied.value();
    Cursor store(txn, env_->dbi(Db::store));
    e = put_sealed(store, env_->table(Db::store), as_val("applied"), as_view(number_val(applied)),
                   0);
    return e == 0 ? trim_journal(txn, *env_, batch.applied, first) : e;
  });
  if (rc != 0) return tl::unexpected(poison(rc, "folding the journal into the records"));
  ++commits_;
  applied_ = batch.applied;
  first_ = first;
  for (const Digest& digest : batch.blob_deletes) blobs_.erase(digest);
  return {};
}

Result<bool> LmdbStore::maintain() {
  TRY(usable());
  auto now = std::chrono::steady_clock::now();
  if (now >= next_reader_check_) {
    next_reader_check_ = now + kReaderCheckEvery;
    if (int rc = env_->check_readers(); rc != 0)
      return tl::unexpected(poison(rc, "looking for dead readers"));
  }
  if (first_ > applied_) return false;
  EventSeq first;
  int rc = env_->write([&](MDB_txn* txn) {
    first = first_;
    return trim_journal(txn, *env_, applied_, first);
  });
  if (rc != 0) return tl::unexpected(poison(rc, "trimming the journal"));
  ++commits_;
  first_ = first;
  return first_ <= applied_;
}

Stats LmdbStore::stats() const {
  Stats stats;
  stats.last = last_;
  stats.applied = applied_;
  stats.blobs = blobs_.size();
  stats.commits = commits_;
  stats.map_bytes = env_->map_bytes();
  stats.map_growths = env_->map_growths();
  auto add = [&](MDB_txn* txn, MDB_dbi dbi) -> std::uint64_t {
    MDB_stat s{};
    if (mdb_stat(txn, dbi, &s) != 0) return 0;
    stats.used_bytes += (s.ms_branch_pages + s.ms_leaf_pages + s.ms_overflow_pages) * s.ms_psize;
    return s.ms_entries;
  };
  env_->read([&](MDB_txn* txn) {
    for (Table table : kTables) add(txn, env_->dbi(table));
    add(txn, env_->dbi(Db::blobs));
    add(txn, env_->dbi(Db::history_index));
    stats.journal_entries = add(txn, env_->dbi(Db::journal));
    stats.specs = add(txn, env_->dbi(Db::specs));
    stats.history = add(txn, env_->dbi(Db::history));
    return 0;
  });
  EnvUse use;
  if (env_->measure(use) == 0) stats.file_bytes = use.file_bytes;
  return stats;
}

}  // namespace gantry::store
