// See book.h.
#include "tests/sim/check/book.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "ctld/core/event/events_cluster.h"
#include "ctld/sched/change.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/tenancy.h"
#include "ctld/sched/tenant/amount.h"
#include "tests/sim/check/ledger.h"

namespace gantry::sim {

namespace event = core::event;
using tenancy::PriorityClass;
using tenancy::Tenant;

namespace {

// After this many preemptions a job can only be preempted to reclaim quota (decision 28).
constexpr std::uint32_t kMostByClass = 16;

// Returns true if a job of this kind can be requeued, if its user allows that.
bool comes_back(const JobSpec& spec) {
  return spec.kind == JobKind::batch || (spec.het && spec.het->offset);
}

}  // namespace

std::string payer_of(const std::string& queue) {
  const std::size_t slash = queue.find('/');
  return slash == std::string::npos ? queue : queue.substr(slash + 1);
}

void Book::take(Instant at, core::EventRef any, const std::map<JobId, Account>& jobs) {
  if (const auto* e = any.get_if<event::NodeDeclared>()) {
    core::NodeTraits& traits = nodes_.emplace_back();
    traits.name = e->name;
    for (const NodeConfig& n : config_.nodes)
      if (n.name == e->name) {
        traits.gpu_model = n.gpu_model;
        traits.features = n.features;
      }
    compile();
  }
  if (const auto* e = any.get_if<event::PartitionDeclared>())
    payers_[e->partition] = payer_of(e->name);
  if (const auto* e = any.get_if<event::TenancyApplied>()) applied(*e);
  if (const auto* e = any.get_if<event::JobSubmitted>()) submitted(*e, jobs.at(e->job));
  if (const auto* e = any.get_if<event::TaskSplit>()) {
    jobs_[e->job] = jobs_.at(e->array);
    jobs_[e->job].preemptions = 0;
  }
  if (const auto* e = any.get_if<event::JobUpdated>()) {
    if (e->partition) jobs_.at(e->job).partition = *e->partition;
    if (e->account) jobs_.at(e->job).account = *e->account;
    if (e->requeue) {
      const JobSpec& spec = jobs.at(e->job).spec.spec;
      jobs_.at(e->job).may_requeue = *e->requeue && comes_back(spec);
    }
  }
  if (const auto* e = any.get_if<event::JobUpdated>()) std::erase(returned_, e->job);
  if (const auto* e = any.get_if<event::JobReleased>()) std::erase(returned_, e->job);
  if (const auto* e = any.get_if<event::JobPlaced>()) {
    placed(at, *e);
    placed_.push_back(e->job);
  }
  if (const auto* e = any.get_if<event::JobFinishing>()) {
    if (e->outcome == Outcome::preempted) preempted(at, *e);
    jobs_.at(e->job).leaving = true;
  }
  if (const auto* e = any.get_if<event::NodeExited>()) exited(at, *e);
  if (const auto* e = any.get_if<event::JobRequeued>()) {
    if (e->why == core::RequeueWhy::preempted) {
      ++jobs_.at(e->job).preemptions;
      returned_.push_back(e->job);
    }
    jobs_.at(e->job).leaving = false;
  }
  if (const auto* e = any.get_if<event::JobRevived>()) {
    jobs_.at(e->job).leaving = false;
    std::erase(returned_, e->job);
  }
}

// ---- documents

// Computes the use of all tenants again, because flavors of nodes may have changed.
void Book::compile() {
  compiled_ = core::compile(documents_, classes_, nodes_, revision_, hours(1),
                            core::LooseTenants::one_cohort);
  quota_.emplace(compiled_->view);
  for (const auto& [id, job] : jobs_)
    if (const auto tenant = tenant_of(job))
      for (const auto& [node, grant] : job.held)
        quota_->add(*tenant, flavor_of(node), sched::amount_of(grant));
}

void Book::applied(const event::TenancyApplied& e) {
  if (e.revision != ++revision_) broken("revisions of the documents are not in order");
  if (e.comment == "must be refused") broken("documents were applied that had to be refused");
  for (const core::DocumentChange& change : e.changes) {
    const core::DocumentKey key{change.kind, change.name};
    const auto it = documents_.find(key);
    if (change.before.has_value() != (it != documents_.end()) ||
        (change.before && !(*change.before == it->second)))
      broken(
          fmt::format("revision {} says of {} what was not there before", e.revision, change.name));
  }
  may_apply(e);
  for (const core::DocumentChange& change : e.changes) {
    if (change.after)
      documents_.insert_or_assign({change.kind, change.name}, *change.after);
    else
      documents_.erase({change.kind, change.name});
    if (change.after || change.kind != Tenant::kKind) continue;
    for (const auto& [id, job] : jobs_)
      if (!job.held.empty() && payers_.at(job.partition) == change.name)
        broken(fmt::format("tenant {} is removed while job {} runs", change.name, id.value()));
  }
  classes_.insert(classes_.end(), e.new_classes.begin(), e.new_classes.end());
  ++counts_.applied;
  compile();
}

// Only the administrator may change everything; a tenant's admin may change projects, classes and
// grants of the tenant.
void Book::may_apply(const event::TenancyApplied& e) const {
  if (e.author == "admin") return;
  for (const core::DocumentChange& change : e.changes) {
    const auto wrong = [&] {
      broken(fmt::format("{} changed {}, which is not theirs", e.author, change.name));
    };
    if (change.kind != Tenant::kKind || !change.before || !change.after) wrong();
    Tenant before = std::get<Tenant>(*change.before), after = std::get<Tenant>(*change.after);
    const auto& grants = before.grants;
    if (std::none_of(grants.begin(), grants.end(), [&](const tenancy::Grant& g) {
          return g.user == e.author && g.role >= tenancy::Role::tenant_admin;
        }))
      wrong();
    after.projects = before.projects;
    after.classes = before.classes;
    after.grants = before.grants;
    if (!(after == before)) wrong();
  }
}

// ---- jobs

std::optional<std::uint32_t> Book::tenant_of(const Job& job) const {
  const auto name = payers_.find(job.partition);
  if (name == payers_.end()) return std::nullopt;
  const auto it = compiled_->tenants.find(name->second);
  return it == compiled_->tenants.end() ? std::nullopt : std::optional(it->second.quota_node);
}

std::uint32_t Book::flavor_of(NodeId node) const {
  return compiled_->nodes.at(node.value()).flavor;
}

const PriorityClass& Book::class_of(const Job& job) const {
  for (const PriorityClass& c : compiled_->classes)
    if (c.name == job.cls) return c;
  broken(fmt::format("a job has the class \"{}\"", job.cls));
}

Duration Book::longest_grace() const {
  Duration most{};
  for (const PriorityClass& c : compiled_->classes) most = std::max(most, c.grace);
  return most;
}

void Book::submitted(const event::JobSubmitted& e, const Account& account) {
  Job& job = jobs_[e.job];
  job.partition = e.partition;
  job.cls = account.spec.spec.priority_class;
  job.account = account.spec.spec.account;
  job.user = account.spec.owner.user;
  const JobSpec& spec = account.spec.spec;
  job.may_requeue = spec.requeue && comes_back(spec);
}

Resources Book::taken(const Job& job) const {
  Resources sum;
  for (const auto& [node, grant] : job.held) sum += sched::amount_of(grant);
  return sum;
}

void Book::placed(Instant at, const event::JobPlaced& e) {
  Job& job = jobs_.at(e.job);
  double charge = 0;
  Resources need;
  const std::uint32_t flavor = flavor_of(e.grants.front().node);
  for (const sched::NodeGrant& grant : e.grants) {
    const Resources amount = sched::amount_of(grant);
    need += amount;
    for (const ResourceRow& row : kResourceTable)
      charge +=
          compiled_->view->flavors[flavor_of(grant.node)].charge[static_cast<std::size_t>(row.id)] *
          static_cast<double>(amount[row.id]);
  }
  charge *= static_cast<double>(e.use.factor) / 1e6;  // the usage factor of its class
  if (std::abs(charge - e.charge) > 1e-9 * charge)
    broken(fmt::format("job {} is charged {} a second, not {}", e.job.value(), e.charge, charge));
  if (has_tenants() && !tenant_of(job))
    broken(fmt::format("job {} starts, and no tenant pays for it", e.job.value()));
  if (const auto tenant = tenant_of(job)) {
    const std::string& name = compiled_->view->nodes[*tenant].name;
    for (const sched::NodeGrant& grant : e.grants)
      if (flavor_of(grant.node) != flavor)
        broken(fmt::format("job {} is spread over flavors", e.job.value()));
    if (const std::string lacks = quota_->objection(*tenant, flavor, need); !lacks.empty())
      broken(fmt::format("job {} starts beyond the quota of {}: {}", e.job.value(), name, lacks));
    if (quota_->borrows(*tenant, flavor, need, true)) ++counts_.borrowing;
    const auto running = std::count_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
      return !entry.second.held.empty() && tenant_of(entry.second) == tenant;
    });
    const auto& most = compiled_->view->nodes[*tenant].max_running;
    if (most && running >= *most)
      broken(fmt::format("job {} starts while {} jobs of {} run, the most it may", e.job.value(),
                         running, name));
    job.leaf = {name, job.account.empty() ? name : job.account, job.user};
    auto& intervals = shares_[job.leaf];
    job.interval = intervals.size();
    intervals.push_back({at, std::nullopt, e.charge});
  }
  job.placed = at;
  for (const sched::NodeGrant& grant : e.grants) {
    job.held.emplace(grant.node, grant);
    if (const auto tenant = tenant_of(job))
      quota_->add(*tenant, flavor_of(grant.node), sched::amount_of(grant));
  }
}

void Book::exited(Instant at, const event::NodeExited& e) {
  Job& job = jobs_.at(e.job);
  const auto it = job.held.find(e.node);
  if (it == job.held.end()) return;  // the ledger has reported this already
  if (const auto tenant = tenant_of(job))
    quota_->add(*tenant, flavor_of(e.node), sched::amount_of(it->second), -1);
  job.held.erase(it);
  if (!job.held.empty() || !job.interval) return;
  shares_.at(job.leaf).at(*job.interval).to = at;
  job.interval.reset();
}

// ---- victims

void Book::preempted(Instant at, const event::JobFinishing& e) {
  ++counts_.preempted;
  // it is preempted together with another component, which was chosen
  if (e.cause.starts_with("component ")) return;
  const Job& job = jobs_.at(e.job);
  const PriorityClass& cls = class_of(job);
  const auto wrong = [&](const std::string& what) {
    broken(fmt::format("job {} is preempted although {}", e.job.value(), what));
  };
  if (!cls.preemptible) wrong("its class is not preemptible");
  if (at - job.placed < cls.min_run_time)
    wrong(fmt::format("it has run for {} s of {}", (at - job.placed).seconds(),
                      cls.min_run_time.seconds()));
  if (cls.max_preemptions && job.preemptions >= *cls.max_preemptions)
    wrong(fmt::format("it was {} times before", job.preemptions));
  if (job.leaving) wrong("it is on its way out");
  if (e.grace != cls.grace) wrong("it gets another grace than its class's");
  const bool back = cls.victim_mode == tenancy::VictimMode::requeue && job.may_requeue;
  if ((e.requeue == core::RequeueWhy::preempted) != back)
    wrong(back ? "it does not come back" : "it comes back");
}

// Returns the use of quota without jobs that leave and without the victims of this plan.
QuotaOf Book::staying(const sched::Plan& plan) const {
  QuotaOf out = *quota_;
  std::set<JobId> gone;
  for (const sched::Preempt& p : plan.preemptions) gone.insert(p.victim);
  for (const auto& [id, job] : jobs_) {
    const auto tenant = tenant_of(job);
    if (!tenant || (!job.leaving && !gone.contains(id))) continue;
    for (const auto& [node, grant] : job.held)
      out.add(*tenant, flavor_of(node), sched::amount_of(grant), -1);
  }
  return out;
}

// A job of a lower class makes room for a job within its tenant's quota in the same cohort
// (decision 117).
bool Book::takes_within_own(const Job& low, const Job& high, const Resources& least,
                            const QuotaOf& stays) const {
  const auto from = tenant_of(low), to = tenant_of(high);
  if (!from || !to || class_of(low).value >= class_of(high).value) return false;
  if (low.preemptions >= kMostByClass) return false;
  const auto root = [&](std::uint32_t n) {
    while (compiled_->view->nodes[n].parent != sched::kNoIndex)
      n = compiled_->view->nodes[n].parent;
    return n;
  };
  if (root(*from) != root(*to)) return false;
  if (from != to && compiled_->view->nodes[*to].reclaim == tenancy::Reclaim::never) return false;
  return stays.owns(*to, least);
}

void Book::check_plan(const sched::Plan& plan, const Least& least) const {
  if (plan.preemptions.empty()) return;
  const QuotaOf stays = staying(plan);
  std::map<std::uint32_t, std::vector<JobId>> reclaimed;  // by the tenant that loses them
  for (const sched::Preempt& p : plan.preemptions) {
    const auto v = jobs_.find(p.victim), other = jobs_.find(p.for_job);
    const auto wrong = [&](std::string_view what) {
      broken(fmt::format("a plan takes job {} for job {} although {}", p.victim.value(),
                         p.for_job.value(), what));
    };
    if (v == jobs_.end() || v->second.held.empty()) wrong("it holds nothing");
    if (other == jobs_.end() || !other->second.held.empty()) wrong("that one does not wait");
    const PriorityClass &low = class_of(v->second), &high = class_of(other->second);
    const auto from = tenant_of(v->second), to = tenant_of(other->second);
    const bool reclaim = p.why == sched::PreemptWhy::reclaim;
    const bool within = takes_within_own(v->second, other->second, least(p.for_job), stays);
    if (p.why == sched::PreemptWhy::by_class) {
      if (!high.preempts && !within)
        wrong("that one's class does not preempt, and takes nothing of its tenant's own");
      if (low.value >= high.value) wrong("it is of no lower class");
      if (v->second.preemptions >= kMostByClass) wrong("it has had to go 16 times");
    }
    if (p.why == sched::PreemptWhy::by_share) {
      if (low.value != high.value) wrong("they are not of one class");
      if (!from || !to || from == to) wrong("no two tenants share");
    }
    if (reclaim && !to) wrong("that one has no quota to take back");
    if (reclaim && from == to) wrong("both are one tenant's");
    if (reclaim && compiled_->view->nodes[*to].reclaim == tenancy::Reclaim::never)
      wrong("that one's tenant does not reclaim");
    if (from && from != to && !within) reclaimed[*from].push_back(p.victim);
  }
  QuotaOf used = *quota_;  // together with the starts of this plan
  for (const sched::Start& start : plan.starts)
    if (const auto tenant = tenant_of(jobs_.at(start.job)))
      for (const sched::NodeGrant& grant : start.grants)
        used.add(*tenant, flavor_of(grant.node), sched::amount_of(grant));
  check_victims(reclaimed, used);
}

// Checks that a tenant loses jobs only as long as it exceeds its quota: without the last victim it
// still would.
void Book::check_victims(const std::map<std::uint32_t, std::vector<JobId>>& by_tenant,
                         const QuotaOf& used) const {
  for (const auto& [tenant, victims] : by_tenant) {
    const bool sound = std::any_of(victims.begin(), victims.end(), [&](JobId last) {
      QuotaOf rest = used;
      for (const JobId id : victims)
        if (id != last)
          for (const auto& [node, grant] : jobs_.at(id).held)
            rest.add(tenant, flavor_of(node), sched::amount_of(grant), -1);
      for (std::uint32_t f = 0; f < compiled_->view->flavors.size(); ++f)
        if (rest.borrows(tenant, f, {}, false)) return true;
      return false;
    });
    if (!sound)
      broken(fmt::format(
          "a plan takes {} jobs of {}, the last is {}: it does not use so much more than its own",
          victims.size(), compiled_->view->nodes[tenant].name, victims.back().value()));
  }
}

// ---- comparing

void Book::compare(const core::State& state) {
  for (const JobId id : placed_)
    if (const core::Job* job = state.jobs.find(id)) {
      jobs_.at(id).eligible = job->eligible;
      jobs_.at(id).submitted = job->submitted;
    }
  for (const JobId id : returned_)
    if (const core::Job* job = state.jobs.find(id))
      if (job->eligible != jobs_.at(id).eligible || job->submitted != jobs_.at(id).submitted)
        broken(fmt::format("job {} was preempted and lost its place", id.value()));
  placed_.clear();
  returned_.clear();
  const core::TenancyState& is = state.tenancy;
  if (is.revision != revision_) broken("the revision of the documents is not the last one");
  if (is.documents != documents_) broken("the documents are not what the events say");
  if (is.class_names != classes_) broken("the priority classes are not what the events say");
  state.jobs.walk(JobId{}, [&](const core::Job& job) {
    if (job.preemptions != jobs_.at(job.id).preemptions)
      broken(fmt::format("job {} was preempted {} times, not {}", job.id.value(),
                         jobs_.at(job.id).preemptions, job.preemptions));
    return true;
  });
}

void Book::compare_shares(const core::State& state) const {
  const auto& shares = state.tenancy.shares;
  const double lambda = std::log(2.0) / (static_cast<double>(state.tenancy.half_life.us) / 1e6);
  for (const core::ShareNode& share : shares) {
    std::vector<std::string> path{share.name};
    for (auto up = share.parent; up; up = shares[up->value()].parent)
      path.insert(path.begin(), shares[up->value()].name);
    const auto seconds = [](Instant from, Instant to) {
      return static_cast<double>((to - from).us) / 1e6;
    };
    long double amount = 0, rate = 0;
    for (const auto& [leaf, intervals] : shares_) {
      if (!std::equal(path.begin(), path.end(), leaf.begin())) continue;
      for (const Interval& i : intervals) {
        if (!i.to) rate += i.rate;
        // Computes the worth of the interval at its end, and lets it decay from there. The
        // difference of two exponentials near 1 would lose nine digits when the half-life is long.
        const Instant end = i.to.value_or(share.usage.at);
        const double worth = -i.rate / lambda * std::expm1(-lambda * seconds(i.from, end));
        amount += worth * std::exp(-lambda * seconds(end, share.usage.at));
      }
    }
    const auto differ = [](double a, long double b) {
      return std::abs(a - static_cast<double>(b)) > 1e-9 * (1 + std::abs(a));
    };
    if (differ(share.usage.rate, rate) || differ(share.usage.amount, amount))
      broken(fmt::format("the share of {} has used {} and uses {} a second; its jobs {} and {}",
                         fmt::join(path, "/"), share.usage.amount, share.usage.rate,
                         static_cast<double>(amount), static_cast<double>(rate)));
  }
}

}  // namespace gantry::sim
