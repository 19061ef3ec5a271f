// Accounting rows in the usual order, joined from the pages of a query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/session.h"
#include "common/proto/history.h"

namespace gantry::cli {

// Reads pages until `most` rows are known. The rows are in the order of job ids; tasks of an array
// by index, then the rest of the array. Each job is there once, with its newest run, or once for
// each run if the query asks for duplicates. The rest of an array is left out when all of its tasks
// have rows of their own.
Result<proto::HistoryReply> history_rows(Session& session, proto::QueryHistory query,
                                         std::size_t most = SIZE_MAX);

// Jobs that the controller's queue no longer has. Accounting keeps them forever, so every command
// about such a job can tell how and when it ended.

// The rows that accounting has of this reference, tasks of an array by index. Empty: there never
// was such a job, or the asker may not see it. At most kMostEnded rows are read.
inline constexpr std::size_t kMostEnded = 1000;
Result<std::vector<proto::HistoryRow>> ended_jobs(Session& session, const proto::JobRef& job);

// "job 41 ended at 2026-01-31T08:05:00, exit code 3 (FAILED): its cause"
std::string ended_words(const proto::JobRow& row, std::string_view cause);

// "there is no job 999"
Error no_such_job(const proto::JobRef& job);

// Prints on standard error, for each job that a change did not reach, when it ended, or that there
// is no such job. Returns how many of each there were.
struct NotReached {
  std::size_t ended = 0;
  std::size_t unknown = 0;
};
NotReached tell_not_reached(std::string_view program, Session& session,
                            const std::vector<proto::JobRef>& jobs);

}  // namespace gantry::cli
