#include "ctld/core/notify/letters.h"

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/job/public_state.h"
#include "common/proto/tenant_events.h"
#include "common/text/printable.h"
#include "common/text/text.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/job/rows.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/state/state.h"
#include "ctld/core/state/stored_spec.h"

namespace gantry::core {
namespace {

struct Wanted {
  MailEvents events;
  std::vector<std::string> to;  // empty = the user who submitted the job
};

Wanted wanted_of(const State& state, const Job& job) {
  auto tail = codec::decode<SpecTail>(spec_bytes(state, job));
  GANTRY_ASSERT(tail.has_value(), "a spec that was read once");
  MailRequest& mail = tail->spec.mail;
  return {mail.events.value_or(MailEvents{}), std::move(mail.to)};
}

// True if no other task of the array has started yet.
bool first_task(const State& state, const Job& array, JobId started) {
  if (!array.tasks->done_ok.empty()) return false;
  for (const auto& [ordinal, id] : array.tasks->elements) {
    const Job* other = id == started ? nullptr : state.jobs.find(id);
    if (other != nullptr && other->started_once) return false;
  }
  return true;
}

// The start of a subject: "Job_id=12", "Array Task Job_id=12_3 (15)" or "Array Summary Job_id=12_*
// (12)".
std::string about(const Job& job) {
  if (job.is_array())
    return fmt::format("Array Summary Job_id={}_* ({})", job.id.value(), job.id.value());
  if (job.is_element())
    return fmt::format("Array Task Job_id={}_{} ({})", job.array.value(), job.task, job.id.value());
  return fmt::format("Job_id={}", job.id.value());
}

std::string state_and_exit(const Job& job) {
  const Outcome outcome = job.outcome.value_or(Outcome::completed);
  const std::string_view name = public_state(Phase::ended, outcome).name;
  if (outcome == Outcome::cancelled || outcome == Outcome::timeout) return std::string(name);
  if (job.exit.signal != 0) return fmt::format("{}, Signal {}", name, job.exit.signal);
  return fmt::format("{}, ExitCode {}", name, job.exit.code);
}

// The text in ASCII, as headers must be.
std::string header_text(std::string text) {
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

Letter letter_about(const State& state, const Job& job, const Wanted& wanted,
                    const std::string& what) {
  Letter letter;
  letter.uid = job.uid;
  letter.to = wanted.to;
  if (letter.to.empty()) letter.to.emplace_back(state.names.text(job.user));
  const std::string name(state.names.text(job.name));
  letter.subject = header_text(fmt::format("Slurm {} Name={} {}", about(job), name, what));
  letter.body = fmt::format(
      "{} of {} in {}: {}\nName: {}\n", display_id(state, job), state.names.text(job.user),
      state.partition(class_of(state, job).partition).name, what, printable(name));
  const std::string nodes = job.active ? node_list_of(state, job) : std::string();
  if (!nodes.empty()) letter.body += fmt::format("Nodes: {}\n", nodes);
  if (!job.cause.empty()) letter.body += fmt::format("Reason: {}\n", printable(job.cause));
  return letter;
}

struct Teller {
  const State& state;
  Instant at;
  std::vector<Letter>& out;

  void tell(const Job& job, const Wanted& wanted, const std::string& what) {
    out.push_back(letter_about(state, job, wanted, what));
  }

  void operator()(const event::JobStarted& e) {
    const Job& job = state.jobs.at(e.job);
    const Wanted wanted = wanted_of(state, job);
    if (!wanted.events.begin) return;
    const std::string what =
        "Began, Queued time " + format_duration_long(std::max(at - job.submitted, Duration{}));
    if (!job.is_element() || wanted.events.array_tasks) return tell(job, wanted, what);
    const Job* array = state.jobs.find(job.array);
    if (array != nullptr && first_task(state, *array, job.id)) tell(*array, wanted, what);
  }

  void operator()(const event::JobEnded& e) {
    const Job& job = state.jobs.at(e.job);
    const Wanted wanted = wanted_of(state, job);
    const bool each = wanted.events.array_tasks;
    if (!wanted.events.any() || (job.is_array() ? each : job.is_element() && !each)) return;
    const Instant began = job.is_array() ? job.submitted : job.started.value_or(at);
    const std::string rest =
        fmt::format("{} time {}, {}", job.is_array() ? "Total" : "Run",
                    format_duration_long(std::max(at - began, Duration{})), state_and_exit(job));
    const bool well = e.outcome == Outcome::completed || e.outcome == Outcome::cancelled;
    if (e.outcome == Outcome::timeout && wanted.events.time_limit)
      tell(job, wanted, "Reached time limit, " + rest);
    else if (!well && wanted.events.fail)
      tell(job, wanted, "Failed, " + rest);
    else if (wanted.events.end)
      tell(job, wanted, "Ended, " + rest);
  }

  void operator()(const event::JobRequeued& e) { requeued(state.jobs.at(e.job)); }
  void operator()(const event::JobRevived& e) { requeued(state.jobs.at(e.job)); }

  void requeued(const Job& job) {
    const Wanted wanted = wanted_of(state, job);
    if (!wanted.events.requeue) return;
    if (job.is_element() && !wanted.events.array_tasks) return;
    tell(job, wanted, "Requeued");
  }

  void operator()(const event::DependencySettled& e) {
    const Job& job = state.jobs.at(e.job);
    if (e.met || dependency_gate(job) != Gate::never) return;
    const Wanted wanted = wanted_of(state, job);
    if (wanted.events.invalid_depend) tell(job, wanted, "Invalid dependency");
  }

  // The owner is told even if the job asks for no mail, because the tenant wants it.
  void operator()(const event::GpusIdle& e) {
    if (e.alert.step != proto::IdleGpuStep::warn) return;
    const Job& job = state.jobs.at(e.job);
    const Wanted wanted = wanted_of(state, job);
    tell(job, wanted, fmt::format("GPUs idle for {}", format_duration_long(e.alert.idle)));
    out.back().body += fmt::format("GPUs that do nothing: {}{}\n", e.alert.gpus,
                                   e.alert.no_process ? " (no process is on any)" : "");
  }

  template <EventStruct E>
  void tell_if(EventRef event) {
    if (const auto* e = event.get_if<E>()) (*this)(*e);
  }
};

}  // namespace

void write_letters(const State& state, Instant at, EventRef event, std::vector<Letter>& out) {
  Teller teller{state, at, out};
  teller.tell_if<event::JobStarted>(event);
  teller.tell_if<event::JobEnded>(event);
  teller.tell_if<event::JobRequeued>(event);
  teller.tell_if<event::JobRevived>(event);
  teller.tell_if<event::DependencySettled>(event);
  teller.tell_if<event::GpusIdle>(event);
}

}  // namespace gantry::core
