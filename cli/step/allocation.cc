// Submits the request of an allocation, waits for its start, and releases it.
#include "cli/step/allocation.h"

#include <fmt/core.h>

#include <csignal>

#include "cli/random_id.h"
#include "common/text/text.h"

namespace gantry::cli {
namespace {

constexpr Duration kPatience = milliseconds(500);  // if the start takes longer, the user is told
constexpr Duration kPollSignals = milliseconds(250);

volatile std::sig_atomic_t interrupted = 0;  // set by the signal handler, read by the wait below

void note_signal(int) {
  interrupted = 1;
}

// While an object of this class lives, SIGINT, SIGTERM and SIGHUP end the wait instead of the
// process.
class Interruptible {
 public:
  Interruptible() {
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = note_signal;
    for (std::size_t i = 0; i < kSignals.size(); ++i)
      ::sigaction(kSignals[i], &action, &before_[i]);
  }
  ~Interruptible() {
    for (std::size_t i = 0; i < kSignals.size(); ++i)
      ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
};

}  // namespace

Result<Allocation> Allocation::ask(const Invocation& invocation, const JobRequest& request,
                                   Session& session) {
  return ask(invocation, std::vector{&request}, session);
}

Result<Allocation> Allocation::ask(const Invocation& invocation,
                                   const std::vector<const JobRequest*>& parts, Session& session) {
  proto::SubmitTogether all;
  for (const JobRequest* request : parts) {
    proto::SubmitJob& message = all.parts.emplace_back();
    message.request_id = random_id();
    message.spec = request->spec;
    message.spec.kind = JobKind::allocation;
    message.spec.requeue = false;  // the owner waits for this start only
    if (message.spec.name.empty()) message.spec.name = "interactive";
    message.spec.submit_line = invocation.line();
  }
  all.parts.front().environment = job_environment(parts.front()->exported);
  const Interruptible interruptible;
  ASSIGN(submitted, parts.size() == 1 ? session.call<proto::SubmitReply>(all.parts.front())
                                      : session.call<proto::SubmitReply>(all));
  Allocation allocation(invocation.program(), submitted->job);
  // Slurm's srun and salloc print the first of these in Slurm's words.
  const bool of_slurm = invocation.program() == "srun" || invocation.program() == "salloc";
  for (const std::string& warning : submitted->warnings)
    if (of_slurm && warning.ends_with(" is down: the job waits"))
      fmt::print(stderr, "{}: Partition in DOWN state\n", invocation.program());
    else
      fmt::print(stderr, "{}: warning: {}\n", invocation.program(), warning);

  proto::WaitJobs wait;
  wait.jobs.push_back({submitted->job, {}});
  wait.until_started = true;
  ASSIGN(asked, session.send(wait));
  // In Slurm, components are always queued first, and with --immediate alone nothing is printed.
  const bool quiet = parts.front()->quiet;
  bool announced = of_slurm && !quiet && parts.size() > 1 && allocation.say_queued();
  Duration patience = kPatience;
  const std::optional<Duration> most = parts.front()->most_wait;
  const Instant begin = system_now();
  for (;;) {
    if (most) patience = std::min(patience, *most);
    auto reply = session.receive<proto::WaitReply>(*asked, patience);
    if (reply) {
      if (!reply->rows.empty()) allocation.row_ = std::move(reply->rows.front());
      break;
    }
    if (reply.error().code != ErrorCode::timed_out) return tl::unexpected(reply.error());
    if (interrupted != 0) {
      allocation.end(session, {1, 0});
      return fail(ErrorCode::wrong_state,
                  fmt::format("Job allocation {} has been revoked", submitted->job.value()));
    }
    if (most && system_now() - begin >= *most) {
      allocation.end(session, {1, 0});
      return fail(ErrorCode::unavailable, "Requested nodes are busy");
    }
    if (!announced && !quiet && (!most || *most > seconds(1))) announced = allocation.say_queued();
    patience = kPollSignals;
  }
  if (allocation.row_.phase == Phase::ended)
    return fail(ErrorCode::wrong_state,
                fmt::format("Job allocation {} has been revoked", submitted->job.value()));
  if (announced)
    fmt::print(stderr, "{}: job {} has been allocated resources\n", allocation.program_,
               submitted->job.value());
  return allocation;
}

// Slurm's salloc prints one line more than its srun.
bool Allocation::say_queued() const {
  if (program_ == "salloc") fmt::print(stderr, "salloc: Pending job allocation {}\n", job_.value());
  fmt::print(stderr, "{}: job {} queued and waiting for resources\n", program_, job_.value());
  return true;
}

void Allocation::end(Session& session, ExitStatus exit) const {
  proto::EndAllocation message;
  message.job = job_;
  message.exit = exit;
  const auto done = session.call<proto::Ok>(message);
  if (done) return;
  const ErrorCode code = done.error().code;
  // The job has already ended.
  if (code == ErrorCode::not_found || code == ErrorCode::wrong_state) return;
  fmt::print(stderr, "{}: job {} could not be given back: {}\n", program_, job_.value(),
             done.error().message);
}

}  // namespace gantry::cli
