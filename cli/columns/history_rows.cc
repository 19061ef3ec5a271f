#include "cli/columns/history_rows.h"

#include <map>
#include <tuple>

namespace gantry::cli {
namespace {

// True for the rest of an array when all of its tasks already have rows of their own.
bool is_used_up(const proto::JobRow& row) {
  return row.array_job.value() != 0 && !row.array_task &&
         (row.array_tasks.empty() || row.array_tasks.front() == '%');
}

using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t>;

Key key_of(const proto::JobRow& row, bool each_run) {
  const std::uint64_t array = row.array_job.value();
  const std::uint64_t task = row.array_task ? *row.array_task : array != 0 ? UINT64_MAX : 0;
  return {array != 0 ? array : row.job.value(), task, row.job.value(), each_run ? row.restarts : 0};
}

}  // namespace

Result<proto::HistoryReply> history_rows(Session& session, proto::QueryHistory query,
                                         std::size_t most) {
  std::map<Key, proto::HistoryRow> found;
  proto::HistoryReply out;
  while (true) {
    ASSIGN(page, session.call<proto::HistoryReply>(query));
    out.now = page->now;
    out.currency = page->currency;
    for (proto::HistoryRow& job : page->rows) {
      if (is_used_up(job.row)) continue;
      const auto [at, added] = found.try_emplace(key_of(job.row, query.duplicates));
      if (added || at->second.row.restarts <= job.row.restarts) at->second = std::move(job);
    }
    out.more = page->more;
    if (!page->more || found.size() >= most) break;
    if (page->position == query.position)
      return fail(ErrorCode::malformed, "the controller gave a page of jobs twice");
    query.position = page->position;
  }
  for (auto& [key, job] : found) out.rows.push_back(std::move(job));
  return out;
}

}  // namespace gantry::cli
