// gctl logs: the controller has a piece of the output read on the job's node, by a process with the
// user's ids. For an array, each line has the task as a prefix. A job that the queue no longer has
// is looked up in accounting, and its output file is read here if this machine has it.
#include <fmt/core.h>

#include <cstdio>
#include <ctime>
#include <map>
#include <memory>

#include "cli/columns/history_rows.h"
#include "cli/columns/job_words.h"
#include "cli/columns/show_records.h"
#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli::gctl_logs {
namespace {

struct Logs {
  bool follow = false;
  bool std_err = false;
};
constexpr Option kLogOptions[] = {
    flag("follow", 'f', "Go on as the output grows, until the job has ended", put<&Logs::follow>),
    flag("stderr", 'e', "Standard error instead of output", put<&Logs::std_err>),
};

void pause() {
  const timespec half_a_second{0, 500'000'000};
  ::nanosleep(&half_a_second, nullptr);
}

// Prints the output of one job or task as it comes. With a prefix, each line gets it.
class Output {
 public:
  explicit Output(std::string prefix) : prefix_(std::move(prefix)) {}

  // Returns false if nobody reads standard output any more.
  bool print(const Bytes& data) {
    for (const char c : data) {
      if (at_start_) std::fwrite(prefix_.data(), 1, prefix_.size(), stdout);
      at_start_ = c == '\n' && !prefix_.empty();
      std::fputc(c, stdout);
    }
    return std::fflush(stdout) == 0;
  }
  // Ends a line that the task left open, so that the next one begins with its prefix.
  void end() {
    if (!prefix_.empty() && !at_start_) std::fputc('\n', stdout);
    at_start_ = true;
  }

 private:
  std::string prefix_;
  bool at_start_ = true;
};

enum class Read { more, nothing_now, ended, closed };

// Reads and prints the next piece.
Result<Read> read_piece(Session& session, proto::ReadLog& read, Output& out) {
  ASSIGN(chunk, session.call<proto::LogChunk>(read));
  if (!out.print(chunk->data)) return Read::closed;
  read.offset = chunk->offset + chunk->data.size();
  if (!chunk->data.empty()) return Read::more;
  return chunk->job_ended ? Read::ended : Read::nothing_now;
}

// ---- a job that the queue no longer has

// Prints the file if it can be read here and was written by this job.
bool print_file(const std::string& path, const proto::JobRow& row, std::string_view program) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (file == nullptr) return false;
  fmt::print(stderr, "{}: {}; this is {}\n", program, ended_words(row, ""), path);
  char buffer[16 << 10];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, file.get())) > 0;)
    std::fwrite(buffer, 1, n, stdout);
  return true;
}

// The output file of a job that has left the queue. Records of older releases do not have its name;
// then the default name is used.
std::string output_of(const proto::HistoryRow& job, bool std_err) {
  JobSpec spec;
  spec.work_dir = job.work_dir;
  std::string pattern = std_err && !job.std_err.empty() ? job.std_err : job.std_out;
  if (pattern.empty()) pattern = job.row.array_task ? "gantry-%A_%a.out" : "gantry-%j.out";
  return output_path(pattern, spec, job.row);
}

Result<int> ended_output(const Invocation& in, Session& session, const Logs& logs,
                         const proto::JobRef& ref) {
  ASSIGN(ended, ended_jobs(session, ref));
  if (ended->empty()) return tl::unexpected(no_such_job(ref));
  int status = 0;
  for (const proto::HistoryRow& job : *ended) {
    const std::string path = output_of(job, logs.std_err);
    if (print_file(path, job.row, in.program())) continue;
    fmt::print(stderr,
               "{}: error: {}; its output is no longer read from its node, and this machine has "
               "no file {}\n",
               in.program(), ended_words(job.row, ""), path);
    status = 1;
  }
  return status;
}

// ---- the tasks of an array

struct Task {
  proto::ReadLog read;
  Output out;
  bool done = false;
};

// Adds the tasks that have started since the last look. Returns true while others wait.
Result<bool> add_tasks(Session& session, const Logs& logs, const proto::JobRef& ref,
                       std::map<std::uint32_t, Task>& tasks) {
  proto::ListJobs list;
  list.filter.jobs.push_back(ref);
  list.filter.states = {"all"};
  bool waiting = false;
  while (true) {
    ASSIGN(page, session.call<proto::ListJobsReply>(list));
    for (const proto::JobRow& row : page->rows) {
      const bool open = row.phase == Phase::queued || row.phase == Phase::starting;
      waiting = waiting || open;
      if (!row.array_task || !row.started || open) continue;
      proto::ReadLog read;
      read.job = {row.array_job, {{*row.array_task, *row.array_task, 1}}, {}};
      read.std_err = logs.std_err;
      tasks.try_emplace(*row.array_task, Task{read, Output(shown_id(row) + ": ")});
    }
    if (!page->more || page->next <= list.after) return waiting;
    list.after = page->next;
  }
}

Result<int> follow_tasks(const Invocation& in, Session& session, const Logs& logs,
                         const proto::JobRef& ref) {
  std::map<std::uint32_t, Task> tasks;
  while (true) {
    ASSIGN(waiting, add_tasks(session, logs, ref, tasks));
    if (tasks.empty() && !*waiting) return ended_output(in, session, logs, ref);
    if (tasks.empty() && !logs.follow)
      return fail(
          ErrorCode::wrong_state,
          fmt::format("no task of job {} has started: there is no output yet", ref.job.value()));
    bool open = *waiting;
    for (auto& [index, task] : tasks) {
      while (!task.done) {
        const auto piece = read_piece(session, task.read, task.out);
        if (!piece) {
          fmt::print(stderr, "{}: error: {}: {}\n", in.program(), format_job_ref(task.read.job),
                     piece.error().message);
          task.done = true;
        } else if (*piece == Read::closed) {
          return 1;
        } else if (*piece != Read::more) {
          task.done = !logs.follow || *piece == Read::ended;
          break;
        }
      }
      if (task.done || !logs.follow) task.out.end();
      open = open || !task.done;
    }
    if (!logs.follow || !open) return 0;
    pause();
  }
}

// ---- one job

Result<int> follow_one(const Invocation& in, Session& session, const Logs& logs,
                       const proto::JobRef& ref) {
  proto::ReadLog read;
  read.job = ref;
  read.std_err = logs.std_err;
  Output out("");
  while (true) {
    const auto piece = read_piece(session, read, out);
    if (!piece) {
      if (piece.error().code == ErrorCode::not_found && read.offset == 0)
        return ended_output(in, session, logs, ref);
      if (piece.error().code == ErrorCode::not_found) return 0;  // the job ended during the wait
      // The controller needs a single task if the reference means several.
      if (piece.error().code == ErrorCode::invalid_argument && read.offset == 0)
        return follow_tasks(in, session, logs, ref);
      // A job that has not started has no output yet, so --follow waits.
      const bool later = logs.follow && piece.error().code == ErrorCode::wrong_state;
      if (!later) return tl::unexpected(piece.error());
    } else if (*piece == Read::closed) {
      return 1;
    } else if (*piece == Read::more) {
      continue;
    } else if (!logs.follow || *piece == Read::ended) {
      return 0;
    }
    pause();
  }
}

Result<int> run_logs(const Invocation& in) {
  Logs logs;
  OPERANDS(operands, in, &logs, 1, 1);
  const auto ref = parse_job_ref((*operands)->front());
  if (!ref)
    return fail(ErrorCode::invalid_argument,
                fmt::format("Invalid job id {}", (*operands)->front()));
  ASSIGN(session, Session::open(in.program()));
  return count_indexes(ref->tasks) > 1 ? follow_tasks(in, *session, logs, *ref)
                                       : follow_one(in, *session, logs, *ref);
}

}  // namespace

const Command kGctlLogs{
    {"logs", "Print the output of a job", "JOB"},
    {.description =
         "The node of the job reads the file, so it need not be on a shared file system. Of an "
         "array each line begins with its task. A job that has left the queue is looked up in "
         "accounting; its output file is then read here, if this machine has it.",
     .options = kLogOptions,
     .examples = {{"gctl logs 12", "What job 12 has printed up to now"},
                  {"gctl logs -f 12", "The same, and what it prints from now on"},
                  {"gctl logs 15",
                   "Of an array: all tasks that have started, each line with its task"},
                  {"gctl logs -e 15_3", "Standard error of one task"}},
     .run = run_logs}};

}  // namespace gantry::cli::gctl_logs
