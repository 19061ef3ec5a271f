// See reasons.h.
#include "tests/sim/check/reasons.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/proto/job_query.h"
#include "common/text/hostlist.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/runtime.h"
#include "ctld/core/tenancy/multifactor.h"
#include "ctld/sched/change.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/tenancy.h"
#include "tests/sched/mig/mig_world.h"

namespace gantry::sim {
namespace {

using sched::Change;
using sched::kNoIndex;
using sched::kUnlimited;

constexpr Duration kPause = seconds(45);
constexpr std::size_t kMostAtOnce = 16;  // jobs
// placement attempts; enough for a plan that looks at everything
constexpr std::uint64_t kWhole = 100'000;

template <class T>
bool all_of_kind(std::vector<Change>& view, auto&& f) {
  bool any = false;
  for (Change& change : view)
    if (auto* c = std::get_if<T>(&change)) {
      f(*c);
      any = true;
    }
  return any;
}

std::string text_of(const Verdict& v) {
  return fmt::format("{} ({}, {}, \"{}\")", enum_name(v.reason), v.a, v.b, v.subject);
}

std::string shape_text(const JobShape& s) {
  return fmt::format(
      "{} nodes, {} tasks of {} cores, {} bytes, {} GPUs of \"{}\", features \"{}\", "
      "slice \"{}\", part {}, topology {} {}, nodes \"{}\"{}",
      s.min_nodes, s.tasks, s.cpus_per_task,
      s.memory_per_node.value_or(s.memory_per_cpu.value_or(0)), s.gpus_per_node,
      fmt::join(s.gpu_models, "|"), s.constraint, s.gpu_slice, s.gpu_share, enum_name(s.topology),
      s.topology_level, fmt::join(s.required_nodes, ","), s.exclusive ? ", exclusive" : "");
}

bool started(const sched::Plan& plan, JobId job) {
  return std::any_of(plan.starts.begin(), plan.starts.end(),
                     [&](const sched::Start& s) { return s.job == job; });
}

// Returns the plan's verdict on the job, or an empty one.
Verdict verdict_in(const sched::Plan& plan, const std::vector<sched::Change>& view, JobId job,
                   const sched::ClassKey& key) {
  std::map<JobId, const sched::ClassVerdict*> by_head;
  for (const sched::ClassVerdict& v : plan.verdicts) by_head[v.head] = &v;
  for (const sched::Change& change : view)
    if (const auto* queued = std::get_if<sched::JobQueued>(&change); queued && queued->key == key)
      if (const auto at = by_head.find(queued->job); at != by_head.end())
        return at->second->head == job ? at->second->of_head : at->second->of_rest;
  return {};
}

// Returns true for reasons of the core, which does not offer such jobs to the scheduler.
bool kept_by_core(Reason reason) {
  switch (reason) {
    case Reason::dependency:
    case Reason::never_satisfied:
    case Reason::begin_time:
    case Reason::held_user:
    case Reason::held_admin:
    case Reason::array_task_limit:
    case Reason::no_tenant:
    case Reason::use_limit:
    case Reason::secret_missing:
    case Reason::dataset_denied:
    case Reason::special_exit:
    case Reason::requeued:
    case Reason::launch_failed_held: return true;
    default: return false;
  }
}

// Makes all GPUs of the node healthy.
void mend_gpus(const GpuInventory& found, sched::NodeChanged& node) {
  if (found.gpus.empty()) return;
  node.devices.clear();
  node.gpus = 0;
  for (const GpuDevice& gpu : found.gpus) {
    node.devices.push_back(
        {static_cast<std::uint16_t>(gpu.index), gpu.numa, gpu.mig, gpu.model, gpu.nvlinks});
    node.gpus += gpu.mig ? 0 : 1;
  }
}

void enlarge(sched::NodeChanged& node, const JobShape& shape) {
  constexpr std::uint16_t kCores = 256;
  node.memory =
      node.memory / std::max<std::int64_t>(1, static_cast<std::int64_t>(node.cpus.size())) * kCores;
  node.cpus.clear();
  for (std::uint16_t cpu = 0; cpu < kCores; ++cpu) node.cpus.push_back(cpu);
  if (node.gpus > 0 || shape.gpus_per_node > 0 || shape.gpu_share > 0)
    node.gpus = node.gpus_when_well = 64;
  node.devices.clear();  // a number of equal GPUs
  if (!shape.gpu_slice.empty() || shape.gpu_share > 0) {
    const bool slices = !shape.gpu_slice.empty();
    for (std::uint16_t i = 0; i < 64; ++i) node.devices.push_back({i, -1, slices, "h100", {}});
    if (slices) node.gpus = 0;
    if (slices) node.geometries = {sched::h100_geometry()};
    node.gpu_sharing = true;
  }
  node.scratch += shape.scratch_per_node * 64;
}

}  // namespace

void Reasons::start() {
  queue_.after(kPause, [this] {
    look();
    start();
  });
}

void Reasons::look() {
  if (settings_.plan_attempts < kWhole || settings_.plan_starts < kWhole / 100) return;
  if (!controller_.settled()) return;
  const std::vector<proto::JobRow> rows = controller_.list_jobs();
  std::vector<const proto::JobRow*> waiting;
  for (const proto::JobRow& row : rows)
    if (row.phase == Phase::queued) waiting.push_back(&row);
  if (waiting.empty()) return;
  const Changes view = controller_.core().full_view();
  const std::size_t step = waiting.size() / kMostAtOnce + 1;
  for (std::size_t i = 0; i < waiting.size(); i += step) check(*waiting[i], view);
}

void Reasons::wrong(const proto::JobRow& row, std::string_view what) const {
  const core::State& state = controller_.core().state();
  const sched::ClassKey& key = core::class_of(state, state.jobs.at(row.job));
  trace_.broken(queue_.now(),
                fmt::format("job {} of {} waits for {}, but {}; it asks for {}", row.job.value(),
                            row.partition, text_of(row.verdict), what, shape_text(key.shape)));
}

void Reasons::check(const proto::JobRow& row, const Changes& view) {
  const core::State& state = controller_.core().state();
  const core::Job& job = state.jobs.at(row.job);
  const sched::ClassKey& key = core::class_of(state, job);
  const auto plan_of = [&](const Changes& changes) {
    sched::Replica replica;
    for (const Change& change : changes) replica.apply(change);
    replica.set_reservations(controller_.replica().reservations());
    replica.keep_slices(controller_.replica().kept_slices());
    return sched::schedule(replica, controller_.clock(), controller_.policy());
  };
  const Reason reason = row.verdict.reason;
  if (!kept_by_core(reason)) {
    // Time has passed since the last plan, so the job may be able to start by now.
    const sched::Plan now = plan_of(view);
    const bool for_it = std::any_of(now.preemptions.begin(), now.preemptions.end(),
                                    [&](const sched::Preempt& p) { return p.for_job == row.job; });
    if (started(now, row.job) || for_it) return;
    // guarantee.h checks such changes
    if (verdict_in(now, view, row.job, key).reason != reason) return;
  }
  if (reason == Reason::none) wrong(row, "that is none");
  if (key.het) return;  // the reason may be that of another component
  check_truth(row, job);
  Changes changed = view;
  if (!remove_cause(row, job, changed)) wrong(row, "nobody knows how to help it");
  const sched::Plan plan = plan_of(changed);
  if (started(plan, row.job)) {
    ++counts_.started;
    return;
  }
  const Verdict next = verdict_in(plan, changed, row.job, key);
  if (next.reason == Reason::none && !plan.verdicts.empty() && kept_by_core(reason))
    wrong(row, "without that cause it does not start, and says nothing");
  // Victims that have left also blocked another job, so other victims are chosen for this job.
  const bool asked_anew = reason == Reason::reclaiming && next.b != row.verdict.b;
  const bool moved = next.reason != reason || next.subject != row.verdict.subject || asked_anew;
  if (!moved) wrong(row, fmt::format("without that cause it still waits: {}", text_of(next)));
  ++counts_.next;
}

// ---- Is the reason true?

void Reasons::check_truth(const proto::JobRow& row, const core::Job& job) const {
  const Verdict& v = row.verdict;
  const Instant now = controller_.clock();
  switch (v.reason) {
    case Reason::held_user:
      if (job.hold != core::Hold::user) wrong(row, "its user does not hold it");
      break;
    case Reason::held_admin:
      if (job.hold != core::Hold::admin) wrong(row, "no administrator holds it");
      break;
    case Reason::launch_failed_held:
      if (job.hold != core::Hold::launch_failed) wrong(row, "it is not held");
      break;
    case Reason::begin_time:
    case Reason::requeued:
      if (Instant{v.a} <= now) wrong(row, "that is over");
      break;
    case Reason::dependency: check_dependencies(row); break;
    case Reason::no_tenant:
      if (ledger_.book().tenant_of(ledger_.book().job(row.job))) wrong(row, "it is a tenant's");
      if (!ledger_.book().has_tenants()) wrong(row, "there are no tenants");
      break;
    case Reason::array_task_limit: {
      const JobId array = job.is_element() ? job.array : job.id;
      const auto active =
          std::count_if(ledger_.jobs().begin(), ledger_.jobs().end(), [&](const auto& entry) {
            const Phase phase = entry.second.phase;
            return entry.second.array == array && phase != Phase::queued && phase != Phase::ended;
          });
      if (active != v.a || v.a < v.b) wrong(row, fmt::format("{} tasks run", active));
      break;
    }
    case Reason::tenant_quota:
      if (v.a <= v.b) wrong(row, "that is enough");
      break;
    case Reason::cohort_quota:
      if (v.a <= v.b) wrong(row, "that much is left");
      break;
    case Reason::tenant_jobs:
      if (v.a < v.b) wrong(row, "so many may run");
      break;
    default: break;
  }
}

// Checks that each dependency of a list such as "afterok:12,afterany:13_2+5" is still open.
void Reasons::check_dependencies(const proto::JobRow& row) const {
  const std::string& text = row.verdict.subject;
  if (text.empty()) wrong(row, "it does not say for what");
  for (std::size_t at = 0; (at = text.find(':', at)) != std::string::npos; ++at) {
    const auto begin = text.find_last_of(",?", at);
    const std::string kind = text.substr(begin == std::string::npos ? 0 : begin + 1,
                                         at - (begin == std::string::npos ? 0 : begin + 1));
    const JobId other(std::stoull(text.substr(at + 1)));
    const auto digits = text.find_first_not_of("0123456789", at + 1);
    if (digits != std::string::npos && text[digits] == '_') continue;  // a single task
    if (kind != "afterany" && kind != "afterok" && kind != "afternotok") continue;
    const auto it = ledger_.jobs().find(other);
    if (it != ledger_.jobs().end() && it->second.phase == Phase::ended)
      wrong(row, fmt::format("job {} has ended", other.value()));
  }
}

// ---- Can the job start without the cause?

bool Reasons::remove_cause(const proto::JobRow& row, const core::Job& job, Changes& view) const {
  const core::State& state = controller_.core().state();
  const sched::ClassKey& key = core::class_of(state, job);
  const Verdict& v = row.verdict;
  if (kept_by_core(v.reason)) {
    const auto& classes = state.tenancy.compiled.view->classes;
    view.emplace_back(sched::JobQueued{job.id, key, row.priority, job.eligible, 1,
                                       classes.at(key.priority_class).value, job.share, false,
                                       core::own_priority_of(state, job)});
    return true;
  }
  const auto unqueue = [&](auto&& which) {
    std::erase_if(view, [&](const Change& change) {
      const auto* queued = std::get_if<sched::JobQueued>(&change);
      return queued != nullptr && queued->job != job.id && which(*queued);
    });
  };
  switch (v.reason) {
    case Reason::priority:
      unqueue([&](const sched::JobQueued& q) { return q.key.partition == key.partition; });
      return true;
    case Reason::planned:
      unqueue([&](const sched::JobQueued& q) { return q.job == JobId(std::stoull(v.subject)); });
      return true;
    case Reason::partition_down:
      return all_of_kind<sched::PartitionChanged>(view, [&](sched::PartitionChanged& p) {
        if (p.partition == key.partition) p.up = true;
      });
    case Reason::nodes_unavailable: {
      const auto names = expand_hostlist(v.subject);
      if (!names || names->empty()) wrong(row, "it does not say which nodes");
      return all_of_kind<sched::NodeChanged>(view, [&](sched::NodeChanged& n) {
        if (std::find(names->begin(), names->end(), n.name) == names->end()) return;
        n.available = true;
        mend_gpus(state.node(n.node).facts.gpus, n);
      });
    }
    case Reason::tainted:
      return all_of_kind<sched::NodeChanged>(view, [](sched::NodeChanged& n) { n.taints.clear(); });
    case Reason::reclaiming:
      std::erase_if(view, [](const Change& change) {
        const auto* placed = std::get_if<sched::JobPlaced>(&change);
        return placed != nullptr && placed->leaving;
      });
      return true;
    case Reason::tenant_quota:
    case Reason::cohort_quota:
    case Reason::tenant_jobs: raise_quota(row, view); return true;
    case Reason::bad_constraints:
    case Reason::mig_repartition:
    case Reason::topology:
    case Reason::resources: more_room(job, view); return true;
    default: return false;
  }
}

namespace {

// Returns how many nodes all waiting jobs together could take.
std::uint32_t nodes_wanted(const std::vector<Change>& view) {
  constexpr std::uint32_t kMost = 400;
  std::uint32_t wanted = 0;
  for (const Change& change : view)
    if (const auto* queued = std::get_if<sched::JobQueued>(&change))
      wanted = std::min(kMost,
                        wanted + std::min(kMost, queued->startable) * queued->key.shape.min_nodes);
  return wanted;
}

// A named node can be enlarged, but it cannot serve two jobs that both want it exclusively.
void only_one_alone(std::vector<Change>& view, JobId job, const sched::ClassKey& key) {
  std::set<PartitionId> exclusive;
  all_of_kind<sched::PartitionChanged>(view, [&](sched::PartitionChanged& p) {
    if (p.exclusive_nodes) exclusive.insert(p.partition);
  });
  const auto alone = [&](const sched::ClassKey& k) {
    return k.shape.exclusive || exclusive.contains(k.partition);
  };
  std::erase_if(view, [&](const Change& change) {
    const auto* queued = std::get_if<sched::JobQueued>(&change);
    return queued != nullptr && queued->job != job && (alone(key) || alone(queued->key));
  });
}

}  // namespace

// Adds nodes to the job's partition: for each node, as many equal ones as all waiting jobs could
// take, because jobs that want exclusive nodes could all take the kind that this job needs. The new
// nodes are large and in the same place. Nodes that the job names are emptied for it. If no node
// has the kind that the job wants, the nodes get it.
void Reasons::more_room(const core::Job& job, Changes& view) const {
  const core::State& state = controller_.core().state();
  const sched::ClassKey& key = core::class_of(state, job);
  const JobShape& shape = key.shape;
  const sched::ClassVerdict& verdict =
      controller_.core().runtime().plan->verdicts.of(state.classes, job.cls);
  const bool bad = verdict.of_head.reason == Reason::bad_constraints ||
                   verdict.of_rest.reason == Reason::bad_constraints;
  std::vector<NodeId> mine;
  std::vector<sched::NodeChanged> more;
  std::uint32_t next = static_cast<std::uint32_t>(state.nodes.size());
  const std::uint32_t wanted = nodes_wanted(view);
  all_of_kind<sched::PartitionChanged>(view, [&](sched::PartitionChanged& p) {
    if (p.partition == key.partition) mine = p.nodes;
  });
  const auto& required = shape.required_nodes;
  all_of_kind<sched::NodeChanged>(view, [&](sched::NodeChanged& n) {
    if (std::find(mine.begin(), mine.end(), n.node) == mine.end()) return;
    if (bad) {
      n.features = {"fast"};
      if (!shape.gpu_models.empty()) n.gpu_model = shape.gpu_models.front();
      n.gpu_jobs_only = false;
      enlarge(n, shape);
    }
    if (std::find(required.begin(), required.end(), n.name) != required.end()) {
      const NodeId id = n.node;
      n.available = true;
      more.push_back(n);
      more.back().node = id;
      enlarge(more.back(), shape);  // leaves resources for other jobs that need this node as well
    }
    for (std::uint32_t i = 0; i < 2 * shape.min_nodes + 4 + wanted; ++i) {
      sched::NodeChanged& twin = more.emplace_back(n);
      twin.node = NodeId(next++);
      twin.name = fmt::format("more{}", twin.node.value());
      twin.available = true;
      enlarge(twin, shape);
    }
  });
  for (const sched::NodeChanged& n : more)
    if (n.node.value() < state.nodes.size())
      all_of_kind<sched::JobPlaced>(view, [&](sched::JobPlaced& p) {
        std::erase_if(p.grants, [&](const sched::NodeGrant& g) { return g.node == n.node; });
      });
  std::erase_if(view, [](const Change& change) {
    const auto* placed = std::get_if<sched::JobPlaced>(&change);
    return placed != nullptr && placed->grants.empty();
  });
  // The queue must come last in the view, after the nodes.
  std::vector<Change> rest;
  for (const sched::NodeChanged& n : more) rest.emplace_back(n);
  all_of_kind<sched::PartitionChanged>(view, [&](sched::PartitionChanged& p) {
    if (p.partition != key.partition) return;
    for (const sched::NodeChanged& n : more)
      if (n.node.value() >= state.nodes.size()) p.nodes.push_back(n.node);
  });
  const auto at = std::find_if(view.begin(), view.end(), [](const Change& change) {
    return std::holds_alternative<sched::PartitionChanged>(change);
  });
  view.insert(at, rest.begin(), rest.end());
  if (!required.empty()) only_one_alone(view, job.id, key);
}

// Raises the tenant's own quota or number of jobs for tenant_quota and tenant_jobs, and the quota
// of all cohorts above it for cohort_quota.
void Reasons::raise_quota(const proto::JobRow& row, Changes& view) const {
  constexpr std::int64_t kMuch = std::int64_t{1} << 50;
  all_of_kind<sched::TenancyChanged>(view, [&](sched::TenancyChanged& c) {
    auto raised = std::make_shared<sched::Tenancy>(*c.tenancy);
    const auto tenant = ledger_.book().tenant_of(ledger_.book().job(row.job));
    if (!tenant) wrong(row, "it is no tenant's");
    std::uint32_t n = *tenant;
    const auto raise = [&](sched::QuotaNode& node) {
      for (sched::FlavorLimits& limits : node.limits)
        for (std::size_t r = 0; r < kResourceCount; ++r) {
          if (limits.nominal[r] != kUnlimited) limits.nominal[r] += kMuch;
          limits.borrow[r] = kUnlimited;
        }
    };
    if (row.verdict.reason == Reason::tenant_jobs)
      raised->nodes[n].max_running.reset();
    else if (row.verdict.reason == Reason::tenant_quota)
      raise(raised->nodes[n]);
    else
      while ((n = raised->nodes[n].parent) != kNoIndex) raise(raised->nodes[n]);
    c.tenancy = std::move(raised);
  });
}

}  // namespace gantry::sim
