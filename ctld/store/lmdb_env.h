// LmdbEnv: the one wrapper around LMDB. Owns the environment, its sub-databases and the directory's
// lock, and promises:
//   - two controllers never have one directory open (flock on store.lock, kept while open);
//   - a write is one transaction; when the map is full it is aborted, the map grown and the write
//     done again, never while a read transaction of this process is open (the map may move);
//   - all handles are opened once, in a committed transaction, before anything else;
//   - what open() creates survives a power loss (directories are synced);
//   - the file's pages are checked before LMDB uses them (page_check.h), and a store without
//     checksums is rewritten with them (lmdb_upgrade.cc).
// Results are LMDB codes (0 is success); LmdbStore turns them into Errors. Never fork with it open.
#pragma once

#include <lmdb.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "common/result.h"
#include "ctld/store/store.h"

namespace gantry::store {

// Sub-databases besides the record tables.
enum class Db : std::uint8_t {
  store,    // "format", "applied": u64 values
  journal,  // EventSeq (integer key) -> event
  specs,    // JobId (integer key) -> spec
  blobs,    // ordered number + digest -> content; numbered so that new entries are appended
  history,  // see history_key.h
  history_index,
};
inline constexpr std::size_t kDbCount = 6;
// A read found a record with a wrong checksum; a Damage has the details.
inline constexpr int kDamaged = -31'000;

struct TableHandle {
  std::string name;  // permanent: it is part of the checksum of each record
  std::uint64_t seed = 0;
  MDB_dbi dbi = 0;
};

struct Damage {
  const TableHandle* table = nullptr;
  Bytes key;
  int say(const TableHandle& where, std::string_view what) {
    table = &where;
    key = what;
    return kDamaged;
  }
};

inline MDB_val as_val(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB's struct is not const-correct
}
inline std::string_view as_view(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}

class Cursor {
 public:
  Cursor(MDB_txn* txn, MDB_dbi dbi) { rc_ = mdb_cursor_open(txn, dbi, &cursor_); }
  ~Cursor() {
    if (cursor_ != nullptr) mdb_cursor_close(cursor_);
  }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;
  int get(MDB_val& key, MDB_val* value, MDB_cursor_op op) {
    return rc_ != 0 ? rc_ : mdb_cursor_get(cursor_, &key, value, op);
  }
  int put(MDB_val key, MDB_val value, unsigned flags) {
    return rc_ != 0 ? rc_ : mdb_cursor_put(cursor_, &key, &value, flags);
  }
  // Reserves space for a value of that size, which the caller fills before the next call. Returns 0
  // or a code.
  int reserve(MDB_val key, MDB_val& value, unsigned flags) {
    return rc_ != 0 ? rc_ : mdb_cursor_put(cursor_, &key, &value, flags | MDB_RESERVE);
  }
  int del() { return rc_ != 0 ? rc_ : mdb_cursor_del(cursor_, 0); }

 private:
  MDB_cursor* cursor_ = nullptr;
  int rc_ = 0;
};

struct EnvOptions {
  std::string directory;                     // created with mode 0700; its parent must exist
  std::uint64_t map_bytes = 64ULL << 30;     // address space only; the file grows as needed
  std::uint64_t max_map_bytes = 1ULL << 40;  // the map grows up to this
  // Leaf pages of the history that are checked when the store is opened: 1 GiB. If there are more,
  // the scrub checks them.
  std::uint64_t most_leaves = 262'144;
  bool read_only = false;  // nothing is created, compacted or given checksums
};

struct EnvUse {
  std::uint64_t file_bytes = 0;  // pages ever used
  std::uint64_t free_bytes = 0;  // pages on the free list
};

class LmdbEnv {
 public:
  static Result<std::unique_ptr<LmdbEnv>> open(const EnvOptions& options);
  ~LmdbEnv();
  LmdbEnv(const LmdbEnv&) = delete;
  LmdbEnv& operator=(const LmdbEnv&) = delete;

  [[nodiscard]] const TableHandle& table(Db db) const { return dbs_[static_cast<std::size_t>(db)]; }
  [[nodiscard]] const TableHandle& table(Table table) const {
    return tables_[static_cast<std::size_t>(table)];
  }
  [[nodiscard]] MDB_dbi dbi(Db db) const { return table(db).dbi; }
  [[nodiscard]] MDB_dbi dbi(Table which) const { return table(which).dbi; }

  // Runs body(txn) -> code and commits. body may run several times; each time it starts with an
  // empty transaction.
  template <class Body>
  int write(Body&& body) {
    for (;;) {
      MDB_txn* txn = nullptr;
      int rc = mdb_txn_begin(env_, nullptr, options_.read_only ? MDB_RDONLY : 0U, &txn);
      if (rc != 0) return rc;
      rc = body(txn);
      if (rc == 0)
        rc = mdb_txn_commit(txn);
      else
        mdb_txn_abort(txn);
      if (rc != MDB_MAP_FULL) return rc;
      if (rc = grow(); rc != 0) return rc;
    }
  }

  // Runs body(txn) -> code in a read transaction, on any thread.
  template <class Body>
  int read(Body&& body) const {
    std::shared_lock guard = enter_read();
    MDB_txn* txn = nullptr;
    int rc = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn);
    if (rc != 0) return rc;
    rc = body(txn);
    mdb_txn_abort(txn);
    return rc;
  }

  int check_readers();  // releases the reader slots of dead processes
  int measure(EnvUse& use) const;
  // Writes a compacted copy and replaces this file by it; the environment is closed and opened
  // again. After a crash at any point there is one complete data file. If space runs out, it gives
  // up without an error.
  Result<void> compact();

  [[nodiscard]] const std::string& directory() const { return options_.directory; }
  [[nodiscard]] std::string data_path() const { return options_.directory + "/data.mdb"; }
  [[nodiscard]] std::uint64_t map_bytes() const { return map_bytes_; }
  // The format of a read-only store without checksums, whose entries cannot be read; else 0.
  [[nodiscard]] std::uint64_t old_format() const { return old_format_; }
  [[nodiscard]] std::uint64_t pages_looked_at() const { return pages_; }
  [[nodiscard]] std::uint64_t upgraded_from() const { return upgraded_from_; }
  [[nodiscard]] std::uint64_t map_growths() const { return map_growths_; }
  // Turns the code into an Error whose text names the path and what to do.
  [[nodiscard]] Error error(int rc, std::string_view doing) const;
  [[nodiscard]] Error error(const Damage& damage) const;

 private:
  explicit LmdbEnv(EnvOptions options);
  Result<void> lock_directory();
  Result<void> open_env();
  Result<void> create();
  Result<void> open_at(const std::string& directory);
  Result<void> open_tables();
  int open_handles(MDB_txn* txn, bool create, std::string& missing);
  Result<void> upgrade();
  int copy_sealed(MDB_env* from);
  void close_env();
  int grow();
  [[nodiscard]] std::shared_lock<std::shared_mutex> enter_read() const {
    std::lock_guard turn(turnstile_);  // a waiting grow() goes before later readers
    return std::shared_lock(map_guard_);
  }

  EnvOptions options_;
  int lock_fd_ = -1;
  MDB_env* env_ = nullptr;
  std::array<TableHandle, kDbCount> dbs_;
  std::array<TableHandle, kTables.size() + 1> tables_;  // by Table's number
  std::uint64_t map_bytes_ = 0;
  std::uint64_t map_growths_ = 0;
  std::uint64_t pages_ = 0;  // pages that check_pages() has read
  bool creating_ = false;    // open_tables() makes a new store
  // The format that open_tables() found if it has no checksums; else 0.
  std::uint64_t old_format_ = 0;
  std::uint64_t upgraded_from_ = 0;  // the format before open() gave it checksums; else 0
  mutable std::mutex turnstile_;
  mutable std::shared_mutex map_guard_;  // shared: a read transaction is open; unique: map moves
};

}  // namespace gantry::store
