#include "cli/columns/history_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "cli/columns/job_words.h"
#include "common/job/verdict_text.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

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

Result<std::vector<proto::HistoryRow>> ended_jobs(Session& session, const proto::JobRef& job) {
  proto::QueryHistory query;
  query.filter.jobs.push_back(job);
  ASSIGN(reply, history_rows(session, std::move(query), kMostEnded));
  return std::move(reply->rows);
}

std::string ended_words(const proto::JobRow& row, std::string_view cause) {
  std::string out = fmt::format("job {} ", shown_id(row));
  if (row.phase != Phase::ended) return out + fmt::format("is {}", words_of(row).state);
  out += row.ended ? "ended at " + format_time(*row.ended) : "has ended";
  if (row.exit.signal != 0)
    out += fmt::format(", by signal {}", row.exit.signal);
  else if (row.started)
    out += fmt::format(", exit code {}", row.exit.code);
  out += fmt::format(" ({})", words_of(row).state);
  if (!cause.empty()) out += fmt::format(": {}", cause);
  return out;
}

Error no_such_job(const proto::JobRef& job) {
  return {ErrorCode::not_found, "there is no job " + format_job_ref(job)};
}

NotReached tell_not_reached(std::string_view program, Session& session,
                            const std::vector<proto::JobRef>& jobs) {
  NotReached out;
  for (const proto::JobRef& ref : jobs) {
    const auto known = ended_jobs(session, ref);
    if (!known || known->empty()) {
      ++out.unknown;
      fmt::print(stderr, "{}: error: {}\n", program,
                 known ? no_such_job(ref).message : known.error().message);
      continue;
    }
    ++out.ended;
    constexpr std::size_t kMostTold = 5;
    for (std::size_t i = 0; i < std::min(kMostTold, known->size()); ++i)
      fmt::print(stderr, "{}: {}\n", program, ended_words((*known)[i].row, (*known)[i].cause));
    if (known->size() > kMostTold)
      fmt::print(stderr, "{}: ... and {} more: gacct -j {}\n", program,
                 counted(static_cast<std::int64_t>(known->size() - kMostTold), "task"),
                 ref.job.value());
  }
  return out;
}

}  // namespace gantry::cli
