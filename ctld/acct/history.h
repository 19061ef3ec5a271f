// Accounting of finished jobs: the record, which jobs a query means, and its pages. Pure: the same
// rules serve the history on disk and the jobs that the core still has in memory.
//
// One query is answered in pages. The core's own jobs come first (live phase, by job id), then the
// history by end time: a job that ends in between is in both, never in neither.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/public_state.h"
#include "common/proto/history.h"
#include "common/result.h"
#include "common/types.h"
#include "ctld/store/store.h"

namespace gantry::acct {

inline constexpr std::uint32_t kMaxPageRows = 10'000;          // rows in one reply
inline constexpr std::size_t kMaxPageBytes = 8 * 1024 * 1024;  // encoded; a message has 16 MiB
inline constexpr std::size_t kMaxQueryJobs = 10'000;           // jobs named in one query

// The record of a finished run of a job, for the fold. Asserts that it has ended, with an outcome.
store::HistoryEntry to_entry(const proto::HistoryRow& row);
// malformed: damaged, or written by a newer Gantry in a way that cannot be skipped.
Result<proto::HistoryRow> from_entry(const store::HistoryEntry& entry);

// Where a page starts.
struct PagePosition {
  enum class Phase : std::uint8_t { live = 0, history = 1 };
  Phase phase = Phase::live;
  JobId live_after{};       // live: jobs with a greater id
  std::uint32_t named = 0;  // history: index into the query's jobs, if it names any
  std::optional<store::HistoryPosition> after;
  friend bool operator==(const PagePosition&, const PagePosition&) = default;
};
Bytes to_bytes(const PagePosition& position);
Result<PagePosition> page_position(std::string_view bytes);  // empty: the first; malformed

// A query in the form that rows are held against. Owns no reference to the message.
class HistoryQuery {
 public:
  // `only`: rows of this owner, and of the queues `also` (a plain user asks, and their tenants);
  // unset for who may see all.
  // invalid_argument: an unknown state, an end before the start, a malformed node list, too many
  // jobs; malformed: a strange position.
  static Result<HistoryQuery> make(const proto::QueryHistory& message, std::optional<Uid> only,
                                   const std::vector<std::string>& also = {});

  [[nodiscard]] bool matches(const proto::HistoryRow& row) const;
  // The same without the jobs named: for who looked them up by id.
  [[nodiscard]] bool matches_apart_from_jobs(const proto::HistoryRow& row) const;
  // Index of the first of jobs() that names the row.
  [[nodiscard]] std::optional<std::size_t> named_by(const proto::JobRow& row) const;

  [[nodiscard]] const std::vector<proto::JobRef>& jobs() const { return jobs_; }
  [[nodiscard]] const std::optional<Instant>& start() const { return start_; }
  [[nodiscard]] std::size_t limit() const { return limit_; }  // 1..kMaxPageRows
  [[nodiscard]] bool series() const { return series_; }       // of GPUs
  [[nodiscard]] bool duplicates() const { return duplicates_; }
  [[nodiscard]] const PagePosition& position() const { return position_; }

 private:
  [[nodiscard]] bool was_in_wanted_state(const proto::JobRow& row) const;

  std::vector<proto::JobRef> jobs_;
  std::multimap<JobId, std::size_t> by_id_;  // into jobs_
  std::set<std::string, std::less<>> users_, names_, partitions_, accounts_, nodes_, reservations_;
  std::set<std::string, std::less<>> tenants_;
  std::optional<StateSet> states_;
  std::optional<Instant> start_;
  std::optional<Instant> end_;
  std::optional<Uid> only_;
  std::set<std::string, std::less<>> also_;
  std::size_t limit_ = kMaxPageRows;
  bool duplicates_ = false;
  bool series_ = false;
  PagePosition position_;
};

// Jobs of the core that match a query, in id order, after its position, at most its limit; `more`
// only with rows.
struct LiveRows {
  std::vector<proto::HistoryRow> rows;
  bool more = false;
};

// The next page. `live` counts in the live phase only. Reads at most kMaxExamined records, so that
// one query cannot keep the others waiting: a page may have few rows, or none, and more to come.
inline constexpr std::size_t kMaxExamined = 50'000;
Result<proto::HistoryReply> next_page(const store::Store& store, const HistoryQuery& query,
                                      LiveRows live, Instant now);

}  // namespace gantry::acct
