#include "ctld/store/scrub.h"

#include <fmt/core.h>

#include "ctld/store/history_key.h"
#include "ctld/store/page_check.h"
#include "ctld/store/sealed.h"

namespace gantry::store {
namespace {

const TableHandle& table_at(const LmdbEnv& env, std::size_t index) {
  return index < kDbCount ? env.table(static_cast<Db>(index))
                          : env.table(kTables[index - kDbCount]);
}

bool is_format(const TableHandle& table, std::string_view key) {
  return table.name == "store" && key.starts_with("format");  // checked when the store is opened
}

class Piece {
 public:
  Piece(MDB_txn* txn, const LmdbEnv& env, ScrubPiece& piece) : txn_(txn), env_(env), out_(piece) {}

  void look(const TableHandle& table, std::string_view key, MDB_val value) {
    ++out_.entries;
    out_.octets += key.size() + value.mv_size;
    Damage damage;
    if (!unseal(table, key, value)) {
      damage.say(table, key);
    } else if (&table == &env_.table(Db::history_index) && key.size() > kHistoryKeyBytes) {
      MDB_val record = as_val(key.substr(key.size() - kHistoryKeyBytes));
      if (mdb_get(txn_, env_.dbi(Db::history), &record, &value) == MDB_NOTFOUND)
        damage.say(table, key);
    }
    if (damage.table != nullptr) out_.damaged.push_back(env_.error(damage).message);
  }

 private:
  MDB_txn* txn_;
  const LmdbEnv& env_;
  ScrubPiece& out_;
};

}  // namespace

Result<ScrubPiece> scrub_piece(const LmdbEnv& env, ScrubAt& at, std::uint64_t octets) {
  ScrubPiece out;
  const auto deadline = std::chrono::steady_clock::now() + kReadBudget;
  const int rc = env.read([&](MDB_txn* txn) {
    Piece piece(txn, env, out);
    for (; at.table < kDbCount + kTables.size(); ++at.table, at.key.clear()) {
      const TableHandle& table = table_at(env, at.table);
      Cursor cursor(txn, table.dbi);
      MDB_val key = as_val(at.key);
      MDB_val value{};
      int e = cursor.get(key, &value, at.key.empty() ? MDB_FIRST : MDB_SET_RANGE);
      if (e == 0 && as_view(key) == at.key) e = cursor.get(key, &value, MDB_NEXT);
      for (; e == 0; e = cursor.get(key, &value, MDB_NEXT)) {
        if (!is_format(table, as_view(key))) piece.look(table, as_view(key), value);
        if (out.octets < octets && std::chrono::steady_clock::now() < deadline) continue;
        at.key = as_view(key);
        return 0;
      }
      if (e != MDB_NOTFOUND) return e;
    }
    out.end = true;
    return 0;
  });
  if (rc != 0) return tl::unexpected(env.error(rc, "looking at the state again"));
  return out;
}

Result<StoreReport> check_store(const std::string& directory) {
  EnvOptions options;
  options.directory = directory;
  options.read_only = true;
  options.most_leaves = ~0ULL;
  ASSIGN(env, LmdbEnv::open(options));
  StoreReport report;
  report.format = (*env)->old_format() != 0 ? (*env)->old_format() : kFormatVersion;
  report.pages = (*env)->pages_looked_at();
  if ((*env)->old_format() != 0) return report;
  ScrubAt at;
  for (bool end = false; !end;) {
    ASSIGN(piece, scrub_piece(**env, at, ~0ULL));
    end = piece->end;
    report.entries += piece->entries;
    report.octets += piece->octets;
    for (const std::string& damaged : piece->damaged)
      if (report.damaged.size() < kMostDamaged)
        report.damaged.push_back(damaged);
      else
        ++report.more_damaged;
  }
  return report;
}

}  // namespace gantry::store
