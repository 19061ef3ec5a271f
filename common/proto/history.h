// Accounting: finished and unfinished jobs with their usage, and notes about them. Client to ctld,
// and the answer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/proto/job_query.h"

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
  Bytes position;           // of the previous page's reply; empty for the first
  bool series = false;      // also the series of GPU use over time, up to a kilobyte for each
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
  AskedTres tres;                      // what the step has asked for
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "step", s.step);
    v(2, "name", s.name);
    v(3, "outcome", s.outcome);
    v(4, "running", s.running);
    v(5, "exit", s.exit);
    v(6, "started", s.started);
    v(7, "ended", s.ended);
    v(8, "tasks", s.tasks);
    v(9, "cpus", s.cpus);
    v(10, "node_list", s.node_list);
    v(11, "usage", s.usage);
    v(14, "time_limit", s.time_limit);
    v(23, "gpus", s.gpus);
    v(24, "tres", s.tres);
  }
};

struct HistoryRow {
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
  std::optional<Sandbox> sandbox{};  // unset: the standard one
  // Patterns of the output files as the job gave them; "" = the default, or joined to std_out.
  std::string std_out, std_err;
  // A run that was ended so that the job would start again, and not the job's end. Its outcome is
  // node_fail, preempted, or cancelled for every other cause. Only with `duplicates`.
  bool requeued = false;
  // Somebody noted this exit status; it is shown in the place of the worst one of the steps.
  std::optional<ExitStatus> derived_exit{};
  std::string admin_comment, system_comment;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "row", s.row);
    v(2, "usage", s.usage);
    v(3, "cause", s.cause);
    v(4, "work_dir", s.work_dir);
    v(5, "comment", s.comment);
    v(6, "submit_line", s.submit_line);
    v(7, "group", s.group);
    v(8, "alloc_memory", s.alloc_memory);
    v(9, "steps", s.steps);
    v(10, "waits", s.waits);
    v(11, "priority_class", s.priority_class);
    v(12, "wckey", s.wckey);
    v(13, "licenses", s.licenses);
    v(18, "std_out", s.std_out);
    v(19, "std_err", s.std_err);
    v(24, "requeued", s.requeued);
    v(25, "derived_exit", s.derived_exit);
    v(26, "admin_comment", s.admin_comment);
    v(27, "system_comment", s.system_comment);
    v(33, "labels", s.labels);
    v(34, "work_type", s.work_type);
    v(39, "sandbox", s.sandbox);
  }
};

struct HistoryReply {
  std::vector<HistoryRow> rows;
  bool more = false;  // ask again with `position`; also when `rows` is empty
  Instant now{};
  Bytes position;
  std::string currency;  // of costs; "" = there are no prices
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
  std::optional<ExitStatus> derived_exit;  // of jobs that have ended
  std::optional<std::string> comment, admin_comment, system_comment;
  // The controller's shell puts in here, for each of `jobs`, the newest stored row; never a client.
  std::vector<std::optional<StoredRow>> stored{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "jobs", s.jobs);
    v(2, "derived_exit", s.derived_exit);
    v(3, "comment", s.comment);
    v(4, "admin_comment", s.admin_comment);
    v(5, "system_comment", s.system_comment);
  }
};

}  // namespace gantry::proto
