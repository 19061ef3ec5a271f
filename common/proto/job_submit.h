// Submitting a job, reading its output files, and waiting for it: client to ctld, and the answers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/money/money.h"
#include "common/proto/job_query.h"
#include "common/proto/job_ref.h"
#include "common/special_members.h"

namespace gantry::proto {

struct SubmitJob {
  GANTRY_SPECIAL_MEMBERS(SubmitJob)
  std::string request_id;  // chosen by the client, unique; a retry returns the first job's id
  JobSpec spec;
  Bytes script;  // batch only; begins with "#!"
  std::map<std::string, std::string> environment;
  bool test_only = false;  // validate and estimate, queue nothing
  GANTRY_FIELDS(FIELD(1, request_id), FIELD(2, spec), FIELD(3, script), FIELD(4, environment),
                FIELD(5, test_only))
};

// A heterogeneous job: one job for each component, and all start together. Either all are queued,
// with consecutive ids, or none is. The first one runs the script; the others are allocations.
struct SubmitTogether {
  // 2..kMaxHetParts; a retry is recognised by the request_id of the first
  std::vector<SubmitJob> parts;
  GANTRY_FIELDS(FIELD(1, parts))
};

struct SubmitReply {
  JobId job{};                            // 0 for test_only; for a heterogeneous job the leader
  std::string partition;                  // the partition in which it was queued
  std::optional<Instant> expected_start;  // with test_only, if known
  std::string expected_nodes;             // hostlist, test_only
  std::uint32_t cpus = 0;                 // test_only: cores it would take
  std::vector<std::string> warnings;
  std::string currency;  // currency of the costs; "" = there are no prices
  // The cost of one task of an array for an hour, on the most expensive of its nodes.
  std::optional<Money> cost_per_hour;
  // test_only: where and when it would start, up to its time limit
  std::optional<Money> cost_expected;
  std::optional<Money> cost_most;  // of all tasks, up to the time limit; not set: no limit
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, partition), FIELD(3, expected_start),
                FIELD(4, expected_nodes), FIELD(5, cpus), FIELD(6, warnings), FIELD(7, currency),
                FIELD(8, cost_per_hour), FIELD(9, cost_expected), FIELD(10, cost_most))
};

// Asks for a part of a job's output file; its node reads it as the job's user.
struct ReadLog {
  JobRef job;
  bool std_err = false;
  std::uint64_t offset = 0;
  std::uint32_t max_bytes = 65536;
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, std_err), FIELD(3, offset), FIELD(4, max_bytes))
};

struct LogChunk {
  Bytes data;
  std::uint64_t offset = 0;  // offset of the data
  bool job_ended = false;    // the job has ended, and nothing will be added
  std::string path;
  GANTRY_FIELDS(FIELD(1, data), FIELD(2, offset), FIELD(3, job_ended), FIELD(4, path))
};

// Waits for jobs. The answer comes when every named job (for an array: all tasks) has reached the
// phase. With `notices` it also comes, without rows, when NotifyJobs sends a line to one of them
// that is an allocation; then the client asks again.
struct WaitJobs {
  std::vector<JobRef> jobs;
  bool until_started = false;  // running or ended; otherwise ended
  bool notices = false;
  GANTRY_FIELDS(FIELD(1, jobs), FIELD(2, until_started), FIELD(3, notices))
};

struct WaitReply {
  std::vector<JobRow> rows;  // one per job; an array has one row with the worst exit of its tasks
  std::string notice;        // the line of NotifyJobs; then there are no rows
  GANTRY_FIELDS(FIELD(1, rows), FIELD(2, notice))
};

}  // namespace gantry::proto
