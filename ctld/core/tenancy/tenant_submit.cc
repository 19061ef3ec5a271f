#include "ctld/core/tenancy/tenant_submit.h"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/text/text.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/memory.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/tenancy/shares.h"
#include "ctld/core/tenancy/tenant_classes.h"
#include "ctld/core/tenancy/tenants.h"
#include "ctld/sched/gpu/mig_node.h"

namespace gantry::core {
namespace {

std::string amount_text(Resource r, std::int64_t amount) {
  Resources one;
  one.row(r) = amount;
  const std::string text = to_string(one);
  return text.empty() ? fmt::format("{}=0", kResourceTable[static_cast<std::size_t>(r)].name)
                      : text;
}

// The resources that one node of the job and the whole job would hold, as far as the request tells.
struct Wanted {
  Resources node, job;
};
Wanted wanted_of(const JobShape& s, const Partition& partition) {
  const std::int64_t tasks = std::max(s.tasks, s.min_nodes);
  const Times nodes{s.min_nodes};
  const std::int64_t tasks_on_node = (tasks + s.min_nodes - 1) / s.min_nodes;
  Wanted w;
  const Cores cores{static_cast<std::int64_t>(s.least_cores())},
      cores_on_node{
          static_cast<std::int64_t>(s.cores_on_node(static_cast<std::uint64_t>(tasks_on_node)))};
  w.job.set<Resource::cpu>(thousandths_of(cores));
  w.node.set<Resource::cpu>(thousandths_of(cores_on_node));
  const auto* declared = partition.declared;
  const ByteCount per_cpu{s.memory_per_cpu.value_or(
      declared != nullptr ? declared->default_memory_per_cpu.value_or(0) : 0)};
  if (s.memory_per_node) {
    w.node.set<Resource::memory>(ByteCount{*s.memory_per_node});
    w.job.set<Resource::memory>(s.memory_per_gpu > 0
                                    ? ByteCount{s.memory_per_gpu} * Times{s.gpus_in_all}
                                    : ByteCount{*s.memory_per_node} * nodes);
  } else {
    w.node.set<Resource::memory>(per_cpu * Times{cores_on_node.value()});
    w.job.set<Resource::memory>(per_cpu * Times{cores.value()});
  }
  const GpuThousandths each =  // an estimate for slices; exact when they are granted
      s.gpu_slice.empty()
          ? kOneGpu
          : least_weight(thousandths_of(ComputeSlices{sched::compute_slices_of(s.gpu_slice)}));
  const GpuThousandths on_node =
      each * Times{s.gpus_per_node} + part_of(each, DevicePart{s.gpu_share});
  w.node.set<Resource::gpu>(on_node);
  w.job.set<Resource::gpu>(s.gpus_in_all > 0 ? each * Times{s.gpus_in_all} : on_node * nodes);
  w.node.set<Resource::scratch>(ByteCount{s.scratch_per_node});
  w.job.set<Resource::scratch>(ByteCount{s.scratch_per_node} * nodes);
  w.node.set<Resource::io>(ByteRate{s.io_per_node});
  w.job.set<Resource::io>(ByteRate{s.io_per_node} * nodes);
  w.node.set<Resource::net>(BitRate{s.net_per_node});
  w.job.set<Resource::net>(BitRate{s.net_per_node} * nodes);
  return w;
}

Result<void> check_most(std::string_view what, const Resources& asked,
                        const std::optional<Resources>& most, const std::string& tenant) {
  if (!most) return {};
  for (const ResourceRow& row : kResourceTable)
    if ((*most)[row.id] != 0 && asked[row.id] > (*most)[row.id])
      return fail(ErrorCode::limit_exceeded,
                  fmt::format("the job asks for {} {}; tenant {} allows {}",
                              amount_text(row.id, asked[row.id]), what, tenant,
                              amount_text(row.id, (*most)[row.id])));
  return {};
}

// Lowers the upper end of a range of nodes to what the tenant's limit for one job allows, because a
// demand per node grows with the number of nodes.
void cap_range(const tenancy::Tenant& tenant, const Partition& queue, JobShape& shape) {
  if (!tenant.jobs.max_per_job || shape.max_nodes <= shape.min_nodes) return;
  const Wanted wanted = wanted_of(shape, queue);
  for (const ResourceRow& row : kResourceTable) {
    const bool by_node = row.id == Resource::gpu || row.id == Resource::scratch ||
                         row.id == Resource::io || row.id == Resource::net ||
                         (row.id == Resource::memory && shape.memory_per_node);
    const std::int64_t most = (*tenant.jobs.max_per_job)[row.id], each = wanted.node[row.id];
    if (!by_node || most == 0 || each <= 0) continue;
    const std::int64_t nodes = std::max<std::int64_t>(most / each, shape.min_nodes);
    shape.max_nodes = static_cast<std::uint32_t>(std::min<std::int64_t>(nodes, shape.max_nodes));
  }
}

// The user who submits jobs, and how many.
struct Newcomers {
  Uid uid;
  std::string user;
  std::uint64_t jobs = 1;
  bool array = false;
};

Result<void> check_counts(const Context& ctx, const Newcomers& come,
                          const tenancy::Tenant& tenant) {
  const auto& counts = tenant.counts;
  const auto over = [&](std::string_view what, std::uint64_t would, std::uint32_t limit) {
    return fail(ErrorCode::limit_exceeded,
                fmt::format("tenant {} would have {} {}; its limit is {}", tenant.name, would, what,
                            limit));
  };
  if (counts.array_tasks && come.array && come.jobs > *counts.array_tasks)
    return over("tasks in this array", come.jobs, *counts.array_tasks);
  const QueueCounts queue = ctx.state.tenant_counts(tenant.name);
  if (counts.queued_jobs && queue.queued + come.jobs > *counts.queued_jobs)
    return over("queued jobs", queue.queued + come.jobs, *counts.queued_jobs);
  if (counts.queued_jobs_per_user) {
    const std::uint64_t own = ctx.state.tenant_queued(tenant.name, come.uid);
    if (own + come.jobs > *counts.queued_jobs_per_user)
      return fail(
          ErrorCode::limit_exceeded,
          fmt::format("{} would have {} queued jobs in tenant {}; its limit for a user is {}",
                      come.user, own + come.jobs, tenant.name, *counts.queued_jobs_per_user));
  }
  return {};
}

// Limits submits in the present minute of cluster time; an array counts as one.
Result<void> check_rate(Context& ctx, const tenancy::Tenant& tenant) {
  if (!tenant.counts.submits_per_minute) return {};
  SubmitWindow& window = ctx.rt.tenancy->submit_windows[ctx.state.partition_ids.at(tenant.name)];
  const std::int64_t minute = ctx.now.us / minutes(1).us;
  if (window.minute != minute) window = {minute, 0};
  if (window.submits >= *tenant.counts.submits_per_minute)
    return fail(
        ErrorCode::limit_exceeded,
        fmt::format("tenant {} has submitted {} jobs in this minute, which is its limit: try "
                    "again in {}",
                    tenant.name, window.submits,
                    format_duration(minutes(minute + 1) - Duration{ctx.now.us})));
  ++window.submits;
  return {};
}

// At least one flavor of the queue's nodes must be able to hold the job one day.
Result<void> check_quota(const Context& ctx, const CompiledTenant& tenant, const Partition& queue,
                         const JobShape& shape, const Resources& wanted) {
  const auto& nodes = ctx.state.tenancy.compiled.nodes;
  std::vector<std::uint32_t> flavors;
  for (const NodeId id : queue.nodes) {
    const std::uint32_t f = nodes[id.value()].flavor;
    if (std::find(flavors.begin(), flavors.end(), f) != flavors.end()) continue;
    const auto& models = shape.gpu_models;
    const NodeConfig* declared = ctx.state.node(id).declared;
    if (declared == nullptr) continue;
    if (!models.empty() &&
        std::find(models.begin(), models.end(), declared->gpu_model) == models.end())
      continue;
    flavors.push_back(f);
  }
  std::optional<sched::QuotaCell> why;
  for (const std::uint32_t f : flavors) {
    why = ctx.rt.tenancy->quota->never_fits(tenant.quota_node, {f, wanted});
    if (!why) return {};
  }
  if (!why) return {};  // without any node, the check of the shape reports it
  const Resource r = why->resource;
  const std::string& flavor = ctx.state.tenancy.compiled.view->flavors[why->flavor].name;
  const sched::QuotaTree& quota = *ctx.rt.tenancy->quota;
  return fail(
      ErrorCode::limit_exceeded,
      fmt::format(
          "quota exceeded: the job asks for {}{}; tenant {} can never have more than {} "
          "(its own {}, the rest borrowed), and uses {} now",
          amount_text(r, wanted[r]), flavor.empty() ? "" : " of " + flavor, tenant.effective.name,
          amount_text(
              r, std::max<std::int64_t>(0, quota.potential(tenant.quota_node, why->flavor, r))),
          amount_text(r, quota.subtree(tenant.quota_node, why->flavor, r)),
          amount_text(r, quota.usage(tenant.quota_node, why->flavor, r))));
}

// Checks what the job asks for against the tenant's maxima and what its quota can ever allow.
Result<void> check_amounts(const Context& ctx, const CompiledTenant& tenant,
                           const Partition& partition, const JobShape& shape) {
  const tenancy::Tenant& t = tenant.effective;
  const Wanted wanted = wanted_of(shape, partition);
  if (auto r = check_most("in all", wanted.job, t.jobs.max_per_job, t.name); !r) return r;
  if (auto r = check_most("on a node", wanted.node, t.jobs.max_per_node, t.name); !r) return r;
  return check_quota(ctx, tenant, partition, shape, wanted.job);
}

}  // namespace

Resources asked_of_quota(const JobShape& shape, const Partition& queue) {
  return wanted_of(shape, queue).job;
}

Resources asked_on_node(const JobShape& shape, const Partition& queue) {
  return wanted_of(shape, queue).node;
}

namespace {

bool has_project(const CompiledTenant& tenant, const std::string& name) {
  const auto& projects = tenant.effective.projects;
  return std::any_of(projects.begin(), projects.end(),
                     [&](const tenancy::Project& p) { return p.name == name; });
}

// Lists only the first few names, because a cluster may have a thousand tenants.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 12;
  const std::size_t shown = std::min(names.size(), kMostNamed);
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + shown, ", "),
                     shown < names.size() ? ", ..." : "");
}

tl::unexpected<Error> no_tenant(const State& state, const Identity& who) {
  std::vector<std::string> all;
  for (const auto& [name, tenant] : state.tenancy.compiled.tenants) all.push_back(name);
  if (is_admin(who))
    return fail(ErrorCode::invalid_argument,
                fmt::format("every job here is a tenant's, and administrators are of none: name "
                            "one of the tenants {} with --account",
                            some_of(all)));
  return fail(ErrorCode::permission_denied,
              fmt::format("{} belongs to no tenant, and every job here is a tenant's: ask an "
                          "administrator for the role user in one (gtenant show TENANT)",
                          who.owner.user));
}

// The tenant that the job will belong to.
Result<std::string> choose_tenant(const State& state, const Identity& who, const QueueWish& wish) {
  const auto& tenants = state.tenancy.compiled.tenants;
  const CompiledTenant* present = state.tenancy.tenant(wish.present);
  if (present != nullptr &&
      (wish.account.empty() || wish.account == wish.present || has_project(*present, wish.account)))
    return wish.present;
  std::vector<std::string> mine = tenants_of(state, who);
  // A tenant in which the asker has no role is answered like a name that does not exist.
  const bool seen = sees_all(state, who) || has_right(state, who, wish.account, TenantRight::see);
  if (tenants.contains(wish.account) && seen) {
    if (has_right(state, who, wish.account, TenantRight::submit)) return wish.account;
    return fail(ErrorCode::permission_denied,
                fmt::format("{} may not submit to tenant {}", who.owner.user, wish.account));
  }
  if (mine.empty()) return no_tenant(state, who);
  if (wish.account.empty())
    for (const std::string& name : mine)
      if (tenants.at(name).effective.default_accounts.contains(who.owner.user)) return name;
  // The admin of a tenant can give any user a role in it. So with several roles, the only tenant in
  // which the user has had jobs is taken, and a new role alone does not change a user's tenant.
  if (mine.size() > 1 && wish.account.empty()) {
    std::vector<std::string> known;
    std::copy_if(mine.begin(), mine.end(), std::back_inserter(known),
                 [&](const std::string& t) { return has_share(state, t, who.owner.user); });
    if (known.size() == 1) return known.front();
  }
  if (mine.size() > 1 && !wish.account.empty()) {
    std::erase_if(mine,
                  [&](const std::string& t) { return !has_project(tenants.at(t), wish.account); });
    if (mine.empty())
      return fail(ErrorCode::not_found,
                  fmt::format("there is no tenant or project \"{}\" that {} may charge",
                              wish.account, who.owner.user));
  }
  if (mine.size() > 1)
    return fail(ErrorCode::invalid_argument,
                wish.account.empty()
                    ? fmt::format("{} belongs to several tenants: name one of {} with --partition "
                                  "or --account",
                                  who.owner.user, some_of(mine))
                    : fmt::format("several tenants of {} have a project {}: name one of {} with "
                                  "--partition",
                                  who.owner.user, wish.account, some_of(mine)));
  return mine.front();
}

}  // namespace

Result<const Partition*> choose_queue(Context& ctx, const Identity& who, const QueueWish& wish) {
  const State& state = ctx.state;
  const bool tenants = !state.tenancy.compiled.tenants.empty();
  const std::string& named = wish.partition;
  const Partition* partition = nullptr;
  if (!named.empty()) {
    partition = state.partition_named(named);
    if (partition == nullptr || partition->declared == nullptr)
      return fail(ErrorCode::not_found, fmt::format("there is no partition \"{}\"", named));
    if (!tenants) return partition;
    if (state.tenancy.queues.contains(named)) {
      if (!has_open_queue(state, named))
        return fail(ErrorCode::not_found, fmt::format("there is no partition \"{}\"", named));
      if (has_right(state, who, named, TenantRight::submit)) return partition;
      // A tenant's queue in which the asker has no role is answered like a name that does not
      // exist.
      if (!sees_all(state, who) && !has_right(state, who, named, TenantRight::see))
        return fail(ErrorCode::not_found, fmt::format("there is no partition \"{}\"", named));
      return fail(ErrorCode::permission_denied,
                  fmt::format("{} may not submit to tenant {}", who.owner.user, named));
    }
  } else if (!tenants) {
    if (state.default_partition) return &state.partition(*state.default_partition);
    return fail(ErrorCode::not_found, "there is no default partition: name one with --partition");
  }
  ASSIGN(tenant, choose_tenant(state, who, wish));
  if (partition == nullptr)
    partition = has_open_queue(state, *tenant) || !state.default_partition
                    ? state.partition_named(*tenant)
                    : &state.partition(*state.default_partition);
  if (state.tenancy.queues.contains(partition->name)) return partition;
  return &part_of(ctx, partition->id, *tenant);
}

namespace {

bool names_user(const tenancy::Project& project, const std::string& user) {
  return std::any_of(project.users.begin(), project.users.end(),
                     [&](const auto& one) { return one.user == user; });
}

bool may_charge(const Payer& payer, const tenancy::Tenant& tenant, const std::string& project) {
  return std::any_of(tenant.projects.begin(), tenant.projects.end(), [&](const auto& p) {
    return p.name == project &&
           (p.users.empty() || payer.all_projects || names_user(p, payer.user));
  });
}

}  // namespace

Payer payer_of(const State& state, const Identity& who, const std::string& user,
               const std::string& tenant) {
  return {user, has_right(state, who, tenant, TenantRight::edit_projects)};
}

Result<std::string> project_of(const Payer& payer, const tenancy::Tenant& tenant,
                               const std::string& named) {
  const bool whole = named == tenant.name &&
                     std::none_of(tenant.projects.begin(), tenant.projects.end(),
                                  [&](const tenancy::Project& p) { return p.name == named; });
  std::string account = whole ? std::string() : named;
  if (named.empty())
    if (const auto by_default = tenant.default_accounts.find(payer.user);
        by_default != tenant.default_accounts.end() && by_default->second != tenant.name &&
        may_charge(payer, tenant, by_default->second))
      account = by_default->second;
  if (tenant.projects.empty()) {
    if (account.empty()) return tenant.name;
    return fail(ErrorCode::not_found,
                fmt::format("tenant {} has no project \"{}\": its only one is {}", tenant.name,
                            account, tenant.name));
  }
  std::vector<std::string> names;
  const tenancy::Project* mine = nullptr;  // the first that names the user, else the first open one
  for (const tenancy::Project& p : tenant.projects) {
    names.push_back(p.name);
    const bool named = names_user(p, payer.user);
    const bool may = named || p.users.empty() || payer.all_projects;
    if (p.name == account && may) return account;
    if (p.name == account)
      return fail(ErrorCode::permission_denied,
                  fmt::format("{} does not belong to project {} of tenant {}", payer.user, p.name,
                              tenant.name));
    if (may && (mine == nullptr || (named && !names_user(*mine, payer.user)))) mine = &p;
  }
  if (!account.empty())
    return fail(ErrorCode::not_found, fmt::format("tenant {} has no project \"{}\"; it has {}",
                                                  tenant.name, account, fmt::join(names, ", ")));
  if (mine == nullptr)
    return fail(
        ErrorCode::permission_denied,
        fmt::format("{} does not belong to a project of tenant {}", payer.user, tenant.name));
  return mine->name;
}

Result<void> check_tenant(Context& ctx, const Identity& who, const Partition& partition,
                          JobSpec& spec, bool test_only, std::uint64_t beside) {
  const CompiledTenant* tenant = tenant_of(ctx.state, partition);
  if (tenant == nullptr) {
    if (auto r = resolve_class(ctx.state, who, tenant, spec); !r) return r;
    if (spec.tenant_class.empty()) return {};
    return fail(ErrorCode::invalid_argument,
                fmt::format("partition {} is no tenant's, so it has no class \"{}\"",
                            partition.name, spec.tenant_class));
  }
  const tenancy::Tenant& t = tenant->effective;
  if (t.jobs.default_cpus && !spec.given.cpus_per_task)
    spec.shape.cpus_per_task = *t.jobs.default_cpus;
  ASSIGN(project, project_of(payer_of(ctx.state, who, who.owner.user, t.name), t, spec.account));
  spec.account = std::move(*project);
  if (auto r = resolve_class(ctx.state, who, tenant, spec); !r) return r;
  if (auto r = resolve_tenant_class(t, spec); !r) return r;
  if (auto r = check_amounts(ctx, *tenant, partition, spec.shape); !r) return r;
  cap_range(t, partition, spec.shape);
  if (test_only) return {};
  Newcomers come{who.owner.uid, who.owner.user};
  come.array = spec.array.has_value();
  if (come.array) come.jobs = ArrayIndexes(spec.array->ranges).count();
  come.jobs += beside;
  if (auto r = check_counts(ctx, come, t); !r) return r;
  return check_rate(ctx, t);
}

Result<void> check_reshaped(const Context& ctx, const Partition& queue, JobShape& shape) {
  const CompiledTenant* tenant = tenant_of(ctx.state, queue);
  if (tenant == nullptr) return {};
  if (auto r = check_amounts(ctx, *tenant, queue, shape); !r) return r;
  cap_range(tenant->effective, queue, shape);
  return {};
}

Result<void> check_moved(const Context& ctx, const Job& job, const Partition& queue) {
  const CompiledTenant* tenant = tenant_of(ctx.state, queue);
  if (tenant == nullptr || class_of(ctx.state, job).partition == queue.id) return {};
  JobShape shape = class_of(ctx.state, job).shape;
  if (auto r = check_amounts(ctx, *tenant, queue, shape); !r) return r;
  const std::uint32_t asked = shape.max_nodes;
  cap_range(tenant->effective, queue, shape);
  if (shape.max_nodes < asked)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the job may get {} nodes; by its limit of a job tenant {} allows {}",
                            asked, tenant->effective.name, shape.max_nodes));
  if (tenant == tenant_of(ctx.state, job)) return {};  // the job is in this tenant already
  Newcomers come{job.uid, std::string(ctx.state.names.text(job.user))};
  come.array = job.is_array();
  if (come.array) come.jobs = job.tasks->pending.count();
  return check_counts(ctx, come, tenant->effective);
}

Result<void> check_return(const Context& ctx, const Job& job) {
  const CompiledTenant* tenant = tenant_of(ctx.state, job);
  if (tenant == nullptr) return {};
  return check_counts(ctx, {job.uid, std::string(ctx.state.names.text(job.user))},
                      tenant->effective);
}

}  // namespace gantry::core
