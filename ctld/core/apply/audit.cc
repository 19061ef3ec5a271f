// Audit of derived state, and records as text; see audit.h.
#include "ctld/core/apply/audit.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/codec/codec.h"
#include "common/proto/gpu_rows.h"
#include "common/proto/tenant_events.h"
#include "ctld/core/apply/load.h"
#include "ctld/core/money/budgets.h"
#include "ctld/core/resources/gpus.h"
#include "ctld/core/resources/gres.h"
#include "ctld/core/resources/licenses.h"
#include "ctld/core/resources/uses.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

struct Taken {
  std::vector<std::uint16_t> cpus;
  std::int64_t memory = 0, scratch = 0;
  std::uint32_t gpus = 0, exclusive = 0;
  std::size_t devices = 0, gres = 0;
  std::vector<JobId> jobs;
};

struct Tasks {
  std::uint32_t active = 0, unended = 0;
};

// True if each line of the bill is the sum of what the nodes that are not yet released add to it.
bool bill_fits(const Active& active) {
  std::vector<std::int64_t> held(active.bill.lines.size(), 0);
  for (const NodeRun& run : active.nodes)
    for (const HeldPart& part : run.held)
      if (run.state != RunState::released && !active.suspended) held.at(part.line) += part.amount;
  for (std::size_t i = 0; i < held.size(); ++i)
    if (active.bill.lines[i].amount != held[i]) return false;
  return true;
}

std::string check_job(const Job& job) {
  const auto bad = [&](std::string_view what) {
    return fmt::format("job {}: {}", job.id.value(), what);
  };
  if (job.placed() != (job.active && job.phase != Phase::ended))
    return bad("placed without placement");
  if (job.phase == Phase::ended && !job.outcome) return bad("ended without outcome");
  if (job.phase == Phase::ended && !job.ended) return bad("ended without time");
  if (job.phase == Phase::finishing && !job.active->finish)
    return bad("finishing without a decision");
  if (job.phase == Phase::ended && job.active && !job.active->all_released())
    return bad("ended while a node has it");
  if (job.placed() && job.active->all_released()) return bad("placed although every node let go");
  if (job.is_array() && job.active) return bad("an array with a placement");
  if (job.active && !bill_fits(*job.active)) return bad("its bill is not what it holds");
  if (job.active && job.active->suspended && job.phase != Phase::running)
    return bad("suspended, but not running");
  return {};
}

std::string check_node(const Node& node, Taken& t) {
  const auto bad = [&](std::string_view what) {
    return fmt::format("node {}: {}", node.name, what);
  };
  std::sort(t.cpus.begin(), t.cpus.end());
  if (std::adjacent_find(t.cpus.begin(), t.cpus.end()) != t.cpus.end())
    return bad("a core given twice");
  std::vector<std::uint16_t> marked;
  for (std::size_t cpu = 0; cpu < node.cpu_taken.size(); ++cpu)
    if (node.cpu_taken[cpu]) marked.push_back(static_cast<std::uint16_t>(cpu));
  if (marked != t.cpus || node.cpus_taken != t.cpus.size()) return bad("cores do not add up");
  if (node.memory_taken != t.memory) return bad("memory does not add up");
  if (node.scratch_taken != t.scratch) return bad("scratch does not add up");
  if (node.gpus_taken != t.gpus || node.gpu_grants.size() != t.devices)
    return bad("GPUs do not add up");
  if (const auto twice = gpus_held_twice(node)) return *twice;
  if (gres_held(node) != t.gres) return bad("resources do not add up");
  if (node.exclusive_jobs != t.exclusive) return bad("exclusive jobs do not add up");
  if (node.jobs != t.jobs) return bad("jobs do not add up");
  if (t.exclusive > 0 && t.jobs.size() > 1) return bad("an exclusive job is not alone");
  if (node.declared != nullptr && t.memory > node.declared->memory)
    return bad("more memory given than it has");
  return {};
}

void add_taken(const Job& job, std::map<NodeId, Taken>& taken) {
  for (const NodeRun& run : job.active->nodes) {
    if (run.state == RunState::released) continue;
    Taken& t = taken[run.grant.node];
    t.cpus.insert(t.cpus.end(), run.grant.cpus.begin(), run.grant.cpus.end());
    t.memory += run.grant.memory;
    t.scratch += run.grant.scratch;
    t.gpus += run.grant.gpus;
    t.devices += run.grant.devices.size();
    for (const GresGrant& g : run.grant.gres) t.gres += g.devices.size();
    t.exclusive += job.active->exclusive ? 1 : 0;
    t.jobs.push_back(job.id);
  }
}

std::string check_array(const Job& job, const Tasks& seen) {
  const ArrayState& t = *job.tasks;
  if (t.active != seen.active || t.unended != seen.unended)
    return fmt::format("array {}: elements do not add up", job.id.value());
  const std::uint64_t ended_elements = t.done_ok.count() + t.done_bad.count();
  if (t.pending.count() + t.unended + ended_elements != t.indexes.count())
    return fmt::format("array {}: {} pending, {} not ended, {} done are not {}", job.id.value(),
                       t.pending.count(), t.unended, ended_elements, t.indexes.count());
  if (!t.done_ok.intersect(t.done_bad).empty())
    return fmt::format("array {}: a task ended twice", job.id.value());
  return {};
}

// The reserved amount of a budget must equal what the bills of its running jobs still reserve.
std::string check_budgets(const State& state) {
  std::map<std::string, Money> reserved;
  state.jobs.walk(JobId{}, [&](const Job& job) {
    if (job.active)
      for (const BudgetAccount* account : budgets_of(state, job))
        reserved[account->budget.name] += job.active->bill.reserved();
    return true;
  });
  for (const auto& [name, account] : state.budgets.accounts)
    if (account.reserved != reserved[name])
      return fmt::format("budget {}: {} are set aside, not {}", name, format_money(reserved[name]),
                         format_money(account.reserved));
  return {};
}

std::string budgets_text(const BudgetState& budgets) {
  std::string out = fmt::format("overtime {} {}\n", budgets.kill_wait.us, budgets.start_timeout.us);
  for (const auto& [name, book] : budgets.books)
    out += fmt::format("budget {} {}\n", name, codec::to_json(book));
  for (const auto& [number, increase] : budgets.increases)
    out += fmt::format("increase {}\n", codec::to_json(increase));
  return out;
}

std::string tenancy_text(const TenancyState& tenancy) {
  std::string out = fmt::format("tenancy {} half-life {} classes {}\n", tenancy.revision,
                                tenancy.half_life.us, fmt::join(tenancy.class_names, " "));
  for (const auto& [key, document] : tenancy.documents)
    out += fmt::format("document {} {}\n", key.second, codec::to_json(DocumentRecord{document}));
  for (const TenancyRevision& r : tenancy.history)
    out += fmt::format("revision {}\n", codec::to_json(r));
  for (const ShareNode& s : tenancy.shares)
    out += fmt::format("share {} of {} {}: {:a} and {:a} a second at {}, {} run\n", s.id.value(),
                       s.parent ? std::int64_t{s.parent->value()} : -1, s.name, s.usage.amount,
                       s.usage.rate, s.usage.at.us, s.running);
  for (const proto::QuotaAlert& alert : tenancy.alerts)
    out += fmt::format("alert {}\n", codec::to_json(alert));
  for (const auto& [name, r] : tenancy.reservations)
    out += fmt::format("reservation {} {}\n", name, codec::to_json(r));
  return out;
}

}  // namespace

std::string audit(const State& state) {
  Counters counters;
  std::map<NodeId, Taken> taken;
  std::map<JobId, Tasks> arrays;
  std::vector<const Job*> jobs;
  std::size_t ended = 0;
  state.jobs.walk(JobId{}, [&](const Job& job) {
    jobs.push_back(&job);
    return true;
  });
  for (const Job* job : jobs) {
    if (auto wrong = check_job(*job); !wrong.empty()) return wrong;
    if (job->phase == Phase::queued)
      counters.queued += job->is_array() ? job->tasks->pending.count() : 1;
    if (job->placed()) ++counters.active;
    if (job->phase != Phase::ended && !job->is_element()) ++counters.unended;
    if (job->phase == Phase::ended) ++ended;
    if (job->placed()) add_taken(*job, taken);
    if (job->is_element() && job->placed()) ++arrays[job->array].active;
    if (job->is_element() && job->phase != Phase::ended) ++arrays[job->array].unended;
  }
  for (const Job* job : jobs)
    if (job->is_array())
      if (auto wrong = check_array(*job, arrays[job->id]); !wrong.empty()) return wrong;
  for (const Node& node : state.nodes)
    if (auto wrong = check_node(node, taken[node.id]); !wrong.empty()) return wrong;
  if (counters.queued != state.counters.queued) return "the count of queued jobs is wrong";
  if (counters.active != state.counters.active) return "the count of active jobs is wrong";
  if (counters.unended != state.counters.unended) return "the count of jobs is wrong";
  if (ended != state.ended.size()) return "the list of ended jobs is wrong";
  if (auto wrong = audit_licenses(state); !wrong.empty()) return wrong;
  if (auto wrong = audit_uses(state); !wrong.empty()) return wrong;
  return check_budgets(state);
}

std::string records_text(const State& state) {
  std::string out =
      fmt::format("epoch {} last job {}\n", state.epoch.value(), state.last_job.value());
  for (const Node& n : state.nodes)
    out += fmt::format("node {} {} {} {} \"{}\" by \"{}\" boot {} key {} comment \"{}\" {}\n",
                       n.id.value(), n.name, enum_name(n.health), enum_name(n.intent), n.reason,
                       n.reason_by, n.facts.boot_id, n.public_key, n.comment,
                       n.features_set ? fmt::format("features {}", fmt::join(*n.features_set, ","))
                                      : std::string());
  for (const Node& n : state.nodes)
    for (const proto::DrainedGpu& d : n.drained_gpus)
      out += fmt::format("drained {} {} \"{}\" by \"{}\" since {}\n", n.name, d.uuid, d.reason,
                         d.by, d.since.us);
  for (const Partition& p : state.partitions)
    out += fmt::format("partition {} {}\n", p.key(), codec::to_json<PartitionRecord>(p));
  out += tenancy_text(state.tenancy);
  out += budgets_text(state.budgets);
  for (const auto& [key, record] : state.used)
    out += fmt::format("used {} {}\n", key, codec::to_json(record));
  for (const auto& [key, sum] : state.ledger.sums)
    out += fmt::format("sum {} {}\n", key, codec::to_json(sum));
  for (const auto& [key, user] : state.user_keys) out += fmt::format("key {} {}\n", key, user);
  state.jobs.walk(JobId{}, [&](const Job& job) {
    out += fmt::format("job {} {}\n", job.id.value(), codec::to_json(record_of(state, job)));
    return true;
  });
  return out;
}

}  // namespace gantry::core
