// gtenant events: shows when quota and budgets filled up, and when jobs did not use their GPUs.
#include <fmt/core.h>

#include <ctime>

#include "cli/session.h"
#include "cli/tenancy/cmd_gtenant.h"
#include "common/text/text.h"

namespace gantry::cli::gtenant_events {
namespace {

struct EventOptions {
  std::uint32_t limit = 0;
  bool follow = false;
  bool json = false;
};

constexpr Option kOptions[] = {
    flag("follow", 'f', "Go on with those that come", put<&EventOptions::follow>),
    flag("json", "As JSON, one event a line", put<&EventOptions::json>),
    takes("limit", 'n', "N", "The newest N only",
          number<"the number of events", 1, 1'000'000, &EventOptions::limit>),
};

void print_event(const EventOptions& options, const proto::QuotaAlert& a) {
  if (options.json) {
    fmt::print("{}\n", codec::to_json(a));
    return;
  }
  if (!a.budget.empty()) {
    fmt::print("{} {} has spent {} of {} of budget {} for {}: {} % reached{}\n", format_time(a.at),
               a.tenant, format_money(a.spent, 2), format_money(a.amount, 2), a.budget, a.period,
               a.percent,
               a.ended == 0   ? ""
               : a.ended == 1 ? ", 1 job is ended"
                              : fmt::format(", {} jobs are ended", a.ended));
    return;
  }
  if (!a.job.empty()) {
    const std::string_view then = a.step == proto::IdleGpuStep::warn      ? "; its owner is told"
                                  : a.step == proto::IdleGpuStep::requeue ? "; it is requeued"
                                  : a.step == proto::IdleGpuStep::cancel  ? "; it is cancelled"
                                                                          : "";
    fmt::print("{} {} job {} of {} has done nothing for {} on {}{}{}\n", format_time(a.at),
               a.tenant, a.job, a.user, format_duration(a.idle), a.gpus,
               a.no_process ? ", with no process there" : "", then);
    return;
  }
  fmt::print("{} {} uses {} of its {}{}: {} % reached\n", format_time(a.at), a.tenant,
             amount_words(a.resource, a.used), amount_words(a.resource, a.nominal),
             a.flavor.empty() ? "" : " of " + a.flavor, a.percent);
}

Result<int> run_events(const Invocation& in) {
  EventOptions options;
  OPERANDS(operands, in, &options, 0, kAnyOperands);
  ASSIGN(session, Session::open(in.program()));
  proto::TenantEvents ask{**operands, 0, options.limit};
  while (true) {
    ASSIGN(reply, session->call<proto::TenantEventsReply>(ask));
    for (const proto::QuotaAlert& a : reply->events) {
      print_event(options, a);
      ask.after = a.number;
    }
    if (std::fflush(stdout) != 0 || !options.follow) return 0;
    ask.limit = 0;
    const timespec pause{2, 0};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace

const Command kTenantEvents{
    {"events",
     "List when quota filled up (70, 85 and 100 %), budgets (their thresholds), and idle "
     "GPUs of jobs",
     "[TENANT...]"},
    {.description =
         "An event comes when a tenant's use of a resource reaches a threshold; of the same one "
         "again after it was 5 points below, and not within ten minutes. The controller keeps the "
         "last 1000, and writes each to its log as `quota_filled tenant=... percent=...`, those of "
         "budgets as `budget_reached tenant=... budget=... percent=...`. GPUs that a job has and "
         "does not use come as the tenant's `idle_gpus` wants it, in the log as `gpus_idle "
         "tenant=... job=... step=...`.",
     .options = kOptions,
     .examples = {{"gtenant events fraud", "When the tenant's quota filled up"},
                  {"gtenant events -f --json", "All that come, for a program"}},
     .run = run_events}};

}  // namespace gantry::cli::gtenant_events
