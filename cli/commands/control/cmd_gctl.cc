// gctl: what operators and owners of jobs can do and see.
#include <fmt/core.h>

#include <cstdlib>

#include "cli/cluster/daemons.h"
#include "cli/columns/history_rows.h"
#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "cli/submit/job_refs.h"
#include "common/job/verdict_text.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli::gctl {
namespace {

struct NoOptions {};

// ---- hold, release, requeue

template <class Request>
Result<int> change_jobs(const Invocation& in, Request request,
                        const std::vector<std::string>& operands) {
  ASSIGN(refs, job_refs_of(operands));
  request.jobs = std::move(*refs);
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(done, session->call<proto::JobsDone>(request));
  for (const auto& refused : done->refused)
    fmt::print(stderr, "{}: error: job {}: {}\n", in.program(), format_job_ref(refused.job),
               refused.error.message);
  tell_not_reached(in.program(), *session, done->not_active);
  return done->refused.empty() && done->not_active.empty() ? 0 : 1;
}

template <class Request>
Result<int> run_change(const Invocation& in) {
  Request request;
  OPERANDS(operands, in, &request, 1, kAnyOperands);
  return change_jobs(in, std::move(request), **operands);
}

// Without operands, inside a job, it reports for that job itself.
Result<int> run_checkpointed(const Invocation& in) {
  NoOptions none;
  OPERANDS(operands, in, &none, 0, kAnyOperands);
  std::vector<std::string> jobs = **operands;
  if (const char* own = std::getenv("GANTRY_JOB_ID"); jobs.empty() && own != nullptr)
    jobs.emplace_back(own);
  if (jobs.empty()) return fail(ErrorCode::usage, "name a job, or call it inside of one");
  return change_jobs(in, proto::CheckpointJobs{}, jobs);
}

constexpr Option kRequeueOptions[] = {
    flag("hold", "Hold the job after it is back in the queue", put<&proto::RequeueJobs::hold>),
};

// ---- ping

Result<int> run_ping(const Invocation& in) {
  NoOptions none;
  OPERANDS(operands, in, &none, 0, 0);
  ASSIGN(session, Session::open(in.program()));
  const Instant before = system_now();
  ASSIGN(reply, session->call<proto::PingReply>(proto::Ping{}));
  const Duration took = system_now() - before;
  fmt::print("cluster {} (gantry {}) is up since {}; answered in {} us\n", reply->cluster,
             reply->version, format_time(reply->started), took.us);
  fmt::print("{} of {} up; {} {}, {} {}\n", reply->nodes_up,
             counted(static_cast<std::int64_t>(reply->nodes), "node"),
             counted(static_cast<std::int64_t>(reply->jobs_queued), "job"),
             reply->jobs_queued == 1 ? "waits" : "wait", reply->jobs_active,
             reply->jobs_active == 1 ? "runs" : "run");
  return 0;
}

// ---- reconfigure, token

Result<int> run_reconfigure(const Invocation& in) {
  NoOptions none;
  OPERANDS(operands, in, &none, 0, 0);
  ASSIGN(done, reconfigure(in.program()));
  return 0;
}

struct TokenOptions {
  proto::MakeToken message;
  bool json = false;
};
Result<void> set_token_lifetime(TokenOptions& o, std::string_view text) {
  ASSIGN(lifetime, parse_duration(text));
  if (!*lifetime || **lifetime <= Duration{})
    return fail(ErrorCode::invalid_argument, "a token has an end: minutes, H:M:S or D-H");
  o.message.lifetime = **lifetime;
  return {};
}
constexpr Option kTokenOptions[] = {
    takes("audience", "SERVICE",
          "Make an identity token for requests to this service, or to all with gantry-services; it "
          "is printed alone, and gives no rights here",
          put<AT(TokenOptions, message.audience)>),
    flag("json", "As JSON", put<&TokenOptions::json>),
    takes("lifetime", 't', "TIME",
          "How long it is valid: minutes, H:M:S or D-H (default 30 minutes)",
          call<set_token_lifetime>),
    takes("tenant", "TENANT",
          "With --audience: in whose name services are called (default: one's only tenant)",
          put<AT(TokenOptions, message.tenant)>),
    takes("user", 'u', "USER", "For this user instead of oneself (administrators)",
          put<AT(TokenOptions, message.user)>),
};

Result<int> run_token(const Invocation& in) {
  TokenOptions options;
  OPERANDS(operands, in, &options, 0, 0);
  const bool identity = !options.message.audience.empty();
  if (!identity && !options.message.tenant.empty())
    return fail(ErrorCode::usage, "--tenant belongs to --audience");
  ASSIGN(made, ask<proto::TokenMade>(in.program(), options.message));
  if (options.json && identity)
    fmt::print("{{\"token\": \"{}\", \"user\": \"{}\", \"tenant\": \"{}\", \"expires\": \"{}\"}}\n",
               made->token, made->user, made->tenant, format_time(made->expires));
  else if (identity)
    fmt::print("{}\n", made->token);
  else if (options.json)
    fmt::print("{{\"token\": \"{}\", \"user\": \"{}\", \"expires\": \"{}\"}}\n", made->token,
               made->user, format_time(made->expires));
  else
    fmt::print("GANTRY_TOKEN={}\n", made->token);
  return 0;
}

// ---- keys

template <bool Remove>
Result<int> run_key(const Invocation& in) {
  NoOptions none;
  OPERANDS(operands, in, &none, 2, 2);
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
  ASSIGN(ok, ask<proto::Ok>(in.program(), request));
  return 0;
}

const Command kCheckpointed{
    {"checkpointed", "Say that running jobs have saved their work up to now", "[JOB...]"},
    {.description = "When jobs have to leave for others, those that lose the least work go first; "
                    "what was done before the newest checkpoint is not lost. Inside a job it is "
                    "said of the job itself. A job that writes a file need not say it: see "
                    "--checkpoint-file of gbatch.",
     .examples = {{"gctl checkpointed 12", "Job 12 has saved its work now"},
                  {"gctl checkpointed", "Inside a job: this job has"}},
     .run = run_checkpointed}};
const Command kHold{{"hold", "Keep jobs in the queue", "JOB..."},
                    {.examples = {{"gctl hold 12", "Job 12 waits until it is released"},
                                  {"gctl hold 15_[4-9]", "So do some tasks of an array"}},
                     .run = run_change<proto::HoldJobs>}};
const Command kRelease{{"release", "Let held jobs go", "JOB..."},
                       {.examples = {{"gctl release 12", "Job 12 may start again"}},
                        .run = run_change<proto::ReleaseJobs>}};
const Command kSuspend{
    {"suspend", "Stop running jobs where they are (operators)", "JOB..."},
    {.description =
         "They keep all that they hold. Time limit, cost and fair share stand still until "
         "they are let go on with `gctl unsuspend`.",
     .examples = {{"gctl suspend 12", "Job 12 stands still, and keeps its cores and memory"}},
     .run = run_change<proto::SuspendJobs>}};
const Command kUnsuspend{
    {"unsuspend", "Let suspended jobs go on (operators)", "JOB..."},
    {.examples = {{"gctl unsuspend 12", "Job 12 goes on"}}, .run = run_change<proto::ResumeJobs>}};
const Command kRequeue{
    {"requeue", "End running jobs and put them back into the queue", "JOB..."},
    {.options = kRequeueOptions,
     .examples = {{"gctl requeue 12", "Job 12 ends and waits again, as after a preemption"},
                  {"gctl requeue --hold 12", "It waits until it is released"}},
     .run = run_change<proto::RequeueJobs>}};
const Command kPing{
    {"ping", "Ask whether the controller is well"},
    {.examples = {{"gctl ping", "Is there an answer, and since when is the controller up"}},
     .run = run_ping}};
const Command kReconfigure{
    {"reconfigure", "Have the controller and the nodes read gantry.yaml again (administrators)"},
    {.description =
         "The controller starts anew in its own process, as the nodes do; jobs go on. A file that "
         "is not sound, or that it cannot start with, changes nothing and is complained about "
         "here. "
         "cluster, controller.host, port, state_dir and secret_key_file take a restart. SIGHUP to "
         "gantry-ctld does the same.",
     .examples = {{"gctl reconfigure", "Take over what was changed in gantry.yaml"}},
     .run = run_reconfigure}};
const Command kToken{
    {"token", "Make a token that speaks for a user"},
    {.description =
         "For programs that have neither munge nor a key: with GANTRY_TOKEN (or SLURM_JWT) set, "
         "commands show it instead. Whoever has it is the user until it ends; it cannot be taken "
         "back. How long it may last is controller.max_token_lifetime's to say. With --audience it "
         "makes an identity token that gates of services take (controller.identity_lifetime).",
     .options = kTokenOptions,
     .examples =
         {{"export $(gctl token -t 8:00:00)",
           "Commands of this shell show the token for eight hours"},
          {"curl -H \"Authorization: Bearer $(gctl token --audience score)\" http://gate:8080/ "
           "-H 'Host: "
           "score.fraud'",
           "A request to the service score"}},
     .run = run_token}};
const Command kKeyAdd{{"add", "Let a key speak for a user", "USER KEY"},
                      {.examples = {{"gctl key add alice \"$(cat alice.pub)\"",
                                     "The key that `gantry keygen` printed for alice"}},
                       .run = run_key<false>}};
const Command kKeyRemove{{"remove", "Forget a key", "USER KEY"},
                         {.examples = {{"gctl key remove alice \"$(cat alice.pub)\"",
                                        "Commands that show this key are refused from now on"}},
                          .run = run_key<true>}};
constexpr const Command* kKeySub[] = {&kKeyAdd, &kKeyRemove};
const Command kKey{
    {"key", "Add and remove keys of users"},
    {.examples = {{"gctl key add alice \"$(cat alice.pub)\"", "Let this key speak for alice"}},
     .sub = kKeySub}};

constexpr const Command* kSub[] = {&gctl_show::kGctlShow,
                                   &gctl_why::kGctlWhy,
                                   &gctl_logs::kGctlLogs,
                                   &kHold,
                                   &kRelease,
                                   &kRequeue,
                                   &kSuspend,
                                   &kUnsuspend,
                                   &gctl_update::kGctlUpdate,
                                   &kCheckpointed,
                                   &gctl_update::kGctlDrain,
                                   &gctl_update::kGctlResume,
                                   &gctl_update::kGctlClose,
                                   &gctl_update::kGctlDead,
                                   &gctl_reserve::kGctlReserve,
                                   &gctl_reserve::kGctlReservations,
                                   &gctl_reserve::kGctlUnreserve,
                                   &gctl_enroll::kGctlEnroll,
                                   &kKey,
                                   &kPing,
                                   &gctl_top::kGctlTop,
                                   &gctl_maintenance::kGctlMaintenance,
                                   &gctl_mig::kGctlMig,
                                   &kReconfigure,
                                   &kToken,
                                   &gctl_partition::kGctlPartition,
                                   &gctl_network::kGctlNetwork,
                                   &gctl_neighbours::kGctlNeighbours,
                                   &gctl_audit::kGctlAudit,
                                   &gctl_who_can::kGctlWhoCan,
                                   &gctl_service::kGctlService};

}  // namespace

extern const Command kGctl;
const Command kGctl{{"gctl", "Show and change jobs, nodes, partitions and reservations"},
                    {.examples = {{"gctl show job 12", "Everything about a job"},
                                  {"gctl why 12", "Why it does not run"},
                                  {"gctl logs -f 12", "Its output, as it grows"},
                                  {"gctl drain 'n[03-04]' --reason 'new memory'",
                                   "Take nodes out of service gently"},
                                  {"gctl reservations", "Reservations and maintenance windows"}},
                     .exits = {{"0", "done"},
                               {"1", "refused, unknown, or no answer"},
                               {"2", "the command line is wrong"}},
                     .sub = kSub}};

}  // namespace gantry::cli::gctl
