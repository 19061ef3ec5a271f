// One page of history from LMDB, in one read transaction that ends when the page has enough rows or
// bytes, or after kReadBudget. So it never prevents the writer for long from reusing freed pages.
#include "ctld/store/history_key.h"
#include "ctld/store/lmdb_env.h"
#include "ctld/store/lmdb_store.h"
#include "ctld/store/sealed.h"

namespace gantry::store {

namespace {

// Walks the keys of [lo, hi) in either direction.
class RangeWalk {
 public:
  RangeWalk(MDB_txn* txn, MDB_dbi dbi, const HistoryBounds& bounds, HistoryOrder order)
      : cursor_(txn, dbi), bounds_(bounds), forward_(order == HistoryOrder::oldest_first) {}

  // Returns 0 with key and value, MDB_NOTFOUND at the end, or another code.
  int next(MDB_val& key, MDB_val& value) {
    int rc =
        started_ ? cursor_.get(key, &value, forward_ ? MDB_NEXT : MDB_PREV) : start(key, value);
    started_ = true;
    if (rc != 0) return rc;
    bool inside = forward_ ? as_view(key) < bounds_.hi : as_view(key) >= bounds_.lo;
    return inside ? 0 : MDB_NOTFOUND;
  }

 private:
  int start(MDB_val& key, MDB_val& value) {
    key = as_val(forward_ ? bounds_.lo : bounds_.hi);
    int rc = cursor_.get(key, &value, MDB_SET_RANGE);
    if (forward_) return rc;
    return cursor_.get(key, &value, rc == MDB_NOTFOUND ? MDB_LAST : MDB_PREV);
  }

  Cursor cursor_;
  const HistoryBounds& bounds_;
  bool forward_;
  bool started_ = false;
};

}  // namespace

Result<HistoryPage> LmdbStore::read_history(const HistoryScan& scan) const {
  TRY(usable());
  const HistoryBounds bounds = history_bounds(scan);
  const auto deadline = std::chrono::steady_clock::now() + kReadBudget;
  HistoryPage page;
  const TableHandle& table = env_->table(Db::history);
  const TableHandle& walked = env_->table(scan.id ? Db::history_index : Db::history);
  Damage damage;
  int rc = env_->read([&](MDB_txn* txn) {
    RangeWalk walk(txn, walked.dbi, bounds, scan.order);
    Cursor records(txn, env_->dbi(Db::history));
    std::size_t octets = 0;
    MDB_val key{};
    MDB_val value{};
    int e = 0;
    while ((e = walk.next(key, value)) == 0) {
      if (page.entries.size() == scan.limit || octets >= kMaxHistoryPageBytes ||
          (!page.entries.empty() && std::chrono::steady_clock::now() >= deadline)) {
        page.resume = HistoryPosition{page.entries.back().end, page.entries.back().job};
        return 0;
      }
      std::string_view at = as_view(key);
      if (!unseal(walked, at, value) || at.size() < kHistoryKeyBytes) return damage.say(walked, at);
      if (scan.id) {
        at.remove_prefix(at.size() - kHistoryKeyBytes);
        MDB_val record_key = as_val(at);
        e = records.get(record_key, &value, MDB_SET_KEY);
        // The index names a record that does not exist.
        if (e == MDB_NOTFOUND) return damage.say(walked, at);
        if (e != 0) return e;
        if (!unseal(table, at, value)) return damage.say(table, at);
      }
      HistoryPosition position = history_position(at);
      page.entries.push_back({position.end, position.job, std::nullopt, Bytes(as_view(value))});
      octets += value.mv_size;
    }
    return e == MDB_NOTFOUND ? 0 : e;
  });
  if (rc != 0) return tl::unexpected(error(rc, damage, "reading the history"));
  return page;
}

}  // namespace gantry::store
