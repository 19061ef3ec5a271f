// Prints the replies and orders of a scenario; see world.h.
#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/job/public_state.h"
#include "common/overloaded.h"
#include "common/proto/any/message_visit.h"
#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"
#include "ctld/core/job/submit/blobs.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "ctld/store/store.h"
#include "world.h"

namespace gantry::core::test {
namespace {

std::string refs_text(const std::vector<proto::JobRef>& refs) {
  std::string out;
  for (const proto::JobRef& ref : refs) out += (out.empty() ? "" : " ") + format_job_ref(ref);
  return out;
}

std::string exit_text(const ExitStatus& e) {
  return fmt::format("{}:{}", e.code, e.signal);
}

std::string cpus_text(const std::vector<std::uint16_t>& cpus) {
  const std::vector<std::uint32_t> wide(cpus.begin(), cpus.end());
  return format_index_ranges(compress_indexes(wide));
}

std::string row_id(const proto::JobRow& row) {
  if (row.array_task) return fmt::format("{}_{}", row.array_job.value(), *row.array_task);
  if (!row.array_tasks.empty()) return fmt::format("{}_[{}]", row.job.value(), row.array_tasks);
  return fmt::format("{}", row.job.value());
}

std::string keys_text(const std::vector<proto::AttemptKey>& keys) {
  std::string out;
  for (const auto& key : keys) out += fmt::format(" {}.{}", key.job.value(), key.attempt.value());
  return out;
}

}  // namespace

std::string World::shown(JobId id) const {
  const Job* job = core_->state().jobs.find(id);
  return job ? display_id(core_->state(), *job) : fmt::format("{}", id.value());
}

JobId World::job_id(const std::string& name) const {
  const auto ref = *parse_job_ref(name);
  if (ref.tasks.empty()) return ref.job;
  const Job& array = core_->state().jobs.at(ref.job);
  return array.tasks->elements.at(*array.tasks->indexes.ordinal_of(ref.tasks.at(0).first));
}

proto::AttemptKey World::key_of(const std::string& name) const {
  const JobId id = job_id(name);
  const Job* job = core_->state().jobs.find(id);
  return {id, job ? job->attempt : Attempt{}};
}

std::string World::time_text(Instant t) const {
  return "+" + format_duration(t - begin_);
}

Instant World::time_of(const std::string& text) const {
  return now_ + parse_length(text.substr(1));
}

void World::print(const Reply& reply) {
  proto::visit(
      Overloaded{
          [&](const proto::Ok&) { line("ok"); },
          [&](const proto::ErrorReply& m) {
            line(fmt::format("error {}: {}", name_of(static_cast<ErrorCode>(m.code)), m.message));
          },
          [&](const proto::SubmitReply& m) {
            line(m.job.value()
                     ? fmt::format("job {}", m.job.value())
                     : fmt::format("it would do, in {}: {} cores{}{}", m.partition, m.cpus,
                                   m.expected_start
                                       ? fmt::format(" at {} on ", time_text(*m.expected_start))
                                       : std::string(),
                                   m.expected_nodes));
            for (const auto& warning : m.warnings) line("warning: " + warning);
            if (m.cost_per_hour)
              line(fmt::format("costs {} {} an hour, {} as planned, {} at most",
                               format_money(*m.cost_per_hour), m.currency,
                               m.cost_expected ? format_money(*m.cost_expected) : "unknown",
                               m.cost_most ? format_money(*m.cost_most) : "unknown"));
          },
          [&](const proto::JobsDone& m) {
            line(fmt::format("{} changed", m.changed));
            if (!m.not_active.empty()) line("not active: " + refs_text(m.not_active));
            for (const auto& r : m.refused)
              line(fmt::format("refused {}: {}", format_job_ref(r.job), r.error.message));
          },
          [&](const proto::WaitReply& m) {
            if (!m.notice.empty()) line(fmt::format("told \"{}\"", m.notice));
            for (const auto& row : m.rows)
              line(fmt::format("waited for {}: {} {}", row_id(row),
                               public_state(row.phase, row.outcome).name, exit_text(row.exit)));
          },
          [&](const proto::LogChunk& m) {
            line(fmt::format("{} at {}: {}{}", m.path, m.offset, m.data,
                             m.job_ended ? " (ended)" : ""));
          },
          [&](const proto::StepGranted& m) {
            if (m.busy) return line("busy");
            const auto p = codec::decode<proto::StepPermission>(m.permission);
            line(fmt::format(
                "{}step {} of {}: {} tasks{}{}", m.attach ? "attached to " : "", p->step.value(),
                shown(p->key.job), p->tasks, m.attach && !p->may_type ? ", to read only" : "",
                p->time_limit > Duration{} ? fmt::format(", for {}", format_duration(p->time_limit))
                                           : ""));
            for (const auto& n : p->nodes)
              line(fmt::format("  {} ranks {} cpus {}{}{}", n.node,
                               n.ranks.empty()
                                   ? fmt::format("{}-{}", n.first_rank, n.first_rank + n.tasks - 1)
                                   : fmt::format("{}", fmt::join(n.ranks, ",")),
                               cpus_text(n.cpus),
                               n.gpus ? fmt::format(" gpus [{}]", fmt::join(*n.gpus, ",")) : "",
                               n.memory > 0 ? " mem " + format_memory(n.memory) : ""));
          },
          [&](const proto::TriggerList& m) {
            for (const proto::Trigger& t : m.triggers) {
              std::string on;
              for (const proto::TriggerOn one : t.on) on += fmt::format(" {}", enum_name(one));
              line(fmt::format("trigger {} of {}:{}{} {} offset {} s{} {}", t.id.value(), t.user,
                               on, t.job ? fmt::format(" job {}", shown(*t.job)) : "",
                               t.nodes.empty() ? "*" : compress_hostlist(t.nodes),
                               t.offset.us / 1'000'000, t.permanent ? " stays" : "", t.program));
            }
            if (m.triggers.empty()) line("no triggers");
          },
          [&](const proto::TenancyPlanned& m) { print(m); },
          [&](const proto::UseReply& m) { print(m); },
          [&](const proto::SecretList& m) { print(m); },
          [&](const proto::EnrollmentList& m) { print(m); },
          [&](const proto::AccessReply& m) { print(m); },
          [&](const proto::GateTable& m) { print(m); },
          [&](const proto::ServiceList& m) { print(m); },
          [&](const proto::TenancyDocuments& m) { print(m); },
          [&](const proto::TenancyHistoryReply& m) { print(m); },
          [&](const proto::TenantUsageReply& m) { print(m); },
          [&](const proto::PriorityTuplesReply& m) { print(m); },
          [&](const proto::ListReservationsReply& m) { print(m); },
          [&](const proto::TenantEventsReply& m) { print(m); },
          [&](const proto::LedgerReply& m) { print(m); },
          [&](const proto::MeterReply& m) { print(m); },
          [&](const proto::BudgetList& m) { print(m); },
          [&](const proto::IncreaseReply& m) { print(m); },
          [&](const auto&) { line("answered"); },
      },
      reply.message);
}

namespace {
// What the shell opens and signs for the order.
std::string carried(const BlobRefs& blobs) {
  std::string out;
  for (const SealedSecret& one : blobs.sealed)
    out += fmt::format(" secret {}/{}@{} in {} \"{}\"", one.tenant, one.name, one.version, one.file,
                       one.sealed);
  if (!blobs.identity) return out;
  const IdentityClaims& c = *blobs.identity;
  out += fmt::format(" identity {}/{}/{} {}.{} {}:", c.tenant, c.project, c.user, c.job.value(),
                     c.attempt.value(), c.node);
  for (const auto& [audience, file] : c.audiences) out += fmt::format(" {} in {}", audience, file);
  return out;
}
}  // namespace

void World::print(Order& order) {
  FakeNode& node = nodes_.at(order.node);
  const auto key = [&](const proto::AttemptKey& k) {
    return fmt::format("{}.{}", shown(k.job), k.attempt.value());
  };
  std::string text;
  proto::visit(
      Overloaded{
          [&](proto::NodeAccept& m) {
            node.session = m.stamp.session;
            for (const auto& k : m.forget) node.attempts.erase(k);
            text = "accept";
            if (!m.kill.empty()) text += " kill" + keys_text(m.kill);
            if (!m.forget.empty()) text += " forget" + keys_text(m.forget);
          },
          [&](proto::HeartbeatAck&) {},
          [&](proto::RegisterAgain& m) {
            text = fmt::format("register again, epoch {}", m.epoch.value());
          },
          [&](proto::Launch& m) {
            if (!fill(order, store_)) line("the store has lost a script");
            if (m.script.empty() && m.runs_batch) line("launch without its script");
            node.attempts.emplace(m.key, proto::AttemptPhase::preparing);
            text = fmt::format("launch {} cpus {} mem {}{}{}", key(m.key),
                               cpus_text(m.placement.at(m.node_index).cpus),
                               format_memory(m.placement.at(m.node_index).memory),
                               m.hold ? " hold" : "",
                               m.restarts ? fmt::format(" restarts {}", m.restarts) : "");
            for (const GpuGrant& gpu : m.placement.at(m.node_index).gpus) {
              text += fmt::format(" gpu {}", gpu.gpu);
              if (gpu.profile) text += fmt::format(" slice {}@{}", *gpu.profile, gpu.start);
              if (gpu.profile && gpu.part()) text += fmt::format(" part {}", gpu.of_slice.value());
              if (!gpu.whole()) text += fmt::format(" by {}", gpu.thousandths.value());
            }
            for (const GresGrant& g : m.placement.at(m.node_index).gres)
              for (const std::uint16_t d : g.devices) text += fmt::format(" {} {}", g.name, d);
            if (m.spec.network == NetworkMode::loopback && !m.spec.network_named)
              text += " without a network";
            for (const StorageMount& one : m.storage)
              text += fmt::format(" {}{}", one.path, one.write ? "" : " to read");
            text += carried(order.blobs);
          },
          [&](proto::Go& m) { text = "go " + key(m.key); },
          [&](proto::Terminate& m) {
            text = fmt::format("terminate {} grace {}s", key(m.key), m.grace.seconds());
            if (!m.notice.empty()) text += fmt::format(" \"{}\"", m.notice);
          },
          [&](proto::SignalAttempt& m) {
            text = fmt::format(
                "signal {} {} to {}", key(m.key), signal_name(m.signal),
                m.step ? fmt::format("step {}", m.step->value()) : std::string(enum_name(m.scope)));
          },
          [&](proto::Freeze& m) {
            text = fmt::format("{} {}", m.frozen ? "freeze" : "thaw", key(m.key));
          },
          [&](proto::LimitStep& m) {
            text = fmt::format("limit {} step {} to {}", key(m.key), m.step.value(),
                               format_duration(m.time_limit));
          },
          [&](proto::TellAttempt& m) { text = fmt::format("tell {} \"{}\"", key(m.key), m.text); },
          [&](proto::ResumeGpu& m) { text = "resume GPU " + m.uuid; },
          [&](proto::AckExit& m) {
            node.attempts.erase(m.key);
            text = "ack " + key(m.key);
          },
          [&](proto::FetchLog& m) {
            ticket_ = m.ticket;
            text = fmt::format("fetch {} from {}", m.path, m.offset);
          },
          [&](proto::ProbeAttempt& m) {
            ticket_ = m.ticket;
            text = fmt::format("probe {} from {}", m.target, key(m.key));
          },
          [&](proto::IdentityTokens& m) {
            text = fmt::format("tokens {}{}", key(m.key), carried(order.blobs));
          },
          [&](proto::RereadConfig&) { text = "read the configuration again"; },
          [&](proto::RelayReply&) { text = "relay a reply"; },
      },
      order.message);
  if (!text.empty() && !quiet_) line(fmt::format("{} <- {}", order.node, text));
}

void World::queue(const Words& w) {
  const std::string user = w.plain.size() > 1 ? w.plain[1] : "admin";
  proto::ListJobs m;
  if (w.find("state")) m.filter.states = {*w.find("state")};
  core_->step(now_, ClientRequest{ConnectionId(1), next_request_++, who(user), std::move(m)});
  Turn turn = core_->take_turn();
  const auto* reply = turn.replies.at(0).message.get_if<proto::ListJobsReply>();
  if (reply == nullptr) return print(turn.replies.at(0));
  line(fmt::format("{:<14} {:<8} {:<6} {:<3} {:>8} {:>5} {}", "JOB", "NAME", "USER", "ST", "TIME",
                   "CPUS", "NODES(REASON)"));
  for (const proto::JobRow& row : reply->rows) {
    std::string where = row.node_list;
    if (row.phase == Phase::queued) {
      where = fmt::format("({})", enum_name(row.verdict.reason));
      if (!row.verdict.subject.empty()) where += " " + row.verdict.subject;
      if (row.expected_start) where += " expected " + time_text(*row.expected_start);
    }
    const Duration time =
        row.started ? row.ended.value_or(now_) - *row.started - row.suspended : Duration{};
    std::string text = fmt::format("{:<14} {:<8} {:<6} {:<3} {:>8} {:>5} {}", row_id(row), row.name,
                                   row.user, public_state(row.phase, row.outcome).code,
                                   format_duration(time), row.cpus, where);
    if (w.find("accounts")) text += " of " + row.account;
    if (w.find("slurm")) text += fmt::format(" (as job {} of Slurm)", row.slurm_id().value());
    line(text);
  }
}

void World::show(const Words& w) {
  const std::string user = w.plain.size() > 2 ? w.plain[2] : "admin";
  core_->step(now_, ClientRequest{ConnectionId(1), next_request_++, who(user),
                                  proto::ShowJob{*parse_job_ref(w.plain.at(1)), true}});
  Turn turn = core_->take_turn();
  const auto* reply = turn.replies.at(0).message.get_if<proto::ShowJobReply>();
  if (reply == nullptr) return print(turn.replies.at(0));
  for (const proto::JobDetail& job : reply->jobs) {
    if (w.plain[0] == "why") {
      for (const std::string& cause : job.why) line(row_id(job.row) + ": " + cause);
      continue;
    }
    line(fmt::format("{} {} {} exit {} restarts {} attempt {} limit {}", row_id(job.row),
                     job.row.name, public_state(job.row.phase, job.row.outcome).name,
                     exit_text(job.row.exit), job.row.restarts, job.attempt,
                     format_time_limit(job.row.time_limit)));
    for (const auto& [key, value] : job.spec.labels) line(fmt::format("  {}={}", key, value));
    if (job.spec.sandbox) line(fmt::format("  sandbox {}", enum_name(*job.spec.sandbox)));
    if (job.spec.work_type) line(fmt::format("  type {}", enum_name(*job.spec.work_type)));
    if (!job.row.reservation.empty()) line("  reservation " + job.row.reservation);
    if (!job.cause.empty()) line("  cause: " + job.cause);
    if (job.checkpoint) line("  checkpoint: " + time_text(*job.checkpoint));
    if (job.usage != Usage{})
      line(fmt::format("  usage: cpu {}s peak {}", job.usage.cpu_user_us / 1'000'000,
                       format_memory(job.usage.memory_peak_bytes)));
  }
}

void World::history() {
  fold();
  store::HistoryScan scan;
  scan.order = store::HistoryOrder::oldest_first;
  const auto page = store_.read_history(scan);
  for (const store::HistoryEntry& entry : page->entries) {
    const auto h = codec::decode<proto::HistoryRow>(entry.data);
    line(fmt::format("{} {} {} {} {} {}{}", time_text(entry.end), row_id(h->row), h->row.user,
                     public_state(h->row.phase, h->row.outcome).name, exit_text(h->row.exit),
                     h->cause, h->requeued ? " (it starts again)" : ""));
    std::string notes;
    if (h->derived_exit) notes += " exit " + exit_text(*h->derived_exit);
    for (const auto* text : {&h->admin_comment, &h->system_comment})
      if (!text->empty()) notes += " \"" + *text + "\"";
    if (!notes.empty() || !h->comment.empty()) line("  noted:" + notes + " " + h->comment);
    std::string waits;
    for (const WaitPart& part : h->waits)
      waits += fmt::format(" {} {}", enum_name(part.reason), format_duration(part.length));
    if (!waits.empty()) line("  waited:" + waits);
    for (const proto::StepRow& step : h->steps)
      if (step.step != "batch")
        line(fmt::format("  step {} {} {} tasks on {}", step.step, enum_name(step.outcome),
                         step.tasks, step.node_list));
  }
}

void World::list_nodes() {
  core_->step(now_,
              ClientRequest{ConnectionId(1), next_request_++, who("alice"), proto::ListNodes{}});
  Turn turn = core_->take_turn();
  for (const proto::NodeRow& n : turn.replies.at(0).message.get<proto::ListNodesReply>().nodes)
    line(fmt::format("{} {} {} {}{}", n.name, enum_name(n.health), enum_name(n.intent),
                     to_string(n.allocated),
                     n.reason.empty() ? ""
                                      : fmt::format(" \"{}\" by {}", n.reason,
                                                    n.reason_by.empty() ? "nobody" : n.reason_by)));
}

}  // namespace gantry::core::test
