// scontrol's verbs that change things: hold, release, requeue, update, create, delete; and the
// verbs that wait.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/files.h"
#include "cli/slurm/control/scontrol.h"
#include "cli/slurm/format.h"
#include "cli/submit/job_refs.h"
#include "common/proto/history.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

// The jobs that a word names: ids, separated by commas or blanks, or, with name= or jobname=, the
// queued jobs of this name.
std::optional<std::vector<proto::JobRef>> control_jobs(const Control& c, const Arguments& args,
                                                       std::string_view call = {}) {
  std::vector<proto::JobRef> refs;
  for (const std::string& arg : args) {
    const KeyValue one = key_value(arg);
    if (one.key == "name" || one.key == "jobname") {
      proto::ListJobs list;
      list.filter.names = {one.value};
      const auto reply = ask<proto::ListJobsReply>(c.program, list);
      if (!reply) return control_error("slurm_load_jobs error", reply.error()), std::nullopt;
      for (const proto::JobRow& row : reply->rows) refs.push_back({row.job, {}});
      continue;
    }
    if (!add_job_refs(refs, one.value)) {
      fmt::print(stderr, "Invalid job id specified for job {}\n", one.value);
      if (!call.empty()) fmt::print(stderr, "{}: Invalid job id specified\n", call);
      return std::nullopt;
    }
  }
  return refs;
}

// Why a job is not active: it has ended, or it does not exist.
std::string_view why_not_active(const Control& c, const proto::JobRef& ref) {
  const auto shown = ask<proto::ShowJobReply>(c.program, proto::ShowJob{ref, false});
  return shown && !shown->jobs.empty() ? "Job/step already completing or completed"
                                       : "Invalid job id specified";
}

// Prints in Slurm's words which jobs were not changed, and returns the exit status. `call` is the
// Slurm function in a second line; {} = no second line.
int report_done(const Control& c, const Result<proto::JobsDone>& done, std::string_view call) {
  if (!done) return control_error(call.empty() ? "scontrol error" : call, done.error());
  const auto say = [&](const proto::JobRef& ref, std::string_view text) {
    fmt::print(stderr, "{} for job {}\n", text, format_job_ref(ref));
    if (!call.empty()) fmt::print(stderr, "{}: {}\n", call, text);
  };
  for (const proto::JobRef& ref : done->not_active) say(ref, why_not_active(c, ref));
  for (const auto& refused : done->refused) {
    const Words words = words_for(to_error(refused.error));
    say(refused.job, words.text);
    if (!words.detail.empty()) fmt::print(stderr, "scontrol: {}\n", words.detail);
  }
  return done->not_active.empty() && done->refused.empty() ? 0 : 1;
}

template <class Message>
int change_jobs(const Control& c, const Arguments& args, std::string_view keyword,
                std::string_view call, Message message) {
  if (!has_arguments(args, keyword)) return 1;
  auto refs = control_jobs(c, args, call);
  if (!refs) return 1;
  message.jobs = std::move(*refs);
  return report_done(c, ask<proto::JobsDone>(c.program, message), call);
}

// "arraytaskthrottle 2" is "arraytaskthrottle=2", and "nice" alone is "nice=100".
Arguments with_values(const Arguments& args) {
  Arguments out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool alone = args[i].find('=') == std::string::npos;
    if (alone && lower_case(args[i]) == "nice") {
      out.emplace_back("nice=100");
    } else if (alone && i + 1 < args.size()) {
      out.push_back(args[i] + "=" + args[i + 1]);
      ++i;
    } else {
      out.push_back(args[i]);
    }
  }
  return out;
}

// update JobName=NAME [UserID=USER] KEY=VALUE...: without a job's id, all jobs of the name that
// have not ended. Returns the words after their ids; nullopt if an error was printed.
std::optional<Arguments> with_ids_of(const Control& c, const Arguments& given) {
  Arguments rest;
  std::string name;
  std::optional<std::string> user;
  for (const std::string& word : given) {
    const KeyValue pair = key_value(word);
    if (pair.key == "jobname" || pair.key == "name")
      name = pair.value;
    else if (pair.key == "userid" || pair.key == "user")
      user = pair.value;
    else
      rest.push_back(word);
  }
  proto::ListJobs list;
  list.filter.names = {name};
  const auto reply = ask<proto::ListJobsReply>(c.program, list);
  if (!reply) return control_error("slurm_load_jobs error", reply.error()), std::nullopt;
  std::string ids;
  for (const proto::JobRow& row : reply->rows)
    if (!user || row.user == *user || std::to_string(row.uid.value()) == *user)
      ids += fmt::format("{}{}", ids.empty() ? "jobid=" : ",", row.job.value());
  if (ids.empty()) {
    if (user)
      fmt::print(stderr, "scontrol: error: No jobs with user ID {} and name '{}'\n", *user, name);
    else
      fmt::print(stderr, "scontrol: error: No jobs with name '{}'\n", name);
    return std::nullopt;
  }
  rest.insert(rest.begin(), ids);
  return rest;
}

// Sets the comments, which are not part of the job's request. Returns false for another key.
bool set_note(proto::NoteJobs& note, const KeyValue& pair) {
  if (pair.key == "admincomment")
    note.admin_comment = pair.value;
  else if (pair.key == "systemcomment")
    note.system_comment = pair.value;
  else
    return false;
  return true;
}

int update_jobs(const Control& c, const Arguments& given) {
  const Arguments args = with_values(given);
  const KeyValue first = key_value(args[0]);
  std::vector<proto::JobRef> refs;
  if (first.key == "jobname" || first.key == "name") {
    const auto named = with_ids_of(c, args);
    return named ? update_jobs(c, *named) : 1;
  }
  if (!add_job_refs(refs, first.value))
    return refused("Invalid job id specified for job {}\n", first.value);
  int status = 0;
  for (const proto::JobRef& ref : refs) {
    proto::UpdateJob update;
    proto::NoteJobs note;
    update.job = ref;
    std::size_t notes = 0;
    for (std::size_t i = 1; i < args.size(); ++i) {
      if (set_note(note, key_value(args[i]))) {
        ++notes;
        continue;
      }
      const auto known = set_job_key(c, update, key_value(args[i]));
      if (!known) return key_value_refused(args[i], known.error());
      if (!*known) return key_not_supported(args[i]);
    }
    note.jobs = {ref};
    if (notes > 0)
      status = std::max(status, report_done(c, ask<proto::JobsDone>(c.program, note), {}));
    if (notes > 0 && notes + 1 == args.size()) continue;
    const int one = report_done(c, ask<proto::JobsDone>(c.program, update), {});
    status = std::max(status, one);
    if (one == 0 && update.reshape) write_resize_scripts(c, ref);
  }
  return status;
}

// update StepId=JOB[.STEP] TimeLimit=: without a step, all running steps of the job.
int update_steps(const Control& c, const Arguments& given) {
  const Arguments args = with_values(given);
  proto::UpdateStep update;
  std::string job = key_value(args[0]).value;
  const std::size_t dot = job.rfind('.');
  if (dot != std::string::npos) {
    const auto step =
        parse_integer("the step", std::string_view(job).substr(dot + 1), 0, INT32_MAX);
    if (step) update.step = StepId(static_cast<std::uint32_t>(*step));
    job.resize(step ? dot : 0);
  }
  std::vector<proto::JobRef> refs;
  if (!add_job_refs(refs, job) || refs.size() != 1)
    return refused("Invalid stepid specified: {}\n", key_value(args[0]).value);
  update.job = refs.front();
  bool limited = false;
  for (std::size_t i = 1; i < args.size(); ++i) {
    const KeyValue pair = key_value(args[i]);
    if (pair.key != "timelimit") return key_not_supported(args[i]);
    const auto limit = parse_duration(pair.value);
    if (!limit) return key_value_refused(args[i], limit.error());
    update.time_limit = limit->value_or(Duration{});
    limited = true;
  }
  if (!limited) return refused("No changes specified\n");
  const auto done = ask<proto::Ok>(c.program, update);
  return done ? 0 : control_error("slurm_update_step error", done.error());
}

}  // namespace

int key_not_supported(const std::string& pair) {
  return refused("Update of this parameter is not supported: {}\nRequest aborted\n", pair);
}
int key_value_refused(const std::string& pair, const Error& error) {
  return refused("Invalid value: {}\n{}\nRequest aborted\n", pair, error.message);
}

int control_hold(const Control& c, const Arguments& args) {
  return change_jobs(c, args, "hold", "slurm_suspend error", proto::HoldJobs{});
}
int control_release(const Control& c, const Arguments& args) {
  return change_jobs(c, args, "release", "slurm_suspend error", proto::ReleaseJobs{});
}
int control_suspend(const Control& c, const Arguments& args) {
  return change_jobs(c, args, "suspend", "slurm_suspend error", proto::SuspendJobs{});
}
int control_resume(const Control& c, const Arguments& args) {
  return change_jobs(c, args, "resume", "slurm_resume error", proto::ResumeJobs{});
}
int control_notify(const Control& c, const Arguments& args) {
  if (!has_arguments(args, "notify", 2)) return 1;
  proto::NotifyJobs message;
  auto refs = control_jobs(c, {args[0]});
  if (!refs) return 1;
  message.jobs = std::move(*refs);
  message.text =
      "slurmstepd: error: " + fmt::format("{}", fmt::join(args.begin() + 1, args.end(), " "));
  const auto done = ask<proto::JobsDone>(c.program, message);
  if (done && !done->not_active.empty())
    return refused("job notify failure: Invalid job id specified\n");
  return report_done(c, done, {});
}
int control_top(const Control& c, const Arguments& args) {
  return change_jobs(c, args, "top", "slurm_top_job error", proto::TopJobs{});
}
// In Slurm a requeued job that had ended begins two minutes later, after the lifetime of its last
// run's credentials. It is held until that time is set.
int control_requeue(const Control& c, const Arguments& given) {
  constexpr Duration kDelay = seconds(121);
  if (!has_arguments(given, "requeue")) return 1;
  // "incomplete": only those that have not ended, for example of an array.
  const bool incomplete = lower_case(given[0]) == "incomplete";
  const Arguments args(given.begin() + (incomplete ? 1 : 0), given.end());
  if (!has_arguments(args, "requeue")) return 1;
  const auto refs = control_jobs(c, args);
  if (!refs) return 1;
  proto::RequeueJobs active;
  std::vector<proto::JobRef> ended;
  Instant now = system_now();
  if (incomplete) {
    proto::ListJobs list;
    list.filter.jobs = *refs;
    const auto rows = ask<proto::ListJobsReply>(c.program, list);
    if (!rows) return control_error("slurm_load_jobs error", rows.error());
    for (const proto::JobRow& row : rows->rows)
      if (row.phase != Phase::queued && row.phase != Phase::ended)
        active.jobs.push_back({row.job, {}});
    if (active.jobs.empty()) return 0;
    return report_done(c, ask<proto::JobsDone>(c.program, active), {});
  }
  for (const proto::JobRef& ref : *refs) {
    const auto shown = ask<proto::ShowJobReply>(c.program, proto::ShowJob{ref, false});
    const bool over =
        shown && shown->jobs.size() == 1 && shown->jobs.front().row.phase == Phase::ended;
    (over ? ended : active.jobs).push_back(ref);
    if (over) now = shown->now;
  }
  int status = 0;
  if (!active.jobs.empty()) status = report_done(c, ask<proto::JobsDone>(c.program, active), {});
  for (const proto::JobRef& ref : ended) {
    proto::RequeueJobs one;
    one.hold = true;
    one.jobs = {ref};
    const auto done = ask<proto::JobsDone>(c.program, one);
    if (const int failed = report_done(c, done, {}); failed != 0) {
      status = failed;
      continue;
    }
    proto::UpdateJob later;
    later.job = ref;
    later.begin = now + kDelay;
    const int set = report_done(c, ask<proto::JobsDone>(c.program, later), {});
    proto::ReleaseJobs release;
    release.jobs = {ref};
    const int freed = report_done(c, ask<proto::JobsDone>(c.program, release), {});
    status = std::max({status, set, freed});
  }
  return status;
}
int control_requeuehold(const Control& c, const Arguments& given) {
  proto::RequeueJobs message;
  message.hold = true;
  Arguments args;
  for (const std::string& word : given) {
    const KeyValue one = key_value(word);
    if (one.key == "state" && lower_case(one.value) == "specialexit") {
      message.special_exit = true;
    } else if (one.key == "state") {
      return refused("invalid state for keyword:requeuehold: {}; it is SpecialExit\n", one.value);
    } else if (lower_case(word) != "incomplete") {
      args.push_back(word);
    }
  }
  return change_jobs(c, args, "requeuehold", {}, message);
}

int control_update(const Control& c, const Arguments& args) {
  if (args.empty()) return refused("too few arguments for update keyword\n");
  // The key that names the kind of thing may be any of the words.
  struct Kind {
    std::string_view key;
    int (*update)(const Control&, const Arguments&);
  };
  static constexpr Kind kKinds[] = {{"jobid", update_jobs},
                                    {"job", update_jobs},
                                    {"stepid", update_steps},
                                    {"nodename", update_nodes},
                                    {"node", update_nodes},
                                    {"reservationname", update_reservation},
                                    {"reservation", update_reservation},
                                    {"partitionname", update_partition},
                                    {"partition", update_partition},
                                    {"jobname", update_jobs},
                                    {"name", update_jobs}};
  for (const Kind& kind : kKinds)
    for (std::size_t i = 0; i < args.size(); ++i) {
      // "jobid 12" is "jobid=12".
      const bool alone = lower_case(args[i]) == kind.key && i + 1 < args.size();
      if (!alone && key_value(args[i]).key != kind.key) continue;
      Arguments ordered = args;
      const auto at = ordered.begin() + static_cast<std::ptrdiff_t>(i);
      if (alone) {
        *at += "=" + args[i + 1];
        ordered.erase(at + 1);
      }
      std::rotate(ordered.begin(), ordered.begin() + static_cast<std::ptrdiff_t>(i),
                  ordered.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return kind.update(c, ordered);
    }
  return refused(
      "No valid entity in update command\nInput line must include \"NodeName\", "
      "\"PartitionName\", \"Reservation\", \"JobId\", or \"SlurmctldDebug\"\n");
}

namespace {
int too_few_words(std::string_view keyword) {
  return refused("too few arguments for {} keyword\n", keyword);
}
}  // namespace

int control_create(const Control& c, const Arguments& args) {
  if (args.empty()) return too_few_words("create");
  // The first word that names an entity decides, because a reservation has a key partition= too.
  const auto names = [&](std::string_view kind) {
    return std::any_of(args.begin(), args.end(), [&](const std::string& arg) {
      const std::string word = lower_case(arg.substr(0, arg.find('=')));
      return word.size() >= 3 && kind.starts_with(word);
    });
  };
  if (!names("reservationname") && names("partitionname")) return create_partition(c, args);
  if (names("reservationname")) return create_reservation(c, args);
  return refused("scontrol: error: Invalid creation entity: {}\n", args[0]);
}

int control_delete(const Control& c, const Arguments& args) {
  if (args.empty()) return too_few_words("delete");
  // The arguments are <ENTITY>=<ID>, or the same as two words.
  KeyValue pair = key_value(args[0]);
  if (pair.key.empty() && args.size() == 2) pair = {lower_case(args[0]), args[1]};
  if (pair.key.empty() || args.size() > (args[0].find('=') == std::string::npos ? 2 : 1))
    return refused(
        "scontrol: error: Proper format is 'delete <ENTITY>=<ID>' or "
        "'delete <ENTITY> <ID>'\n");
  const auto is = [&](std::string_view kind) {
    return pair.key.size() >= 3 && kind.starts_with(pair.key);
  };
  if (is("partitionname")) return delete_partition(c, pair.value, args[0]);
  if (!is("reservationname")) return refused("Invalid deletion entity: {}\n", args[0]);
  const auto ok = ask<proto::Ok>(c.program, proto::RemoveReservation{pair.value});
  return ok ? 0 : control_error("delete_reservation " + args[0], ok.error());
}

int control_wait_job(const Control& c, const Arguments& args) {
  if (!has_arguments(args, "wait_job")) return 1;
  auto refs = control_jobs(c, args);
  if (!refs) return 1;
  proto::WaitJobs wait;
  wait.jobs = std::move(*refs);
  wait.until_started = true;
  auto session = Session::open(c.program);
  if (!session) return control_error("slurm_load_jobs error", session.error());
  const auto request = session->send(wait);
  if (!request) return control_error("slurm_load_jobs error", request.error());
  auto reply = session->receive<proto::WaitReply>(*request, kCallTimeout);
  while (!reply && reply.error().code == ErrorCode::timed_out)
    reply = session->receive<proto::WaitReply>(*request, kCallTimeout);
  const auto failed = [&] { return refused("scontrol: Problem running job {}\n", args[0]); };
  if (!reply && reply.error().code == ErrorCode::not_found) return failed();
  if (!reply) return control_error("slurm_load_jobs error", reply.error());
  for (const proto::JobRow& row : reply->rows)
    if (row.phase == Phase::ended) return failed();
  return 0;
}

int control_write(const Control& c, const Arguments& args) {
  if (!args.empty() && lower_case(args[0]) == "config")
    return write_config(c, args.size() > 1 ? args[1] : "");
  if (args.size() < 2 || lower_case(args[0]) != "batch_script")
    return refused("scontrol: error: write batch_script JOB [FILE|-], or write config [FILE]\n");
  std::vector<proto::JobRef> refs;
  if (!add_job_refs(refs, args[1]) || refs.size() != 1)
    return refused("Invalid job id specified for job {}\n", args[1]);
  const auto shown = ask<proto::ShowJobReply>(c.program, proto::ShowJob{refs[0], true});
  if (!shown) return control_error("job script retrieval failed", shown.error());
  if (shown->jobs.empty() || shown->jobs[0].script.empty())
    return refused("job script retrieval failed: Invalid job id specified\n");
  const Bytes& script = shown->jobs[0].script;
  const std::string file = args.size() > 2 ? args[2] : fmt::format("slurm-{}.sh", args[1]);
  if (file == "-") {
    std::fwrite(script.data(), 1, script.size(), stdout);
    return 0;
  }
  if (const auto written = write_file(file, script, 0700); !written)
    return refused("{}\n", written.error().message);
  fmt::print("batch script for job {} written to {}\n", args[1], file);
  return 0;
}

}  // namespace gantry::cli::slurm
