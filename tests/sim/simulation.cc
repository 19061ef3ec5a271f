// See simulation.h.
#include "tests/sim/simulation.h"

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/proto/cluster.h"
#include "common/proto/gpu_rows.h"
#include "common/proto/history.h"
#include "common/proto/job_change.h"
#include "common/proto/job_query.h"
#include "common/proto/job_ref.h"
#include "common/proto/job_text.h"
#include "common/proto/partitions.h"
#include "common/proto/steps.h"
#include "common/text/text.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/tenancy/tenants.h"
#include "ctld/store/store.h"
#include "tests/sim/text.h"

namespace gantry::sim {

Simulation::Simulation(std::uint64_t seed, With with, bool print)
    : trace_(seed,
             fmt::format("gantry_sim --seed {} --tenants {} --gpus {} --balance {} --changes {} "
                         "--gangs {} {}--trace",
                         seed, with.tenants ? "yes" : "no", with.gpus ? "yes" : "no",
                         with.balance ? "yes" : "no", with.changes ? "yes" : "no",
                         with.gangs ? "yes" : "no", with.pauses ? "--pauses yes " : ""),
             print),
      random_(seed),
      settings_(settings_of(random_, with)),
      queue_(kBegin),
      network_(queue_, random_, settings_.nodes, settings_.clients),
      truth_(queue_, trace_),
      ledger_(queue_, trace_, truth_, settings_.config),
      controller_(queue_, random_, network_, trace_, ledger_, settings_),
      clients_(queue_, random_, network_, trace_, controller_, settings_),
      faults_(queue_, random_, network_, trace_, controller_, clients_, nodes_, settings_),
      reasons_(queue_, trace_, controller_, ledger_, settings_),
      guarantee_(queue_, trace_, controller_, ledger_, settings_) {
  for (const NodeConfig& config : settings_.config.nodes)
    nodes_.push_back(
        std::make_unique<Node>(queue_, random_, network_, truth_, trace_, settings_, config));
  connect();
}

void Simulation::connect() {
  controller_.to_node = [this](const std::string& name, core::OrderMessage order) {
    for (auto& node : nodes_)
      if (node->name() == name) node->deliver(order_of(order));
  };
  controller_.to_client = [this](core::ConnectionId connection, std::uint64_t request,
                                 core::ReplyMessage reply) {
    clients_.reply(connection, request, reply);
  };
  for (auto& node : nodes_)
    node->to_controller = [this](const std::string& name, node::Report report) {
      controller_.take(core::FromNode{name, message_of(report)});
    };
}

Summary Simulation::run() {
  const ControllerConfig& c = settings_.config.controller;
  trace_.line(queue_.now(),
              fmt::format("{} nodes, {} submits, {}", nodes_.size(), settings_.jobs,
                          c.lost_node_policy == LostNodePolicy::fence ? "fence" : "wait"));
  controller_.start();
  for (auto& node : nodes_)
    queue_.after(random_.spread(seconds(20)), [n = node.get()] { n->power_on(); });
  clients_.start();
  faults_.start();
  reasons_.start();
  guarantee_.start();
  queue_.run_until(kBegin + settings_.trouble);
  mend();
  wait_for_all();
  check_nothing_held();
  ledger_.takings().compare(controller_.core().state());
  queue_.run_until(queue_.now() + c.min_job_age + minutes(2));
  check_nothing_kept();
  check_history();
  Summary s;
  s.hash = trace_.hash();
  s.lines = trace_.lines();
  s.events = controller_.store().every_event().size();
  s.turns = controller_.turns();
  s.jobs = ledger_.jobs().size();
  s.runs = truth_.runs();
  s.lives = controller_.core().epoch().value();
  s.length = queue_.now() - kBegin;
  const Book::Counts& book = ledger_.book().counts();
  const Reasons::Counts& reasons = reasons_.counts();
  s.tenancy = fmt::format("reasons: {} started, {} next; ", reasons.started, reasons.next);
  if (settings_.tenants)
    s.tenancy += fmt::format(
        "{} applies, {} borrowed, {} preempted, {} promises kept, {} jobs given up, {} charged; ",
        book.applied, book.borrowing, book.preempted, guarantee_.kept(), given_up_.size(),
        format_money(ledger_.takings().sum(), 6));
  return s;
}

// ---- after the time of trouble

void Simulation::mend() {
  trace_.line(queue_.now(), "everything is mended");
  settings_.slow_start = settings_.failing_start = settings_.dies_at_start = 0;
  settings_.refused_start = 0;
  clients_.stop();
  faults_.stop();
  guarantee_.quiet();
  mended_ = queue_.now();
  queue_.after(seconds(5), [this] { operate(); });
}

void Simulation::operate() {
  // The controller works in periods of whole seconds; with a period of 30 s this check could fall
  // into one of its turns each time, and never see a settled state.
  queue_.after(milliseconds(30'013), [this] { operate(); });
  if (!controller_.runs()) return;
  const core::State& state = controller_.core().state();
  for (const core::Partition& p : state.partitions)
    if (!p.up()) clients_.say(proto::UpdatePartition{p.name, true});
  for (const core::Node& n : state.nodes)
    if (n.intent != NodeIntent::open)
      clients_.say(proto::UpdateNodes{{n.name}, proto::NodeAction::resume, {}});
  for (const core::Node& n : state.nodes)
    for (const proto::DrainedGpu& gpu : n.drained_gpus)
      clients_.say(proto::UpdateNodes{{n.name}, proto::NodeAction::resume, {}, {gpu.uuid}});
  state.jobs.walk(JobId{}, [this](const core::Job& job) {
    operate_on(job);
    return true;
  });
  if (!controller_.settled()) return;
  for (const proto::JobRow& row : controller_.list_jobs())
    if (row.phase == Phase::queued && (settings_.tenants || settings_.gpus || row.het))
      give_up_on(row);
}

// Returns true for a job that could not start even if nothing ran: in each flavor the quota forbids
// it, or there are too few suitable nodes (nodes were removed, or the quota was lowered).
bool Simulation::never_fits(const core::Job& job) {
  const core::State& state = controller_.core().state();
  const sched::Replica& replica = controller_.replica();
  const auto slot = replica.queue().find(job.id);
  const auto tenant = core::quota_node_of(state, core::class_of(state, job).partition);
  if (!slot || !tenant) return false;
  const auto& cls =
      replica.queue().job_class(replica.queue().line(replica.queue()[*slot].line).class_index);
  const auto& nodes = state.partition(cls.key.partition).nodes;
  for (std::uint32_t f = 0; f < state.tenancy.compiled.view->flavors.size(); ++f) {
    if (ledger_.book().quota().never(*tenant, f, cls.least)) continue;
    std::uint32_t fitting = 0, tasks = 0;
    for (const NodeId id : nodes) {
      const std::uint32_t n = id.value();
      if (ledger_.book().flavor_of(id) != f) continue;
      const std::uint32_t here =
          sched::tasks_fitting(cls.demand, replica.grid().room(n), replica.grid().room(n));
      fitting += here > 0 ? 1 : 0;
      tasks += here;
    }
    if (fitting >= cls.demand.min_nodes && tasks >= cls.key.shape.tasks) return false;
  }
  return true;
}

void Simulation::give_up_on(const proto::JobRow& row) {
  const core::State& state = controller_.core().state();
  const core::Job& job = state.jobs.at(row.job);
  bool give_up = false;
  switch (row.verdict.reason) {
    // it was submitted before there were tenants, and only its user could say to which it belongs
    case Reason::no_tenant:
    case Reason::bad_constraints:
    case Reason::tainted: give_up = true; break;
    case Reason::topology: give_up = queue_.now() - mended_ > hours(2); break;
    case Reason::resources:
    case Reason::mig_repartition:
    case Reason::tenant_quota:
    case Reason::cohort_quota:

      // The least that the job takes may be less than what it would be given (whole nodes, equal
      // parts of their memory). guarantee.h has checked whether it could start.
      give_up = never_fits(job) || (truth_.live_count() == 0 && queue_.now() - mended_ > hours(2));
      break;
    case Reason::tenant_jobs:  // the components together may exceed the number of jobs that may run
      give_up = row.het && truth_.live_count() == 0 && queue_.now() - mended_ > hours(2);
      break;
    default: break;
  }
  if (!give_up) return;
  given_up_.insert(row.job);
  proto::CancelJobs cancel;
  cancel.filter.jobs = {{row.job, {}}};
  clients_.say(std::move(cancel));
}

void Simulation::operate_on(const core::Job& job) {
  const proto::JobRef ref{job.id, {}};
  if (job.phase == Phase::queued && job.hold != core::Hold::none)
    clients_.say(proto::ReleaseJobs{{ref}});
  const auto& het = core::class_of(controller_.core().state(), job).het;
  const bool follows = het && het->offset > 0;  // the component ends with its leader
  if (job.phase == Phase::running && job.kind == JobKind::allocation && !follows)
    clients_.say(proto::EndAllocation{job.id, {}});
  if (job.phase != Phase::queued || !job.dependencies) return;
  bool never = job.is_array() && !job.tasks->corr_never.empty();
  for (const core::DependencyState& d : job.dependencies->list)
    if (d.status == core::DependencyStatus::never) never = true;
  if (!never || job.dependencies->cancel_on_never) return;
  proto::CancelJobs cancel;
  cancel.filter.jobs = {ref};
  clients_.say(std::move(cancel));
}

bool Simulation::all_ended() const {
  for (const auto& [id, job] : ledger_.jobs())
    if (job.phase != Phase::ended) return false;
  return clients_.idle() && controller_.runs();
}

std::string Simulation::reason_of(JobId job) {
  if (!controller_.settled()) return "";
  for (const proto::JobRow& row : controller_.list_jobs())
    if (row.job == job)
      return fmt::format("; in {} it waits for {} ({}, {}, \"{}\")", row.partition,
                         enum_name(row.verdict.reason), row.verdict.a, row.verdict.b,
                         row.verdict.subject);
  return "";
}

void Simulation::wait_for_all() {
  const Instant end = queue_.now() + kPatience;
  std::size_t events = 0;
  Instant last = queue_.now();
  while (!all_ended() && queue_.now() < end && queue_.now() - last < kStandstill) {
    queue_.run_until(queue_.now() + seconds(10));
    const std::size_t now = controller_.store().every_event().size();
    if (std::exchange(events, now) != now) last = queue_.now();
  }
  queue_.run_until(queue_.now() + minutes(2));
  if (all_ended()) return;
  for (const auto& [id, job] : ledger_.jobs())
    if (job.phase != Phase::ended)
      broken(fmt::format("job {} is still {} {} min after all was mended{}", id.value(),
                         enum_name(job.phase), (queue_.now() - mended_).seconds() / 60,
                         reason_of(id)));
  broken("a submit has no answer");
}

void Simulation::check_nothing_held() {
  if (truth_.live_count() != 0) broken("every job has ended, but something still runs");
  for (const auto& node : nodes_)
    if (node->machine().records() != 0 || node->attempts() != 0)
      broken(fmt::format("every job has ended, but {} keeps {} records and {} attempts",
                         node->name(), node->machine().records(), node->attempts()));
  for (const core::Node& node : controller_.core().state().nodes)
    if (node.cpus_taken != 0 || node.memory_taken != 0 || !node.jobs.empty() ||
        node.exclusive_jobs != 0 || node.gpus_taken != 0 || !node.gpu_grants.empty())
      broken(fmt::format("every job has ended, but {} is not free", node.name));
}

// Checks that min_job_age after the last end only the history is left of the jobs.
void Simulation::check_nothing_kept() {
  const core::State& state = controller_.core().state();
  const store::Stats stats = controller_.store().stats();
  if (state.jobs.size() != 0) broken(fmt::format("{} jobs are never forgotten", state.jobs.size()));
  if (stats.specs != 0 || stats.blobs != 0)
    broken(fmt::format("{} specs and {} blobs are never removed", stats.specs, stats.blobs));
  if (!state.requests.empty() || !state.dependents.empty() || !state.same_name.empty() ||
      !state.singletons.empty())
    broken("an index keeps what is gone");
}

void Simulation::check_history() {
  std::map<JobId, std::vector<proto::HistoryRow>> rows;
  store::HistoryScan scan;
  for (;;) {
    const auto page = controller_.store().read_history(scan);
    if (!page) broken(page.error().message);
    for (const store::HistoryEntry& entry : page->entries) {
      auto row = codec::decode<proto::HistoryRow>(entry.data);
      if (!row) broken(row.error().message);
      if (row->requeued) continue;  // a run, and not the job's end
      rows[entry.job].push_back(std::move(*row));
    }
    if (!page->resume) break;
    scan.resume = page->resume;
  }
  for (const JobId id : ledger_.acknowledged())
    if (!ledger_.jobs().contains(id))
      broken(fmt::format("job {} was acknowledged and is lost", id.value()));
  for (const auto& [id, account] : ledger_.jobs()) check_history_of(id, account, rows);
}

void Simulation::check_history_of(JobId id, const Account& account,
                                  const std::map<JobId, std::vector<proto::HistoryRow>>& rows) {
  const auto wrong = [&](std::string_view what) {
    broken(fmt::format("the history of job {}: {}", id.value(), what));
  };
  const auto found = rows.find(id);
  if (!account.indexes.empty()) {  // an array: its cancelled tasks have one row or several
    std::set<std::uint32_t> told;
    if (found != rows.end())
      for (const proto::HistoryRow& row : found->second) {
        const auto ranges = parse_index_ranges(row.row.array_tasks);
        if (!ranges) wrong(ranges.error().message);
        for (const IndexRange& r : ranges->ranges)
          for (std::uint32_t i = r.first; i <= r.last; i += r.step)
            if (!told.insert(i).second) wrong("a cancelled task is there twice");
      }
    std::set<std::uint32_t> is;
    for (const std::uint32_t ordinal : account.cancelled) is.insert(account.indexes.at(ordinal));
    if (told != is) wrong(fmt::format("{} cancelled tasks, not {}", told.size(), is.size()));
    return;
  }
  if (found == rows.end()) return wrong("there is none");
  // A job that had ended may have been put back into the queue: the row with the most restarts is
  // of its last end, and each end has another count.
  std::map<std::uint32_t, const proto::HistoryRow*> by_restarts;
  for (const proto::HistoryRow& row : found->second)
    if (!by_restarts.emplace(row.row.restarts, &row).second)
      return wrong("it ended twice after the same start");
  const proto::HistoryRow& row = *by_restarts.rbegin()->second;
  if (row.row.outcome != account.outcome) wrong("another outcome");
  if (!(row.row.exit == account.exit)) wrong("another exit");
  if (!(row.usage == account.usage) && !account.nodes.empty()) wrong("another usage");
  if (row.row.restarts != account.restarts) wrong("another count of restarts");
}

}  // namespace gantry::sim
