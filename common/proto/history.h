// Accounting: finished and unfinished jobs with their usage, and notes about them. Client to ctld,
// and the answer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/proto/job_query.h"
#include "common/special_members.h"

namespace gantry::proto {

// Asks for finished and unfinished jobs, for accounting. Pages begin with jobs that the controller
// still has (by id); the history follows (by end time). A job that ends meanwhile may appear in
// both: the row with the most restarts counts, and of equal rows the later one. With `duplicates`,
// each restart is a row of its own.
struct QueryHistory {
  JobFilter filter;              // by state: jobs that were in one of them within the window
  std::optional<Instant> start;  // jobs that were in any state within [start, end)
  std::optional<Instant> end;
  std::uint32_t limit = 0;  // rows in one reply; 0 = server's maximum
  bool duplicates = false;  // each run of a requeued job, not only the last
  Bytes position;           // from the previous page's reply; empty for the first page
  bool series = false;      // include the series of GPU use over time, up to a kilobyte each
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "filter", s.filter);
    v(2, "start", s.start);
    v(3, "end", s.end);
    v(4, "limit", s.limit);
    v(6, "duplicates", s.duplicates);  // number 5 was a cursor
    v(7, "position", s.position);
    v(8, "series", s.series);
  }
};

struct StepRow {
  std::string step;  // "batch", "0", "1"...
  std::string name;
  Outcome outcome = Outcome::completed;
  bool running = false;
  ExitStatus exit;
  Instant started{};
  std::optional<Instant> ended;
  std::uint32_t tasks = 0;
  std::uint32_t cpus = 0;
  std::string node_list;
  Usage usage;
  std::optional<Duration> time_limit;  // the step's own
  std::uint32_t gpus = 0;              // GPUs that its tasks may use, on all nodes
  AskedTres tres;                      // the step's request
  GANTRY_FIELDS(FIELD(1, step), FIELD(2, name), FIELD(3, outcome), FIELD(4, running),
                FIELD(5, exit), FIELD(6, started), FIELD(7, ended), FIELD(8, tasks), FIELD(9, cpus),
                FIELD(10, node_list), FIELD(11, usage), FIELD(14, time_limit), FIELD(23, gpus),
                FIELD(24, tres))
};

struct HistoryRow {
  GANTRY_SPECIAL_MEMBERS(HistoryRow)
  JobRow row;
  Usage usage;
  std::string cause;
  std::string work_dir;
  std::string comment;
  std::string submit_line;
  std::string group;
  std::int64_t alloc_memory = 0;  // bytes over all nodes
  std::vector<StepRow> steps;
  std::vector<WaitPart> waits;  // from submit to this start, by cause; longest first
  std::string priority_class;   // "" = the tenant's default one
  std::string wckey;            // given to sbatch
  std::string licenses;         // "NAME:N,..."
  std::map<std::string, std::string> labels;
  std::optional<WorkType> work_type;
  std::optional<Sandbox> sandbox{};  // unset: the standard sandbox
  // Patterns of the output files as the job gave them; "" = the default, or joined to std_out.
  std::string std_out, std_err;
  // A run that was ended so that the job would start again, and not the job's end. Its outcome is
  // node_fail, preempted, or cancelled for every other cause. Only with `duplicates`.
  bool requeued = false;
  // An exit status noted by a user, shown instead of the worst one of the steps.
  std::optional<ExitStatus> derived_exit{};
  std::string admin_comment, system_comment;
  GANTRY_FIELDS(FIELD(1, row), FIELD(2, usage), FIELD(3, cause), FIELD(4, work_dir),
                FIELD(5, comment), FIELD(6, submit_line), FIELD(7, group), FIELD(8, alloc_memory),
                FIELD(9, steps), FIELD(10, waits), FIELD(11, priority_class), FIELD(12, wckey),
                FIELD(13, licenses), FIELD(18, std_out), FIELD(19, std_err), FIELD(24, requeued),
                FIELD(25, derived_exit), FIELD(26, admin_comment), FIELD(27, system_comment),
                FIELD(33, labels), FIELD(34, work_type), FIELD(39, sandbox))
};

struct HistoryReply {
  std::vector<HistoryRow> rows;
  bool more = false;  // ask again with `position`; also when `rows` is empty
  Instant now{};
  Bytes position;
  std::string currency;  // currency of costs; "" = there are no prices
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "more", s.more);
    v(4, "now", s.now);  // number 3 was a cursor
    v(5, "position", s.position);
    v(6, "currency", s.currency);
  }
};

// A row of the history as it is stored.
struct StoredRow {
  Instant end{};
  JobId job{};
  std::optional<JobId> array;
  Bytes row;  // an encoded HistoryRow
};

// Notes something of jobs, also of those that have ended long ago; members that are set. The last
// two are for administrators. Answered by JobsDone.
struct NoteJobs {
  static constexpr std::size_t kMaxJobs = 1000;
  std::vector<JobRef> jobs;                // at most kMaxJobs
  std::optional<ExitStatus> derived_exit;  // for jobs that have ended
  std::optional<std::string> comment, admin_comment, system_comment;
  // The controller's shell puts in here, for each of `jobs`, the newest stored row; never a client.
  std::vector<std::optional<StoredRow>> stored{};
  GANTRY_FIELDS(FIELD(1, jobs), FIELD(2, derived_exit), FIELD(3, comment), FIELD(4, admin_comment),
                FIELD(5, system_comment))
};

}  // namespace gantry::proto
