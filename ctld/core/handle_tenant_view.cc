// What tenants use of their quota, where projects and users stand in the fair share, and what
// orders the waiting jobs. Read only; everybody sees what their grants and jobs allow.
#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "ctld/core/authorise.h"
#include "ctld/core/eligible.h"
#include "ctld/core/handlers.h"
#include "ctld/core/multifactor.h"
#include "ctld/core/rows.h"
#include "ctld/core/select.h"
#include "ctld/core/tenant_submit.h"
#include "ctld/core/tenants.h"
#include "ctld/sched/decay.h"

namespace gantry::core {
namespace {

constexpr std::uint32_t kMaxTuples = 20'000;  // in one reply
constexpr std::size_t kMaxOrdered = 200'000;  // jobs that one request puts in order

std::optional<std::int64_t> limited(std::int64_t amount) {
  return amount == sched::kUnlimited ? std::nullopt : std::optional(amount);
}

proto::QuotaUse cell_of(const sched::QuotaTree& quota, std::uint32_t n, std::uint32_t f,
                        Resource r) {
  const sched::QuotaNode& node = quota.tenancy().nodes[n];
  const auto i = static_cast<std::size_t>(r);
  const sched::FlavorLimits& limits = node.limits[f];
  proto::QuotaUse cell;
  cell.flavor = quota.tenancy().flavors[f].name;
  cell.resource = r;
  cell.used = quota.usage(n, f, r);
  cell.nominal = quota.subtree(n, f, r);
  cell.borrowed = std::max<std::int64_t>(0, cell.used - cell.nominal);
  if (node.parent != sched::kNoIndex) {
    if (limits.borrow[i] != sched::kUnlimited) cell.limit = cell.nominal + limits.borrow[i];
    cell.lend = limited(limits.lend[i]);
    // What others use beyond theirs comes from those who use less than what they may lend.
    const std::int64_t idle = std::max<std::int64_t>(0, cell.nominal - cell.used);
    const std::int64_t may_lend = std::min(idle, cell.lend.value_or(idle));
    const std::int64_t missing =
        may_lend - std::max<std::int64_t>(0, quota.available(node.parent, f, r));
    cell.lent = std::clamp<std::int64_t>(missing, 0, may_lend);
  } else {
    cell.limit = cell.nominal;
  }
  cell.available = quota.available(n, f, r);
  return cell;
}

proto::TenantUse use_of(const Context& ctx, std::uint32_t n) {
  const State& state = ctx.state;
  const sched::QuotaTree& quota = *ctx.rt.quota;
  const sched::QuotaNode& node = quota.tenancy().nodes[n];
  proto::TenantUse row;
  row.name = node.name;
  if (node.parent != sched::kNoIndex && quota.tenancy().nodes[node.parent].name != kClusterCohort)
    row.parent = quota.tenancy().nodes[node.parent].name;
  row.is_cohort = !node.tenant;
  for (std::uint32_t f = 0; f < quota.tenancy().flavors.size(); ++f)
    for (const ResourceRow& r : kResourceTable)
      if (quota.subtree(n, f, r.id) != sched::kUnlimited &&
          (quota.subtree(n, f, r.id) != 0 || quota.usage(n, f, r.id) != 0))
        row.cells.push_back(cell_of(quota, n, f, r.id));
  for (const ResourceRow& r : kResourceTable) row.used[r.id] = quota.usage(n, 0, r.id);
  if (!node.tenant) return row;
  const tenancy::Tenant& tenant = state.tenancy.tenant(node.name)->effective;
  const Partition* partition = state.partition_named(node.name);
  if (partition == nullptr) return row;
  const QueueCounts counts = state.tenant_counts(node.name);
  row.queued = counts.queued;
  row.running = counts.active;
  row.max_queued = tenant.counts.queued_jobs;
  row.max_running = tenant.counts.running_jobs;
  row.accepts_jobs = partition->up();
  return row;
}

// ---- fair share

struct ShareLine {
  const ShareNode* node = nullptr;
  sched::ShareChanged view;
  double usage = 0;
};

// Children of `parent`, those served first coming first (shares over usage).
std::vector<ShareLine> children_of(const Context& ctx, std::optional<sched::ShareId> parent) {
  std::vector<ShareLine> out;
  for (const ShareNode& node : ctx.state.tenancy.shares) {
    if (node.parent != parent) continue;
    const double usage = sched::amount_at(node.usage, ctx.now, ctx.state.tenancy.half_life);
    out.push_back({&node, share_view(ctx.state, node), usage});
  }
  std::stable_sort(out.begin(), out.end(), [](const ShareLine& a, const ShareLine& b) {
    // a.shares / a.usage > b.shares / b.usage, without dividing by nothing; no shares come last.
    const bool none_a = a.view.shares == 0, none_b = b.view.shares == 0;
    if (none_a != none_b) return none_b;
    return a.view.shares * b.usage > b.view.shares * a.usage;
  });
  return out;
}

void add_shares(const Context& ctx, const std::vector<ShareLine>& siblings, std::size_t depth,
                proto::ShareRow base, std::vector<proto::ShareRow>& out) {
  double shares = 0, usage = 0;
  for (const ShareLine& line : siblings) {
    shares += line.view.shares;
    usage += line.usage;
  }
  std::uint32_t place = 0;
  for (const ShareLine& line : siblings) {
    proto::ShareRow row = base;
    (depth == 1 ? row.project : row.user) = line.node->name;
    row.shares = line.view.shares;
    row.share = shares > 0 ? line.view.shares / shares : 0;
    row.usage = line.usage;
    row.rate = line.view.usage.rate;
    row.part = usage > 0 ? line.usage / usage : 0;
    if (row.part > 0) row.level = row.share / row.part;
    row.place = ++place;
    row.running = line.node->running;
    out.push_back(row);
    if (depth == 1) add_shares(ctx, children_of(ctx, line.node->id), 2, row, out);
  }
}

proto::ShareRow tenant_row(const Context& ctx, const ShareLine& line) {
  const State& state = ctx.state;
  proto::ShareRow row;
  row.tenant = line.node->name;
  row.usage = line.usage;
  row.rate = line.view.usage.rate;
  row.running = line.node->running;
  const CompiledTenant* tenant = state.tenancy.tenant(row.tenant);
  if (tenant == nullptr) return row;
  const auto& nodes = state.tenancy.compiled.view->nodes;
  row.shares = nodes[tenant->quota_node].weight;
  row.borrows = ctx.rt.quota->share_value(tenant->quota_node, {});
  double weights = 0;
  for (const sched::QuotaNode& n : nodes)
    if (n.parent == nodes[tenant->quota_node].parent) weights += n.weight;
  row.share = weights > 0 ? row.shares / weights : 0;
  row.queued = state.tenant_counts(row.tenant).queued;
  return row;
}

// ---- the order of waiting jobs

struct Tuple {
  proto::PriorityRow row;
  const Job* job = nullptr;
};

// Shares over usage among siblings; nothing when nothing was used.
std::optional<double> level_of(const Context& ctx, sched::ShareId id) {
  const auto& shares = ctx.state.tenancy.shares;
  for (const ShareLine& line : children_of(ctx, shares[id.value()].parent)) {
    if (line.node->id != id) continue;
    if (line.usage <= 0) return std::nullopt;
    return line.view.shares / line.usage;
  }
  return std::nullopt;
}

class Tuples {
 public:
  explicit Tuples(const Context& ctx) : ctx_(ctx) {}

  Tuple of(const Job& job) {
    const State& state = ctx_.state;
    const sched::ClassKey& key = class_of(state, job);
    const Partition& partition = state.partition(key.partition);
    Tuple t;
    t.job = &job;
    proto::PriorityRow& row = t.row;
    const proto::JobRow plain = plain_row(state, job);
    row.job = job.id;
    row.array_job = plain.array_job;
    row.array_tasks = plain.array_tasks;
    row.user = plain.user;
    row.account = plain.account;
    row.partition = partition.name;
    row.partition_priority = partition.declared != nullptr ? partition.declared->priority : 0;
    const auto& classes = state.tenancy.compiled.view->classes;
    row.priority_class = classes.at(key.priority_class).name;
    row.class_value = classes[key.priority_class].value;
    row.rank = rank_now(ctx_, job).value;
    row.priority = priority_now(ctx_, job);
    row.terms = terms_of(ctx_, job);
    row.since = job.eligible;
    if (const auto node = quota_node_of(state, key.partition)) borrowing(*node, job, row);
    if (job.share && row.terms.empty()) {  // with weights the sum has the fair share in it
      row.project_level = level(*state.tenancy.shares[job.share->value()].parent);
      row.user_level = level(*job.share);
    }
    return t;
  }

 private:
  void borrowing(std::uint32_t node, const Job& job, proto::PriorityRow& row) const {
    sched::QuotaNeed need;
    const JobShape& s = class_of(ctx_.state, job).shape;
    need.amount[Resource::cpu] =
        std::int64_t{std::max(s.tasks, s.min_nodes)} * s.cpus_per_task * 1000;
    need.amount[Resource::gpu] = std::int64_t{s.gpus_per_node} * s.min_nodes * kGpuUnit;
    need.amount[Resource::memory] = s.memory_per_node.value_or(0) * s.min_nodes;
    row.borrow_levels = ctx_.rt.quota->fit(node, need).levels;
    const auto& nodes = ctx_.state.tenancy.compiled.view->nodes;
    for (std::uint32_t n = node; nodes[n].parent != sched::kNoIndex; n = nodes[n].parent)
      row.share_values.insert(row.share_values.begin(), ctx_.rt.quota->share_value(n, need));
  }
  std::optional<double> level(sched::ShareId id) {
    const auto [it, made] = levels_.try_emplace(id);
    if (made) it->second = level_of(ctx_, id);
    return it->second;
  }

  const Context& ctx_;
  std::map<sched::ShareId, std::optional<double>> levels_;
};

bool comes_first(const Tuple& a, const Tuple& b) {
  const auto order = [](const proto::PriorityRow& r) {
    constexpr double kUnused = std::numeric_limits<double>::infinity();
    return std::tuple{-std::int64_t{r.partition_priority},
                      -std::int64_t{r.rank},
                      r.borrow_levels,
                      r.share_values,
                      -r.project_level.value_or(kUnused),
                      -r.user_level.value_or(kUnused),
                      -r.priority,
                      r.since,
                      r.job};
  };
  return order(a.row) < order(b.row);
}

}  // namespace

void handle(Context& ctx, const ClientRequest& from, proto::TenantUsage&& m) {
  const auto& nodes = ctx.state.tenancy.compiled.view->nodes;
  proto::TenantUsageReply reply;
  reply.revision = ctx.state.tenancy.revision;
  reply.now = ctx.now;
  for (const std::string& name : m.names)
    if (std::none_of(nodes.begin(), nodes.end(), [&](const auto& n) { return n.name == name; }))
      return refuse(ctx, from,
                    {ErrorCode::not_found, fmt::format("there is no tenant or cohort {}", name)});
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    if (!m.names.empty() &&
        std::find(m.names.begin(), m.names.end(), nodes[n].name) == m.names.end())
      continue;
    if (nodes[n].tenant && !role_in(ctx.state, from.who, nodes[n].name)) continue;
    if (!nodes[n].tenant && (!is_admin(from.who) || nodes[n].name == kClusterCohort)) continue;
    reply.rows.push_back(use_of(ctx, n));
  }
  ctx.reply(from, std::move(reply));
}

void handle(Context& ctx, const ClientRequest& from, proto::ShareTree&& m) {
  proto::ShareTreeReply reply;
  reply.half_life = ctx.state.tenancy.half_life;
  reply.now = ctx.now;
  for (const ShareLine& line : children_of(ctx, std::nullopt)) {
    const std::string& name = line.node->name;
    if (!m.tenants.empty() &&
        std::find(m.tenants.begin(), m.tenants.end(), name) == m.tenants.end())
      continue;
    if (!role_in(ctx.state, from.who, name)) continue;
    proto::ShareRow row = tenant_row(ctx, line);
    reply.rows.push_back(row);
    proto::ShareRow base;
    base.tenant = row.tenant;
    add_shares(ctx, children_of(ctx, line.node->id), 1, base, reply.rows);
  }
  ctx.reply(from, std::move(reply));
}

void handle(Context& ctx, const ClientRequest& from, proto::PriorityTuples&& m) {
  const auto match = JobMatch::make(ctx.state, m.filter);
  if (!match) return refuse(ctx, from, match.error());
  Tuples tuples(ctx);
  std::vector<Tuple> all;
  bool too_many = false;
  walk_jobs(ctx.state, from.who, *match, JobId{}, [&](const Job& job) {
    if (job.phase != Phase::queued || !has_row(job)) return true;
    if (startable(ctx.state, job, ctx.now) == 0) return true;
    too_many = all.size() >= kMaxOrdered;
    if (!too_many) all.push_back(tuples.of(job));
    return !too_many;
  });
  if (too_many)
    return refuse(
        ctx, from,
        {ErrorCode::limit_exceeded,
         fmt::format("more than {} jobs wait: name users, partitions or jobs", kMaxOrdered)});
  std::sort(all.begin(), all.end(), comes_first);
  const std::uint32_t limit = m.limit == 0 ? kMaxTuples : std::min(m.limit, kMaxTuples);
  proto::PriorityTuplesReply reply;
  reply.now = ctx.now;
  for (std::uint32_t i = m.after; i < all.size(); ++i) {
    if (reply.rows.size() == limit) {
      reply.more = true;
      break;
    }
    all[i].row.place = i + 1;
    reply.rows.push_back(std::move(all[i].row));
  }
  ctx.reply(from, std::move(reply));
}

}  // namespace gantry::core
