// Reading everything again, piece by piece, to see whether each value still has its checksum.
//
// A piece is one short read transaction, so it may run beside the writer; between two pieces what
// has changed is seen as it is then. For history it also sees that what the index names is there.
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
  Bytes key;  // the last one looked at
};

struct ScrubPiece {
  std::uint64_t entries = 0;
  std::uint64_t octets = 0;
  std::vector<std::string> damaged;  // one sentence each
  bool end = false;                  // all has been seen
};

// Up to so many octets from `at` on, which moves along; never longer than kReadBudget.
Result<ScrubPiece> scrub_piece(const LmdbEnv& env, ScrubAt& at, std::uint64_t octets);

// gantry-ctld --check-store: looks at all pages and all values of the store in `directory`, which
// no controller has open, and changes nothing. An error: it could not be read at all.
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
