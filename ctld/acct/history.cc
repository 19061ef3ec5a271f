// Encodes records, matches them with queries, and encodes positions; see the header. Pages are in
// history_page.cc.
#include "ctld/acct/history.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "common/proto/history.h"
#include "common/proto/job_query.h"
#include "common/proto/job_ref.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"
#include "ctld/core/task_list.h"
#include "ctld/store/store.h"

namespace gantry::acct {

namespace {

// A position is phase and flags, named (4), then live_after (8), or end (8) and job (8); all are
// big-endian.
constexpr std::size_t kPositionBytes = 2 + 8 + 16;

// True if the tasks of an array's row ("3-9,12%4") contain a task that is asked for. A user chooses
// both lists, so this takes no product of them.
bool has_task(const TaskSet& asked, std::string_view tasks) {
  const bool cut = tasks.ends_with(core::kMoreTasks);
  if (cut) tasks.remove_suffix(core::kMoreTasks.size());
  const auto spec = parse_index_ranges(tasks);
  if (!spec) return false;
  for (const IndexRange& range : spec->ranges) {
    if (range.step <= 1 && asked.meets(range.first, range.last)) return true;
    if (range.step > 1)
      for (std::uint64_t i = range.first; i <= range.last; i += range.step)
        if (asked.meets(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i))) return true;
  }
  // Indexes that were cut off the list may be any of the later tasks.
  return cut && asked.meets(spec->ranges.back().last, UINT32_MAX);
}

bool allows(const std::set<std::string, std::less<>>& set, std::string_view value) {
  return set.empty() || set.contains(value);
}

Result<std::set<std::string, std::less<>>> expanded(const std::vector<std::string>& lists) {
  std::set<std::string, std::less<>> nodes;
  for (const std::string& list : lists) {
    ASSIGN(names, expand_hostlist(list));
    nodes.insert(names->begin(), names->end());
  }
  return nodes;
}

template <class Set>
bool ran_on_one_of(const Set& nodes, const std::string& node_list) {
  auto names = expand_hostlist(node_list);
  return names && std::any_of(names->begin(), names->end(),
                              [&](const std::string& name) { return nodes.contains(name); });
}

}  // namespace

TaskSet::TaskSet(const std::vector<IndexRange>& ranges) {
  for (const IndexRange& range : ranges) {
    if (range.step <= 1) {
      spans_.emplace_back(range.first, range.last);
      continue;
    }
    for (std::uint64_t i = range.first; i <= range.last; i += range.step)
      spans_.emplace_back(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i));
  }
  std::sort(spans_.begin(), spans_.end());
  std::size_t kept = 0;  // joined, so that both the first and the last indexes ascend
  for (const auto& [first, last] : spans_) {
    if (kept > 0 && first <= spans_[kept - 1].second)
      spans_[kept - 1].second = std::max(spans_[kept - 1].second, last);
    else
      spans_[kept++] = {first, last};
  }
  spans_.resize(kept);
}

bool TaskSet::meets(std::uint32_t first, std::uint32_t last) const {
  const auto it =
      std::lower_bound(spans_.begin(), spans_.end(), first,
                       [](const auto& span, std::uint32_t index) { return span.second < index; });
  return it != spans_.end() && it->first <= last;
}

store::HistoryEntry to_entry(const proto::HistoryRow& row) {
  const proto::JobRow& job = row.row;
  GANTRY_ASSERT(job.phase == Phase::ended && job.ended && job.outcome,
                "only an ended job goes to the history");
  store::HistoryEntry entry{*job.ended, job.job, std::nullopt, codec::encode(row)};
  if (job.array_job != JobId{}) entry.array = job.array_job;
  // The id of its leader finds a component too, as an array's id finds a task.
  if (job.het && job.het->offset != 0) entry.array = job.het->leader;
  return entry;
}

Result<proto::HistoryRow> from_entry(const store::HistoryEntry& entry) {
  auto row = codec::decode<proto::HistoryRow>(entry.data);
  if (!row)
    return fail(ErrorCode::malformed, fmt::format("the history record of job {} cannot be read: {}",
                                                  entry.job.value(), row.error().message));
  if (row->row.job != entry.job || row->row.ended != entry.end)
    return fail(ErrorCode::malformed,
                fmt::format("the history record of job {} is another job's", entry.job.value()));
  return row;
}

Bytes to_bytes(const PagePosition& position) {
  Bytes bytes;
  bytes += static_cast<char>(position.phase);
  bytes += static_cast<char>(position.after ? 1 : 0);
  bytes += store::ordered_key(position.named);
  if (position.phase == PagePosition::Phase::live) {
    bytes += store::ordered_key(position.live_after.value()) + store::ordered_key(0);
  } else {
    store::HistoryPosition after = position.after.value_or(store::HistoryPosition{});
    bytes += store::ordered_key(static_cast<std::uint64_t>(after.end.us)) +
             store::ordered_key(after.job.value());
  }
  return bytes;
}

Result<PagePosition> page_position(std::string_view bytes) {
  if (bytes.empty()) return PagePosition{};
  if (bytes.size() != kPositionBytes || static_cast<std::uint8_t>(bytes[0]) > 1 ||
      static_cast<std::uint8_t>(bytes[1]) > 1)
    return fail(ErrorCode::malformed, "the position in the history is not one that we gave");
  std::uint64_t named = store::ordered_key_value(bytes.substr(2, 8));
  std::uint64_t first = store::ordered_key_value(bytes.substr(10, 8));
  std::uint64_t second = store::ordered_key_value(bytes.substr(18, 8));
  if (named > kMaxQueryJobs || first > INT64_MAX)
    return fail(ErrorCode::malformed, "the position in the history is not one that we gave");
  PagePosition position;
  position.phase = static_cast<PagePosition::Phase>(bytes[0]);
  position.named = static_cast<std::uint32_t>(named);
  if (position.phase == PagePosition::Phase::live) {
    position.live_after = JobId{first};
  } else if (bytes[1] != 0) {
    position.after = {Instant{static_cast<std::int64_t>(first)}, JobId{second}};
  }
  return position;
}

Result<HistoryQuery> HistoryQuery::make(const proto::QueryHistory& message, std::optional<Uid> only,
                                        const std::vector<std::string>& also) {
  if (message.filter.jobs.size() > kMaxQueryJobs)
    return fail(ErrorCode::invalid_argument,
                fmt::format("a query may name at most {} jobs, this one names {}", kMaxQueryJobs,
                            message.filter.jobs.size()));
  if (message.start && message.end && *message.end < *message.start)
    return fail(ErrorCode::invalid_argument, "the end of the time window is before its start");
  ASSIGN(nodes, expanded(message.filter.nodes));
  ASSIGN(states, StateSet::parse(message.filter.states));
  ASSIGN(position, page_position(message.position));

  HistoryQuery query;
  query.jobs_ = message.filter.jobs;
  for (std::size_t i = 0; i < query.jobs_.size(); ++i) {
    query.by_id_.emplace(query.jobs_[i].job, i);
    query.tasks_.emplace_back(query.jobs_[i].tasks);
  }
  auto as_set = [](const std::vector<std::string>& list) {
    return std::set<std::string, std::less<>>(list.begin(), list.end());
  };
  query.users_ = as_set(message.filter.users);
  query.names_ = as_set(message.filter.names);
  query.partitions_ = as_set(message.filter.partitions);
  query.accounts_ = as_set(message.filter.accounts);
  query.reservations_ = as_set(message.filter.reservations);
  query.tenants_ = as_set(message.filter.tenants);
  query.nodes_ = std::move(*nodes);
  if (!message.filter.states.empty() && !states->has_all()) query.states_ = *states;
  query.start_ = message.start;
  query.end_ = message.end;
  query.only_ = only;
  query.also_ = as_set(also);
  if (message.limit > 0) query.limit_ = std::min(message.limit, kMaxPageRows);
  query.duplicates_ = message.duplicates;
  query.series_ = message.series;
  query.position_ = *position;
  return query;
}

std::optional<std::size_t> HistoryQuery::named_by(const proto::JobRow& row) const {
  std::optional<std::size_t> first;
  auto look = [&](JobId id, auto&& named) {
    for (auto [it, end] = by_id_.equal_range(id); it != end; ++it)
      if ((!first || it->second < *first) && named(jobs_[it->second])) first = it->second;
  };
  bool in_array = row.array_job != JobId{};
  // A job or a task is named by its own id; it is also named by its array's id, alone or with
  // indexes.
  if (!in_array || row.job != row.array_job)
    look(row.job, [](const proto::JobRef& ref) { return ref.tasks.empty() && !ref.component; });
  if (row.het)
    look(row.het->leader, [&](const proto::JobRef& ref) {
      return ref.tasks.empty() && ref.component.value_or(row.het->offset) == row.het->offset;
    });
  if (in_array)
    look(row.array_job, [&](const proto::JobRef& ref) {
      if (ref.tasks.empty()) return true;
      const TaskSet& asked = tasks_.at(&ref - jobs_.data());
      return row.array_task ? asked.meets(*row.array_task, *row.array_task)
                            : has_task(asked, row.array_tasks);
    });
  return first;
}

bool HistoryQuery::matches(const proto::HistoryRow& row) const {
  return (jobs_.empty() || named_by(row.row)) && matches_apart_from_jobs(row);
}

bool HistoryQuery::matches_apart_from_jobs(const proto::HistoryRow& full) const {
  const proto::JobRow& row = full.row;
  if (full.requeued && !duplicates_) return false;
  if (only_ && row.uid != *only_ &&
      !also_.contains(row.tenant.empty() ? row.partition : row.tenant))
    return false;
  if (end_ && row.submitted >= *end_) return false;
  if (start_ && row.ended && *row.ended < *start_) return false;
  if (!allows(users_, row.user) || !allows(names_, row.name) ||
      !allows(partitions_, row.partition) || !allows(accounts_, row.account) ||
      !allows(reservations_, row.reservation) ||
      !allows(tenants_, row.tenant.empty() ? row.partition : row.tenant))
    return false;
  if (!nodes_.empty() && !ran_on_one_of(nodes_, row.node_list)) return false;
  return !states_ || was_in_wanted_state(row);
}

bool HistoryQuery::was_in_wanted_state(const proto::JobRow& row) const {
  if (!start_ && !end_) return states_->has(row.phase, row.outcome);
  // True if the time [from, to) in a state overlaps the window. An unset `to` means that the job is
  // still in that state.
  auto met = [&](Instant from, std::optional<Instant> to) {
    return (!end_ || from < *end_) && (!start_ || !to || *to > *start_);
  };
  bool between = row.phase == Phase::starting || row.phase == Phase::finishing ||
                 row.phase == Phase::suspended;
  if (between && states_->has(row.phase) && met(row.started.value_or(row.submitted), std::nullopt))
    return true;
  std::optional<Instant> left_queue = row.started ? row.started : row.ended;
  if (states_->has(Phase::queued) && met(row.submitted, left_queue)) return true;
  if (states_->has(Phase::running) && row.started && met(*row.started, row.ended)) return true;
  return row.ended && states_->has(row.phase, row.outcome) && (!end_ || *row.ended < *end_);
}

}  // namespace gantry::acct
