// Sealed values: each value in the store is followed by eight octets, a checksum over its table's
// name, its key and the value itself. So reading a value detects that it has changed, or was moved
// to another key or table.
#pragma once

#include <cstring>

#include "ctld/store/checksum.h"
#include "ctld/store/lmdb_env.h"

namespace gantry::store {

inline constexpr std::size_t kSealBytes = 8;

inline std::uint64_t seal_of(const TableHandle& table, std::string_view key,
                             std::string_view value) {
  return xxh64(value, xxh64(key, table.seed));
}

inline int put_sealed(Cursor& cursor, const TableHandle& table, MDB_val key, std::string_view value,
                      unsigned flags) {
  MDB_val place{value.size() + kSealBytes, nullptr};
  if (int rc = cursor.reserve(key, place, flags); rc != 0) return rc;
  const std::uint64_t seal = seal_of(table, as_view(key), value);
  auto* at = static_cast<char*>(place.mv_data);
  if (!value.empty()) std::memcpy(at, value.data(), value.size());
  std::memcpy(at + value.size(), &seal, sizeof seal);
  return 0;
}

// Removes the checksum from `value`. Returns false if it is wrong.
inline bool unseal(const TableHandle& table, std::string_view key, MDB_val& value) {
  if (value.mv_size < kSealBytes) return false;
  value.mv_size -= kSealBytes;
  std::uint64_t seal = 0;
  std::memcpy(&seal, static_cast<const char*>(value.mv_data) + value.mv_size, sizeof seal);
  return seal == seal_of(table, key, as_view(value));
}

}  // namespace gantry::store
