// Reads everything in the store again, piece by piece, to check each value against its checksum.
//
// A piece is one short read transaction, so it can run in parallel with the writer. Changes between
// two pieces are seen by the next one. For the history it also checks that the records exist to
// which the index points.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "ctld/store/store.h"

namespace gantry::store {

class LmdbEnv;

struct ScrubAt {
  std::size_t table = 0;
  Bytes key;  // the key that was checked last
};

struct ScrubPiece {
  std::uint64_t entries = 0;
  std::uint64_t octets = 0;
  std::vector<std::string> damaged;  // one sentence each
  bool end = false;                  // everything has been checked
};

// Checks up to this many octets from `at` on, and moves `at`; never takes longer than kReadBudget.
Result<ScrubPiece> scrub_piece(const LmdbEnv& env, ScrubAt& at, std::uint64_t octets);

// gantry-ctld --check-store: checks all pages and all values of the store in `directory`, which no
// controller may have open, and changes nothing. The error means that it could not be read at all.
struct StoreReport {
  std::uint64_t format = 0;
  std::uint64_t pages = 0;
  std::uint64_t entries = 0;
  std::uint64_t octets = 0;          // of keys and values
  std::vector<std::string> damaged;  // at most kMostDamaged
  std::uint64_t more_damaged = 0;
};
inline constexpr std::size_t kMostDamaged = 100;
Result<StoreReport> check_store(const std::string& directory);

}  // namespace gantry::store
