// The controller's interface to durable storage: bytes in, bytes out. Two implementations,
// LmdbStore (disk) and MemoryStore (tests and simulator), pass the same contract tests.
//
// append() runs before answers are sent: it only appends, in one transaction, and is durable when
// it returns. fold() brings the mutable records up to an event, in one transaction that also moves
// `applied`. After a crash, load() returns the records as of `applied`, then every later event.
//
// A failed commit is fatal (ErrorCode::out_of_space or io_error; the text names path and remedy):
// then the store refuses everything with the same error, because the state of the disk is unknown
// until it is opened again. Batches out of order, with gaps or not sorted are bugs of the caller
// and assert.
//
// Threads: one thread (the loop's) calls everything, except read_history and read_spec, which any
// thread may call at any time; each is one short read transaction (kReadBudget).
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::store {

using Digest = std::array<std::uint8_t, 32>;  // content hash of a blob; chosen by the caller

// Version of the tables below. A store written by a newer one is refused at open.
inline constexpr std::uint64_t kFormatVersion = 7;
// From this version on every value has a checksum; older stores get them when they are opened.
inline constexpr std::uint64_t kSealedFormat = 7;
// Keys of record tables: 1..kMaxKeyBytes octets (LMDB's limit is 511).
inline constexpr std::size_t kMaxKeyBytes = 500;
// Journal entries removed in one transaction.
inline constexpr std::size_t kTrimPerTransaction = 4096;
// How long one read may keep a transaction open, and so keep freed pages from being reused.
inline constexpr std::chrono::milliseconds kReadBudget{50};
// Upper bounds of one history page.
inline constexpr std::size_t kMaxHistoryPage = 4096;                  // records in one page
inline constexpr std::size_t kMaxHistoryPageBytes = 4 * 1024 * 1024;  // octets

// Every record table, once: X(name, number, what a record is). Numbers and names are permanent.
#define GANTRY_STORE_TABLES(X)                                                \
  X(meta, 1, "cluster-wide scalars: epoch, next ids")                         \
  X(job_state, 2, "mutable part of a job or array, by ordered_key(job id)")   \
  X(node, 3, "a node, by name")                                               \
  X(user_key, 4, "a registered public key")                                   \
  X(node_key, 5, "an enrolled node key")                                      \
  X(request, 6, "what a client's request id made")                            \
  X(partition, 7, "a partition's changed state, by name")                     \
  X(usage, 8, "what was spent of a budget, by its name")                      \
  X(document, 9, "a tenancy document, by kind and name")                      \
  X(share, 10, "a node of the fair-share tree, by ordered_key(share id)")     \
  X(reservation, 11, "a reservation, by name")                                \
  X(revision, 12, "one apply of tenancy documents, by ordered_key(number)")   \
  X(alert, 13, "quota that reached a threshold, by ordered_key(number)")      \
  X(ledger, 14, "a sum of the ledger, by period, tenant, project, user, ...") \
  X(increase, 15, "a request for more, by ordered_key(number)")               \
  X(posted, 16, "a batch of charges besides jobs, by its name")               \
  X(trigger, 17, "a trigger, by ordered_key(number)")                         \
  X(use, 18, "what a QOS or an account has used, by its key")                 \
  X(secret, 19, "a sealed secret, by TENANT/NAME")                            \
  X(service, 20, "a service beside its document, by name")

enum class Table : std::uint8_t {
#define X(name, number, what) name = number,
  GANTRY_STORE_TABLES(X)
#undef X
};
inline constexpr std::array kTables{
#define X(name, number, what) Table::name,
    GANTRY_STORE_TABLES(X)
#undef X
};
std::string_view name_of(Table table);

// Eight octets, big-endian: byte order equals numeric order, and neighbours share a page.
Bytes ordered_key(std::uint64_t value);
std::uint64_t ordered_key_value(std::string_view key);  // asserts on a wrong length

struct JournalEntry {
  EventSeq seq;
  Bytes data;
};

// One turn of the loop. seqs are contiguous and continue the journal; spec ids ascend and are above
// every id ever appended. A blob that exists already is left as it is.
struct AppendBatch {
  std::vector<JournalEntry> events;
  std::vector<std::pair<JobId, Bytes>> specs;
  std::vector<std::pair<Digest, Bytes>> blobs;
  [[nodiscard]] bool empty() const { return events.empty() && specs.empty() && blobs.empty(); }
};

struct RecordChange {
  Table table;
  Bytes key;
  std::optional<Bytes> value;  // not set: remove the record (it need not exist)
};

// One finished job (or array task), stored for good. Several runs with the same job id differ in
// `end`; a second entry with the same id and end replaces the first.
struct HistoryEntry {
  Instant end;  // >= 0
  JobId job;
  std::optional<JobId> array;  // the array it belongs to, whose id finds it too
  Bytes data;
};

struct FoldBatch {
  EventSeq applied;                   // the records include this event; it never goes back
  std::vector<RecordChange> records;  // sorted by (table, key), each at most once
  std::vector<HistoryEntry> history;
  std::vector<JobId> spec_deletes;   // sorted; entries that do not exist are ignored
  std::vector<Digest> blob_deletes;  // entries that do not exist are ignored
};

// Called in this order: every record (table by table, key order), every spec (id order), every blob
// (digest and size only; see read_blob), then the events after `applied` in order. Views are valid
// only during the call. The first error stops the load and is returned.
struct LoadVisitor {
  std::function<Result<void>(Table, std::string_view key, std::string_view value)> record;
  std::function<Result<void>(JobId, std::string_view spec)> spec;
  std::function<Result<void>(const Digest&, std::size_t size)> blob;
  std::function<Result<void>(EventSeq, std::string_view data)> event;
};

// Position in the history: end time, then job id.
struct HistoryPosition {
  Instant end;
  JobId job;
  friend auto operator<=>(const HistoryPosition&, const HistoryPosition&) = default;
};

enum class HistoryOrder : std::uint8_t { oldest_first, newest_first };

// A half-open window of end times [from, to), in one direction, starting after `resume`.
struct HistoryScan {
  std::optional<Instant> from;
  std::optional<Instant> to;
  HistoryOrder order = HistoryOrder::newest_first;
  std::optional<HistoryPosition> resume;  // `resume` of the page before
  std::optional<JobId> id;                // only this job, or the elements of this array
  std::size_t limit = 1000;               // 1..kMaxHistoryPage records
};

struct HistoryPage {
  std::vector<HistoryEntry> entries;      // `array` is not set here; the caller's data has it
  std::optional<HistoryPosition> resume;  // not set: there is no more
};

struct Stats {
  EventSeq last;  // newest event in the journal, or `applied`
  EventSeq applied;
  std::uint64_t journal_entries = 0;  // in the table, without trimmed ones
  std::uint64_t specs = 0;
  std::uint64_t blobs = 0;
  std::uint64_t history = 0;
  std::uint64_t commits = 0;     // since the store was opened
  std::uint64_t used_bytes = 0;  // pages in use
  std::uint64_t file_bytes = 0;  // pages ever used; the file's length
  std::uint64_t map_bytes = 0;
  std::uint64_t map_growths = 0;  // since the store was opened
};

class Store {
 public:
  virtual ~Store() = default;

  // The batch is durable when this returns. An empty batch is allowed and costs nothing.
  virtual Result<void> append(const AppendBatch& batch) = 0;
  // Records, history, deletes and `applied`, all or nothing; also removes a first piece of the
  // journal.
  virtual Result<void> fold(const FoldBatch& batch) = 0;
  // Does one bounded piece of maintenance: trims the journal at or below `applied`, and checks for
  // dead readers once a minute. Returns true if there is more to do now. Call it between turns.
  virtual Result<bool> maintain() = 0;

  virtual Result<void> load(const LoadVisitor& visitor) const = 0;
  // Error not_found if it does not exist.
  [[nodiscard]] virtual Result<Bytes> read_spec(JobId job) const = 0;
  [[nodiscard]] virtual Result<Bytes> read_blob(const Digest& digest) const = 0;
  [[nodiscard]] virtual bool has_blob(const Digest& digest) const = 0;
  // Reads one page. It may have fewer than `limit` records, even none, and still set `resume`, if a
  // bound was reached.
  [[nodiscard]] virtual Result<HistoryPage> read_history(const HistoryScan& scan) const = 0;

  [[nodiscard]] virtual Stats stats() const = 0;
};

}  // namespace gantry::store
