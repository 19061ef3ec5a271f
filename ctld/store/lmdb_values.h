// Converts keys of LMDB's tables to values and back.
#pragma once

#include <cstring>

#include "common/assert.h"
#include "ctld/store/lmdb_env.h"

namespace gantry::store {

inline constexpr std::size_t kBlobKeyBytes = 8 + sizeof(Digest);

inline MDB_val number_val(const std::uint64_t& number) {
  return {sizeof number, const_cast<std::uint64_t*>(&number)};
}
inline std::uint64_t as_number(const MDB_val& val) {
  std::uint64_t number = 0;
  GANTRY_ASSERT(val.mv_size == sizeof number, "an integer key has eight octets");
  std::memcpy(&number, val.mv_data, sizeof number);
  return number;
}

inline Bytes blob_key(std::uint64_t number, const Digest& digest) {
  return ordered_key(number).append(reinterpret_cast<const char*>(digest.data()), digest.size());
}
inline Digest digest_of_blob(std::string_view key) {
  Digest digest;
  std::memcpy(digest.data(), key.data() + 8, sizeof digest);
  return digest;
}

}  // namespace gantry::store
