// sacctmgr modify job: what is noted of jobs in the accounting, also long after their end.
#include <fmt/core.h>

#include "cli/session.h"
#include "cli/slurm/accounts/change_words.h"
#include "cli/slurm/accounts/sacctmgr_verbs.h"
#include "cli/slurm/format.h"
#include "cli/slurm/records/history.h"
#include "common/proto/history.h"
#include "common/proto/job_change.h"
#include "common/proto/job_text.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

// As in Slurm the number is a status as wait() has it: 22 is signal 22, 256 is exit code 1.
Result<ExitStatus> derived_exit(const std::string& text) {
  ASSIGN(n, parse_integer("DerivedExitCode", text, 0, 0xffff));
  const auto status = static_cast<std::int32_t>(*n);
  if (const std::int32_t signal = status & 0x7f; signal != 0) {
    if (signal > 64)
      return fail(ErrorCode::usage,
                  fmt::format(" DerivedExitCode={}: there is no signal {}", text, signal));
    return ExitStatus{0, signal};
  }
  return ExitStatus{status >> 8, 0};
}

Result<void> read_setting(const std::string& key, const std::string& value, proto::NoteJobs& out) {
  if (key == "derivedexitcode" || key == "dec") {
    ASSIGN(exit, derived_exit(value));
    out.derived_exit = *exit;
  } else if (key == "comment" || key == "derivedexitstring" || key == "des") {
    out.comment = value;
  } else if (key == "admincomment") {
    out.admin_comment = value;
  } else if (key == "systemcomment") {
    out.system_comment = value;
  } else {
    return fail(ErrorCode::usage,
                fmt::format(" Unknown option: {}={}\n Of a job can be set: DerivedExitCode, "
                            "Comment, AdminComment and SystemComment",
                            key, value));
  }
  return {};
}

// "12", "12_3" or "12+1".
std::string name_of(const proto::JobRow& row) {
  if (row.het) return format_job_ref({row.het->leader, {}, row.het->offset});
  if (!row.array_task) return format_job_ref({row.job, {}, {}});
  return format_job_ref({row.array_job, {{*row.array_task, *row.array_task, 1}}, {}});
}

// "job=12", "jobid=12,13", and behind `set` the settings.
Result<proto::NoteJobs> read_words(const std::vector<std::string>& words) {
  proto::NoteJobs out;
  bool setting = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string key = lower_case(words[i].substr(0, equals));
    if (equals == std::string::npos) {
      if (key != "where" && key != "set")
        return fail(ErrorCode::usage, fmt::format(" Unknown condition: {}", words[i]));
      setting = key == "set";
      continue;
    }
    const std::string value = unquoted(words[i].substr(equals + 1));
    if (setting) {
      TRY(read_setting(key, value, out));
    } else if (key == "job" || key == "jobs" || key == "jobid" || key == "jobids") {
      for (const std::string& name : split_list(value)) {
        const auto ref = parse_job_ref(name);
        if (!ref) return fail(ErrorCode::usage, fmt::format(" Invalid job id {}", name));
        out.jobs.push_back(*ref);
      }
    } else {
      return fail(ErrorCode::usage,
                  fmt::format(" Unknown condition: {}\n Jobs are named by job=ID,...", words[i]));
    }
  }
  if (out.jobs.empty()) return fail(ErrorCode::usage, " Need a job id to modify: job=ID,...");
  if (!out.derived_exit && !out.comment && !out.admin_comment && !out.system_comment)
    return fail(ErrorCode::usage, " You didn't give me anything to set");
  return out;
}

}  // namespace

bool names_jobs(const std::vector<std::string>& words) {
  const std::string word = words.empty() ? "" : lower_case(words.front());
  return word == "job" || word == "jobs";
}

Result<int> change_jobs(const Invocation& call, std::string_view verb,
                        const std::vector<std::string>& words, bool immediate) {
  if (verb != "modify")
    return say_refusal(
        {ErrorCode::usage, fmt::format(" {} of a job: jobs can only be modified", verb)});
  const auto note = read_words(words);
  if (!note) return say_refusal(note.error());
  ASSIGN(session, Session::open(call.program()));
  proto::QueryHistory query;
  query.filter.jobs = note->jobs;
  const auto history = ask_history(*session, std::move(query));
  if (!history) return say_refusal(history.error());
  if (history->jobs.empty()) {
    fmt::print(" Nothing modified\n");
    return 1;
  }
  fmt::print(" Modified jobs...\n");
  for (const proto::HistoryRow& job : history->jobs)
    fmt::print("  {} submitted at {}\n", name_of(job.row), shown_time(job.row.submitted));
  if (!immediate && !person_agrees()) {
    fmt::print(" Changes Discarded\n");
    return 0;
  }
  const auto done = session->call<proto::JobsDone>(*note);
  if (!done) return say_refusal(done.error());
  for (const proto::JobRef& ref : done->not_active)
    fmt::print(stderr, " {}: there is no such job that you may modify\n", format_job_ref(ref));
  for (const proto::JobsDone::Refused& one : done->refused)
    fmt::print(stderr, " {}\n", one.error.message);
  return done->not_active.empty() && done->refused.empty() ? 0 : 1;
}

}  // namespace gantry::cli::slurm
