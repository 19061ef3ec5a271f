// Encodes records, matches them with queries, and encodes positions; see the header. Pages are in
// history_page.cc.
#include "ctld/acct/history.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace gantry::acct {

namespace {

// A position is phase and flags, named (4), then live_after (8), or end (8) and job (8); all are
// big-endian.
constexpr std::size_t kPositionBytes = 2 + 8 + 16;

bool in_ranges(const std::vector<IndexRange>& ranges, std::uint32_t task) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const IndexRange& range) {
    return task >= range.first && task <= range.last && range.step > 0 &&
           (task - range.first) % range.step == 0;
  });
}

// True if the pending rest of an array ("3-9,12%4") contains one of these indexes.
bool overlap(const std::vector<IndexRange>& ranges, const std::string& rest) {
  auto spec = parse_index_ranges(rest);
  if (!spec) return false;
  for (const IndexRange& range : ranges)
    for (std::uint64_t i = range.first; i <= range.last; i += std::max(range.step, 1U))
      if (in_ranges(spec->ranges, static_cast<std::uint32_t>(i))) return true;
  return false;
}

bool allows(const std::set<std::string, std::less<>>& set, std::string_view value) {
  return set.empty() || set.contains(value);
}

Result<std::set<std::string, std::less<>>> expanded(const std::vector<std::string>& lists) {
  std::set<std::string, std::less<>> nodes;
  for (const std::string& list : lists) {
    auto names = expand_hostlist(list);
    if (!names) return tl::unexpected(names.error());
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
  auto nodes = expanded(message.filter.nodes);
  if (!nodes) return tl::unexpected(nodes.error());
  auto states = StateSet::parse(message.filter.states);
  if (!states) return tl::unexpected(states.error());
  auto position = page_position(message.position);
  if (!position) return tl::unexpected(position.error());

  HistoryQuery query;
  query.jobs_ = message.filter.jobs;
  for (std::size_t i = 0; i < query.jobs_.size(); ++i) query.by_id_.emplace(query.jobs_[i].job, i);
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
      return row.array_task ? in_ranges(ref.tasks, *row.array_task)
                            : overlap(ref.tasks, row.array_tasks);
    });
  return first;
}

bool HistoryQuery::matches(const proto::HistoryRow& row) const {
  return (jobs_.empty() || named_by(row.row)) && matches_apart_from_jobs(row);
}

bool HistoryQuery::matches_apart_from_jobs(const proto::HistoryRow& full) const {
  const proto::JobRow& row = full.row;
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
  // True if the time [from, to) in a state overlaps the window. Without `to` the job is still in
  // that state.
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
