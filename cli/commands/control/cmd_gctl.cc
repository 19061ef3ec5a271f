// gctl: what operators and owners of jobs can do and see.
#include <fmt/core.h>

#include <cstdlib>
#include <ctime>

#include "cli/cluster/reconfigure.h"
#include "cli/command.h"
#include "cli/commands/control/gctl_maintenance.h"
#include "cli/commands/control/gctl_mig.h"
#include "cli/commands/control/gctl_partition.h"
#include "cli/commands/control/gctl_reserve.h"
#include "cli/commands/control/gctl_show.h"
#include "cli/commands/control/gctl_top.h"
#include "cli/commands/control/gctl_update.h"
#include "cli/commands/control/gctl_why.h"
#include "cli/session.h"
#include "cli/submit/job_refs.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli {
namespace {

struct NoOptions {};

// ---- hold, release, requeue

template <class Request>
Result<int> change_jobs(const Invocation& in, Request request,
                        const std::vector<std::string>& operands) {
  auto refs = job_refs_of(operands);
  if (!refs) return tl::unexpected(refs.error());
  request.jobs = std::move(*refs);
  const auto done = ask<proto::JobsDone>(in.program(), request);
  if (!done) return tl::unexpected(done.error());
  for (const auto& refused : done->refused)
    fmt::print(stderr, "{}: error: job {}: {}\n", in.program(), format_job_ref(refused.job),
               refused.error.message);
  for (const proto::JobRef& ref : done->not_active)
    fmt::print(stderr, "{}: error: Invalid job id specified for job {}\n", in.program(),
               format_job_ref(ref));
  return done->refused.empty() && done->not_active.empty() ? 0 : 1;
}

template <class Request>
Result<int> run_change(const Invocation& in) {
  Request request;
  const auto operands = in.parse(&request, 1, kAnyOperands);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  return change_jobs(in, std::move(request), **operands);
}

// Without operands, inside a job, it reports for that job itself.
Result<int> run_checkpointed(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 0, kAnyOperands);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  std::vector<std::string> jobs = **operands;
  if (const char* own = std::getenv("GANTRY_JOB_ID"); jobs.empty() && own != nullptr)
    jobs.emplace_back(own);
  if (jobs.empty()) return fail(ErrorCode::usage, "name a job, or call it inside of one");
  return change_jobs(in, proto::CheckpointJobs{}, jobs);
}

constexpr Option kRequeueOptions[] = {
    {.name = "hold",
     .help = "Hold the job after it is back in the queue",
     .set = put<&proto::RequeueJobs::hold>},
};

// ---- ping

Result<int> run_ping(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 0, 0);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  auto session = Session::open(in.program());
  if (!session) return tl::unexpected(session.error());
  const Instant before = system_now();
  const auto reply = session->call<proto::PingReply>(proto::Ping{});
  if (!reply) return tl::unexpected(reply.error());
  const Duration took = system_now() - before;
  fmt::print("cluster {} (gantry {}) is up since {}; answered in {} us\n", reply->cluster,
             reply->version, format_time(reply->started), took.us);
  fmt::print("{} of {} nodes are up; {} jobs wait, {} run\n", reply->nodes_up, reply->nodes,
             reply->jobs_queued, reply->jobs_active);
  return 0;
}

// ---- logs

struct Logs {
  bool follow = false;
  bool std_err = false;
};
constexpr Option kLogOptions[] = {
    {.name = "follow",
     .letter = 'f',
     .help = "Go on as the output grows, until the job has ended",
     .set = put<&Logs::follow>},
    {.name = "stderr",
     .letter = 'e',
     .help = "Standard error instead of output",
     .set = put<&Logs::std_err>},
};

Result<int> run_logs(const Invocation& in) {
  Logs logs;
  const auto operands = in.parse(&logs, 1, 1);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  const auto ref = parse_job_ref((*operands)->front());
  if (!ref)
    return fail(ErrorCode::invalid_argument,
                fmt::format("Invalid job id {}", (*operands)->front()));
  auto session = Session::open(in.program());
  if (!session) return tl::unexpected(session.error());
  proto::ReadLog read;
  read.job = *ref;
  read.std_err = logs.std_err;
  while (true) {
    const auto chunk = session->call<proto::LogChunk>(read);
    if (!chunk) {
      // A job that has not started has no output yet, so --follow waits.
      const bool later = logs.follow && chunk.error().code == ErrorCode::wrong_state;
      if (!later) return tl::unexpected(chunk.error());
    } else {
      std::fwrite(chunk->data.data(), 1, chunk->data.size(), stdout);
      if (std::fflush(stdout) != 0) return 1;  // nobody reads the output any more
      read.offset = chunk->offset + chunk->data.size();
      if (chunk->data.empty() && (!logs.follow || chunk->job_ended)) return 0;
      if (!chunk->data.empty()) continue;
    }
    const timespec pause{0, 500'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

// ---- reconfigure, token

Result<int> run_reconfigure(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 0, 0);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  const auto done = reconfigure(in.program());
  if (!done) return tl::unexpected(done.error());
  return 0;
}

struct TokenOptions {
  proto::MakeToken message;
  bool json = false;
};
Result<void> set_token_user(TokenOptions& o, std::string_view text) {
  o.message.user = text;
  return {};
}
Result<void> set_token_lifetime(TokenOptions& o, std::string_view text) {
  const auto lifetime = parse_duration(text);
  if (!lifetime) return tl::unexpected(lifetime.error());
  if (!*lifetime || **lifetime <= Duration{})
    return fail(ErrorCode::invalid_argument, "a token has an end: minutes, H:M:S or D-H");
  o.message.lifetime = **lifetime;
  return {};
}
constexpr Option kTokenOptions[] = {
    {.name = "json", .help = "As JSON", .set = put<&TokenOptions::json>},
    {.name = "lifetime",
     .letter = 't',
     .arg = Arg::required,
     .value = "TIME",
     .help = "How long it is valid: minutes, H:M:S or D-H (default 30 minutes)",
     .set = call<set_token_lifetime>},
    {.name = "user",
     .letter = 'u',
     .arg = Arg::required,
     .value = "USER",
     .help = "For this user instead of oneself (administrators)",
     .set = call<set_token_user>},
};

Result<int> run_token(const Invocation& in) {
  TokenOptions options;
  const auto operands = in.parse(&options, 0, 0);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  const auto made = ask<proto::TokenMade>(in.program(), options.message);
  if (!made) return tl::unexpected(made.error());
  if (options.json)
    fmt::print("{{\"token\": \"{}\", \"user\": \"{}\", \"expires\": \"{}\"}}\n", made->token,
               made->user, format_time(made->expires));
  else
    fmt::print("GANTRY_TOKEN={}\n", made->token);
  return 0;
}

// ---- keys

Result<int> run_enroll(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 2, 2);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  const auto key = net::parse_public_key((**operands)[1]);
  if (!key) return tl::unexpected(key.error());
  const auto ok =
      ask<proto::Ok>(in.program(), proto::EnrollNode{(**operands)[0], net::to_z85(*key)});
  if (!ok) return tl::unexpected(ok.error());
  return 0;
}

template <bool Remove>
Result<int> run_key(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 2, 2);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  const std::string& text = (**operands)[1];
  const auto bytes = net::from_hex(text);
  if (!bytes || bytes->size() != net::kKeyBytes)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("\"{}\" is not a public key; `gantry keygen` prints one, of 64 hex digits",
                    text));
  proto::RegisterKey request;
  request.user = (**operands)[0];
  request.public_key = net::to_hex(*bytes);
  request.remove = Remove;
  const auto ok = ask<proto::Ok>(in.program(), request);
  if (!ok) return tl::unexpected(ok.error());
  return 0;
}

const Command kCheckpointed{
    .name = "checkpointed",
    .summary = "Say that running jobs have saved their work up to now",
    .operands = "[JOB...]",
    .description =
        "When jobs have to leave for others, those that lose the least work go first; "
        "what was done before the newest checkpoint is not lost. Inside a job it is "
        "said of the job itself. A job that writes a file need not say it: see "
        "--checkpoint-file of gbatch.",
    .run = run_checkpointed};
const Command kHold{.name = "hold",
                    .summary = "Keep jobs in the queue",
                    .operands = "JOB...",
                    .run = run_change<proto::HoldJobs>};
const Command kRelease{.name = "release",
                       .summary = "Let held jobs go",
                       .operands = "JOB...",
                       .run = run_change<proto::ReleaseJobs>};
const Command kSuspend{
    .name = "suspend",
    .summary = "Stop running jobs where they are (operators)",
    .operands = "JOB...",
    .description =
        "They keep all that they hold. Time limit, cost and fair share stand still until "
        "they are let go on with `gctl unsuspend`.",
    .run = run_change<proto::SuspendJobs>};
const Command kUnsuspend{.name = "unsuspend",
                         .summary = "Let suspended jobs go on (operators)",
                         .operands = "JOB...",
                         .run = run_change<proto::ResumeJobs>};
const Command kRequeue{.name = "requeue",
                       .summary = "End running jobs and put them back into the queue",
                       .operands = "JOB...",
                       .options = kRequeueOptions,
                       .run = run_change<proto::RequeueJobs>};
const Command kPing{
    .name = "ping", .summary = "Ask whether the controller is well", .run = run_ping};
const Command kLogs{.name = "logs",
                    .summary = "Print the output of a job",
                    .operands = "JOB",
                    .options = kLogOptions,
                    .run = run_logs};
const Command kReconfigure{
    .name = "reconfigure",
    .summary = "Have the controller and the nodes read gantry.yaml again (administrators)",
    .description =
        "The controller starts anew in its own process, as the nodes do; jobs go on. A file that "
        "is not sound, or that it cannot start with, changes nothing and is complained about here. "
        "cluster, controller.host, port, state_dir and secret_key_file take a restart. SIGHUP to "
        "gantry-ctld does the same.",
    .run = run_reconfigure};
constexpr Example kTokenExamples[] = {
    {"export $(gctl token -t 8:00:00)", "Commands of this shell show the token for eight hours"},
};
const Command kToken{
    .name = "token",
    .summary = "Make a token that speaks for a user",
    .description =
        "For programs that have neither munge nor a key: with GANTRY_TOKEN (or SLURM_JWT) set, "
        "commands show it instead. Whoever has it is the user until it ends; it cannot be taken "
        "back. How long it may last is controller.max_token_lifetime's to say.",
    .options = kTokenOptions,
    .examples = kTokenExamples,
    .run = run_token};
const Command kEnroll{.name = "enroll",
                      .summary = "Accept a node by its public key",
                      .operands = "NODE KEY",
                      .run = run_enroll};
const Command kKeyAdd{.name = "add",
                      .summary = "Let a key speak for a user",
                      .operands = "USER KEY",
                      .run = run_key<false>};
const Command kKeyRemove{
    .name = "remove", .summary = "Forget a key", .operands = "USER KEY", .run = run_key<true>};
constexpr const Command* kKeySub[] = {&kKeyAdd, &kKeyRemove};
const Command kKey{
    .name = "key", .summary = "Add and remove keys of users", .run = nullptr, .sub = kKeySub};

constexpr const Command* kSub[] = {
    &kGctlShow,         &kGctlWhy,         &kLogs,      &kHold,        &kRelease,
    &kRequeue,          &kSuspend,         &kUnsuspend, &kGctlUpdate,  &kCheckpointed,
    &kGctlDrain,        &kGctlResume,      &kGctlClose, &kGctlDead,    &kGctlReserve,
    &kGctlReservations, &kGctlUnreserve,   &kEnroll,    &kKey,         &kPing,
    &kGctlTop,          &kGctlMaintenance, &kGctlMig,   &kReconfigure, &kToken,
    &kGctlPartition};

constexpr Example kExamples[] = {
    {"gctl show job 12", "Everything about a job"},
    {"gctl why 12", "Why it does not run"},
    {"gctl logs -f 12", "Its output, as it grows"},
    {"gctl drain 'n[03-04]' --reason 'new memory'", "Take nodes out of service gently"},
    {"gctl reservations", "Reservations and maintenance windows"},
};
constexpr ExitDoc kExits[] = {
    {"0", "done"}, {"1", "refused, unknown, or no answer"}, {"2", "the command line is wrong"}};

}  // namespace

extern const Command kGctl;
const Command kGctl{
    .name = "gctl",
    .summary = "Show and change jobs, nodes, partitions and reservations",
    .examples = kExamples,
    .exits = kExits,
    .run = nullptr,
    .sub = kSub,
};

}  // namespace gantry::cli
