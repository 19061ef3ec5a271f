// Accounting of finished jobs: the record, which jobs a query selects, and pages. It is pure: the
// same rules apply to the history on disk and to the jobs that the core still has in memory.
//
// One query is answered in pages. The core's own jobs come first (live phase, by job id), then the
// history by end time. A job that ends in between may be in both phases, but never in neither.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/job/public_state.h"
#include "common/proto/history.h"
#include "common/proto/job_query.h"
#include "common/proto/job_ref.h"
#include "common/result.h"
#include "common/types.h"
#include "ctld/store/store.h"

namespace gantry::acct {

inline constexpr std::uint32_t kMaxPageRows = 10'000;          // rows in one reply
inline constexpr std::size_t kMaxPageBytes = 8 * 1024 * 1024;  // encoded; a message may have 16 MiB
inline constexpr std::size_t kMaxQueryJobs = 10'000;           // jobs named in one query

// The record of a finished run of a job, for the fold. Asserts that the run has ended and has an
// outcome.
store::HistoryEntry to_entry(const proto::HistoryRow& row);
// The error malformed means that the record is damaged, or that a newer Gantry wrote it in a way
// that cannot be skipped.
Result<proto::HistoryRow> from_entry(const store::HistoryEntry& entry);

// The place in the results where a page starts.
struct PagePosition {
  enum class Phase : std::uint8_t { live = 0, history = 1 };
  Phase phase = Phase::live;
  JobId live_after{};       // in the live phase: jobs with a greater id
  std::uint32_t named = 0;  // history phase: index into the query's jobs, if it names any
  std::optional<store::HistoryPosition> after;
  friend bool operator==(const PagePosition&, const PagePosition&) = default;
};
Bytes to_bytes(const PagePosition& position);
// Reads a position; empty bytes are the first page; the error is malformed.
Result<PagePosition> page_position(std::string_view bytes);

// The tasks of an array that a query names. A lookup takes O(log of their number).
class TaskSet {
 public:
  explicit TaskSet(const std::vector<IndexRange>& ranges);
  [[nodiscard]] bool meets(std::uint32_t first,
                           std::uint32_t last) const;  // whether one of first..last is among them

 private:
  std::vector<std::pair<std::uint32_t, std::uint32_t>> spans_;  // ascending and disjoint
};

// A query in a form that can be compared with rows. It keeps no reference to the message.
class HistoryQuery {
 public:
  // `only` and `also` restrict the rows to those of this owner, and of these queues (for an
  // ordinary user and the tenants whose jobs the user may see); not set for users who may see all.
  // The error invalid_argument means an unknown state, an end before the start, a malformed node
  // list, or too many jobs; malformed means a wrong position.
  static Result<HistoryQuery> make(const proto::QueryHistory& message, std::optional<Uid> only,
                                   const std::vector<std::string>& also = {});

  [[nodiscard]] bool matches(const proto::HistoryRow& row) const;
  // The same without the named jobs, for callers that looked the row up by id.
  [[nodiscard]] bool matches_apart_from_jobs(const proto::HistoryRow& row) const;
  // The index of the first of jobs() that names the row.
  [[nodiscard]] std::optional<std::size_t> named_by(const proto::JobRow& row) const;

  [[nodiscard]] const std::vector<proto::JobRef>& jobs() const { return jobs_; }
  [[nodiscard]] const std::optional<Instant>& start() const { return start_; }
  [[nodiscard]] std::size_t limit() const { return limit_; }  // 1..kMaxPageRows
  [[nodiscard]] bool series() const {
    return series_;
  }  // whether the series of GPU use are asked for
  [[nodiscard]] bool duplicates() const { return duplicates_; }
  [[nodiscard]] const PagePosition& position() const { return position_; }

 private:
  [[nodiscard]] bool was_in_wanted_state(const proto::JobRow& row) const;

  std::vector<proto::JobRef> jobs_;
  std::vector<TaskSet> tasks_;               // tasks of each of jobs_
  std::multimap<JobId, std::size_t> by_id_;  // indexes into jobs_
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

// Jobs of the core that match a query: in the order of ids, after the query's position, at most its
// limit. `more` is only set if there are rows.
struct LiveRows {
  std::vector<proto::HistoryRow> rows;
  bool more = false;
};

// Makes the next page. `live` is used in the live phase only. At most kMaxExamined records are
// read, so that one query cannot keep others waiting; a page may therefore have few rows or none
// although more follow.
inline constexpr std::size_t kMaxExamined = 50'000;
Result<proto::HistoryReply> next_page(const store::Store& store, const HistoryQuery& query,
                                      LiveRows live, Instant now);

}  // namespace gantry::acct
