// LmdbStore: the Store on disk. One directory, one controller (locked), default sync mode.
//
// Before an answer only appends happen: events and specs by integer key, and blobs by a running
// number, with the index from digest to number in memory. Journal entries at or below `applied` are
// removed in pieces of kTrimPerTransaction. If more than half of the file is free at open, a
// compacted copy replaces it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ctld/store/scrub.h"
#include "ctld/store/store.h"

namespace gantry::store {

struct Damage;

struct LmdbOptions {
  std::string directory;                     // created if absent; its parent must exist
  std::uint64_t map_bytes = 64ULL << 30;     // address space, not disk space; doubled when full
  std::uint64_t max_map_bytes = 1ULL << 40;  // the map grows up to this; then out_of_space
  std::uint64_t compact_from_bytes = 64ULL << 20;  // smaller files are left as they are at open
};

class LmdbStore final : public Store {
 public:
  // The error already_exists means that another controller has the directory open; version_mismatch
  // means that a newer controller wrote it; malformed means that its pages or a checksum are
  // damaged. Values are checked when they are read: see load().
  static Result<std::unique_ptr<LmdbStore>> open(const LmdbOptions& options);
  ~LmdbStore() override;

  Result<void> append(const AppendBatch& batch) override;
  Result<void> fold(const FoldBatch& batch) override;
  Result<bool> maintain() override;
  Result<void> load(const LoadVisitor& visitor) const override;
  [[nodiscard]] Result<Bytes> read_spec(JobId job) const override;
  [[nodiscard]] Result<Bytes> read_blob(const Digest& digest) const override;
  [[nodiscard]] bool has_blob(const Digest& digest) const override;
  [[nodiscard]] Result<HistoryPage> read_history(const HistoryScan& scan) const override;
  [[nodiscard]] Stats stats() const override;
  // Any thread may call this, like read_history().
  Result<ScrubPiece> scrub(ScrubAt& at, std::uint64_t octets) const;
  // The format before open() added checksums; 0 if the store had them.
  [[nodiscard]] std::uint64_t upgraded_from() const;

 private:
  struct BlobPlace {
    std::uint64_t number = 0;
    std::size_t size = 0;
  };
  struct DigestHash {
    std::size_t operator()(const Digest& digest) const noexcept {
      std::size_t hash = 0;
      std::memcpy(&hash, digest.data(), sizeof hash);  // a content hash is already uniform
      return hash;
    }
  };
  using BlobIndex = std::unordered_map<Digest, BlobPlace, DigestHash>;

  explicit LmdbStore(std::unique_ptr<LmdbEnv> env);
  Result<void> read_positions();  // reads the members below from the file
  [[nodiscard]] Result<void> usable() const;
  Error poison(int rc, std::string_view doing);
  [[nodiscard]] Error error(int rc, const Damage& damage, std::string_view doing) const;

  std::unique_ptr<LmdbEnv> env_;
  EventSeq applied_;
  EventSeq last_;
  EventSeq first_;  // lowest entry that may still be in the journal
  JobId last_spec_;
  std::uint64_t next_blob_ = 0;
  BlobIndex blobs_;
  std::uint64_t commits_ = 0;
  std::chrono::steady_clock::time_point next_reader_check_;
  Error error_;                         // written once, before poisoned_ is set
  std::atomic<bool> poisoned_ = false;  // also read by the history reader's thread
};

}  // namespace gantry::store
