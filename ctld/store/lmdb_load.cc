// Loads the store, and reads single specs and blobs; each value's checksum is checked.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "ctld/store/lmdb_store.h"
#include "ctld/store/lmdb_values.h"
#include "ctld/store/sealed.h"

namespace gantry::store {

namespace {

// Passes records to the visitor, and remembers the first error.
class Load {
 public:
  Load(MDB_txn* txn, const LmdbEnv& env, Damage& damage, Result<void>& told)
      : txn_(txn), env_(env), damage_(damage), told_(told) {}

  // Calls visit(key, value) for each entry from `first` on. Returns 0 at the end, or a code.
  template <class Visit>
  int each(const TableHandle& table, Visit&& visit) {
    Cursor cursor(txn_, table.dbi);
    MDB_val key{};
    MDB_val value{};
    int e = 0;
    while ((e = cursor.get(key, &value, MDB_NEXT)) == 0) {
      if (!unseal(table, as_view(key), value)) return damage_.say(table, as_view(key));
      told_ = visit(as_view(key), as_view(value));
      if (!told_) return MDB_NOTFOUND;
    }
    return e == MDB_NOTFOUND ? 0 : e;
  }

  int events(EventSeq from, const LoadVisitor& visitor) {
    const TableHandle& table = env_.table(Db::journal);
    std::uint64_t expected = from.value();
    Cursor journal(txn_, table.dbi);
    MDB_val key = number_val(expected);
    MDB_val value{};
    int e = 0;
    for (e = journal.get(key, &value, MDB_SET_RANGE); e == 0; ++expected) {
      if (as_number(key) != expected || !unseal(table, as_view(key), value))
        return damage_.say(table, as_view(key));
      told_ = visitor.event(EventSeq{expected}, as_view(value));
      if (!told_) return MDB_NOTFOUND;
      e = journal.get(key, &value, MDB_NEXT);
    }
    return e == MDB_NOTFOUND ? 0 : e;
  }

 private:
  MDB_txn* txn_;
  const LmdbEnv& env_;
  Damage& damage_;
  Result<void>& told_;
};

}  // namespace

Result<void> LmdbStore::load(const LoadVisitor& visitor) const {
  if (auto ok = usable(); !ok) return ok;
  Result<void> told;  // the visitor's own error, if any
  Damage damage;
  int rc = env_->read([&](MDB_txn* txn) {
    Load load(txn, *env_, damage, told);
    int e = 0;
    for (Table table : kTables) {
      e = load.each(env_->table(table), [&](std::string_view key, std::string_view value) {
        return visitor.record(table, key, value);
      });
      if (e != 0 || !told) return e;
    }
    e = load.each(env_->table(Db::specs), [&](std::string_view key, std::string_view value) {
      return visitor.spec(JobId{as_number(as_val(key))}, value);
    });
    if (e != 0 || !told) return e;
    // All blobs are read. Otherwise a blob missing from the index would be noticed only when its
    // job starts.
    e = load.each(env_->table(Db::blobs), [&](std::string_view key, std::string_view value) {
      return visitor.blob(digest_of_blob(key), value.size());
    });
    if (e != 0 || !told) return e;
    return load.events(EventSeq{std::max(applied_.value() + 1, first_.value())}, visitor);
  });
  if (!told) return told;
  if (rc != 0) return tl::unexpected(error(rc, damage, "loading the state"));
  return {};
}

Result<Bytes> LmdbStore::read_spec(JobId job) const {
  TRY(usable());
  Bytes spec;
  Damage damage;
  int rc = env_->read([&](MDB_txn* txn) {
    std::uint64_t id = job.value();
    MDB_val key = number_val(id);
    MDB_val value{};
    int e = mdb_get(txn, env_->dbi(Db::specs), &key, &value);
    if (e == 0 && !unseal(env_->table(Db::specs), as_view(key), value))
      return damage.say(env_->table(Db::specs), as_view(key));
    if (e == 0) spec = as_view(value);
    return e;
  });
  if (rc == MDB_NOTFOUND)
    return fail(ErrorCode::not_found, fmt::format("job {} has no specification", job.value()));
  if (rc != 0) return tl::unexpected(error(rc, damage, "reading a job's specification"));
  return spec;
}

bool LmdbStore::has_blob(const Digest& digest) const {
  return blobs_.contains(digest);
}

Result<Bytes> LmdbStore::read_blob(const Digest& digest) const {
  TRY(usable());
  auto it = blobs_.find(digest);
  if (it == blobs_.end()) return fail(ErrorCode::not_found, "no such script or environment");
  Bytes content;
  Damage damage;
  int rc = env_->read([&](MDB_txn* txn) {
    Bytes bytes = blob_key(it->second.number, digest);
    MDB_val key = as_val(bytes);
    MDB_val value{};
    int e = mdb_get(txn, env_->dbi(Db::blobs), &key, &value);
    if (e == 0 && !unseal(env_->table(Db::blobs), bytes, value))
      return damage.say(env_->table(Db::blobs), bytes);
    if (e == 0) content = as_view(value);
    return e;
  });
  if (rc != 0) return tl::unexpected(error(rc, damage, "reading a script or environment"));
  return content;
}

Result<ScrubPiece> LmdbStore::scrub(ScrubAt& at, std::uint64_t octets) const {
  TRY(usable());
  return scrub_piece(*env_, at, octets);
}

std::uint64_t LmdbStore::upgraded_from() const {
  return env_->upgraded_from();
}

}  // namespace gantry::store
