// MemoryStore: the Store's twin for tests and the simulator. It makes the same checks, keeps the
// same order and returns the same errors. What a committed call wrote survives restart(), as on a
// disk.
//
// A fault is planned for the next call, and acts like a real one: the call fails, and the store
// refuses everything until restart(), which stands for opening the directory again. With
// keep_everything it also remembers each event, spec and blob ever committed, so that a test can
// replay from empty and compare.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ctld/store/store.h"

namespace gantry::store {

// Where the controller dies during a write: before anything is durable, or after everything is
// durable but before it is acknowledged.
enum class CrashPoint : std::uint8_t { before_commit, after_commit };

class MemoryStore final : public Store {
 public:
  struct Options {
    bool keep_everything = false;
  };
  MemoryStore() = default;
  explicit MemoryStore(Options options) : options_(options) {}

  Result<void> append(const AppendBatch& batch) override;
  Result<void> fold(const FoldBatch& batch) override;
  Result<bool> maintain() override;
  Result<void> load(const LoadVisitor& visitor) const override;
  [[nodiscard]] Result<Bytes> read_spec(JobId job) const override;
  [[nodiscard]] Result<Bytes> read_blob(const Digest& digest) const override;
  [[nodiscard]] bool has_blob(const Digest& digest) const override;
  [[nodiscard]] Result<HistoryPage> read_history(const HistoryScan& scan) const override;
  [[nodiscard]] Stats stats() const override;

  // The next append (or fold) fails with io_error at this point.
  void crash_next_append(CrashPoint point) { append_crash_ = point; }
  void crash_next_fold(CrashPoint point) { fold_crash_ = point; }
  // Writes that would bring the store's content above this many octets fail with out_of_space.
  void limit_space(std::optional<std::uint64_t> octets) { space_ = octets; }
  // The controller's process dies and starts again: planned crashes and the poisoned state are
  // gone, committed data stays. The space limit stays too, because a restart does not empty a disk.
  void restart();
  [[nodiscard]] bool poisoned() const { return poisoned_.has_value(); }

  // All events ever committed, in their order; only with keep_everything.
  [[nodiscard]] const std::vector<JournalEntry>& every_event() const { return every_event_; }
  [[nodiscard]] const std::vector<std::pair<JobId, Bytes>>& every_spec() const {
    return every_spec_;
  }

 private:
  // Applies write() unless a planned fault prevents it. `growth` is the number of octets that it
  // will add.
  template <class Write>
  Result<void> commit(std::optional<CrashPoint>& crash, std::uint64_t growth, Write&& write);
  [[nodiscard]] Result<void> usable() const;
  void trim();

  Options options_;
  EventSeq applied_;
  EventSeq last_;
  JobId last_spec_;
  std::deque<JournalEntry> journal_;
  std::map<std::pair<Table, Bytes>, Bytes> records_;
  std::map<JobId, Bytes> specs_;
  std::map<Digest, Bytes> blobs_;
  std::map<Bytes, Bytes> history_;  // by history_key
  std::set<Bytes> history_index_;   // history_index_key
  std::uint64_t octets_ = 0;        // octets of all keys and values above, without the index
  std::uint64_t commits_ = 0;

  std::optional<CrashPoint> append_crash_;
  std::optional<CrashPoint> fold_crash_;
  std::optional<std::uint64_t> space_;
  std::optional<Error> poisoned_;
  std::vector<JournalEntry> every_event_;
  std::vector<std::pair<JobId, Bytes>> every_spec_;
};

}  // namespace gantry::store
