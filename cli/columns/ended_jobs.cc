#include "cli/columns/ended_jobs.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/columns/history_rows.h"
#include "cli/columns/job_words.h"
#include "common/job/verdict_text.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli {

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
