// Copies a store without checksums into a new one that has them. LmdbEnv::upgrade() does the rest.
#include <vector>

#include "ctld/store/sealed.h"

namespace gantry::store {

namespace {

constexpr std::size_t kCopyPerTransaction = 20'000;

struct Entry {
  MDB_val key;  // both point into the old file's map
  MDB_val value;
};

// Takes up to kCopyPerTransaction entries after the cursor's place. Returns 0, also at the end, or
// a code.
int take_some(Cursor& from, std::vector<Entry>& some) {
  some.clear();
  while (some.size() < kCopyPerTransaction) {
    Entry entry{};
    const int rc = from.get(entry.key, &entry.value, MDB_NEXT);
    if (rc == MDB_NOTFOUND) return 0;
    if (rc != 0) return rc;
    if (as_view(entry.key) != "format") some.push_back(entry);
  }
  return 0;
}

}  // namespace

int LmdbEnv::copy_sealed(MDB_env* from) {
  MDB_txn* read = nullptr;
  int rc = mdb_txn_begin(from, nullptr, MDB_RDONLY, &read);
  if (rc != 0) return rc;
  std::vector<const TableHandle*> tables;
  for (const TableHandle& table : dbs_) tables.push_back(&table);
  for (Table table : kTables) tables.push_back(&this->table(table));
  for (const TableHandle* table : tables) {
    MDB_dbi dbi = 0;
    rc = mdb_dbi_open(read, table->name.c_str(), 0, &dbi);
    if (rc == MDB_NOTFOUND) {  // a table of a later release
      rc = 0;
      continue;
    }
    if (rc != 0) break;
    Cursor cursor(read, dbi);
    std::vector<Entry> some;
    while ((rc = take_some(cursor, some)) == 0 && !some.empty()) {
      rc = write([&](MDB_txn* txn) {
        Cursor into(txn, table->dbi);
        int e = 0;
        for (std::size_t i = 0; e == 0 && i < some.size(); ++i)
          e = put_sealed(into, *table, some[i].key, as_view(some[i].value), 0);
        return e;
      });
      if (rc != 0) break;
    }
    if (rc != 0) break;
  }
  mdb_txn_abort(read);
  return rc;
}

}  // namespace gantry::store
