// What tenants use of their quota, where projects and users stand in the fair share, and what
// orders the waiting jobs. Read only; everybody sees what their grants and jobs allow.
#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "ctld/core/authorise.h"
#include "ctld/core/eligible.h"
#include "ctld/core/handlers.h"
#include "ctld/core/multifactor.h"
#include "ctld/core/rows.h"
#include "ctld/core/select.h"
#include "ctld/core/sight.h"
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
  for (const ResourceRow& r : kResourceTable) row.used.row(r.id) = quota.usage(n, 0, r.id);
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
  double shares = 1;
  double usage = 0;
  double rate = 0;
};

// The tree with what each node of it has; made once for a request.
class ShareLines {
 public:
  explicit ShareLines(const Context& ctx) : ctx_(ctx), children_(ctx.state.tenancy.shares.size()) {
    for (const ShareNode& node : ctx.state.tenancy.shares)
      (node.parent ? children_[node.parent->value()] : tops_).push_back(node.id);
  }

  [[nodiscard]] ShareLine line(sched::ShareId id) const {
    const ShareNode& node = ctx_.state.tenancy.shares[id.value()];
    return {&node, shares_of(node),
            sched::amount_at(node.usage, ctx_.now, ctx_.state.tenancy.half_life), node.usage.rate};
  }

  // Children of `parent`, those served first coming first (shares over usage).
  [[nodiscard]] std::vector<ShareLine> children_of(std::optional<sched::ShareId> parent) const {
    std::vector<ShareLine> out;
    for (const sched::ShareId id : parent ? children_[parent->value()] : tops_)
      out.push_back(line(id));
    std::stable_sort(out.begin(), out.end(), [](const ShareLine& a, const ShareLine& b) {
      // a.shares / a.usage > b.shares / b.usage, without dividing by nothing; no shares come last.
      const bool none_a = a.shares == 0, none_b = b.shares == 0;
      if (none_a != none_b) return none_b;
      return a.shares * b.usage > b.shares * a.usage;
    });
    return out;
  }

 private:
  using OfProject = std::pair<double, std::map<std::string_view, double>>;  // its own, its users'

  [[nodiscard]] double shares_of(const ShareNode& node) const {
    if (!node.parent) return 1;  // between tenants their share of quota decides, not this
    const auto& shares = ctx_.state.tenancy.shares;
    const ShareNode& parent = shares[node.parent->value()];
    const bool project = !parent.parent;
    const auto& projects = projects_of(project ? parent.name : shares[parent.parent->value()].name);
    const auto it = projects.find(project ? node.name : parent.name);
    if (it == projects.end()) return 1;
    if (project) return it->second.first;
    const auto user = it->second.second.find(node.name);
    return user == it->second.second.end() ? 1 : user->second;
  }

  const std::map<std::string_view, OfProject>& projects_of(const std::string& tenant) const {
    const auto [it, made] = projects_.try_emplace(tenant);
    const CompiledTenant* compiled = made ? ctx_.state.tenancy.tenant(tenant) : nullptr;
    if (compiled == nullptr) return it->second;
    for (const tenancy::Project& p : compiled->effective.projects) {
      OfProject& entry = it->second[p.name];
      entry.first = p.shares;
      for (const tenancy::UserShare& user : p.users) entry.second[user.user] = user.shares;
    }
    return it->second;
  }

  const Context& ctx_;
  std::vector<std::vector<sched::ShareId>> children_;
  std::vector<sched::ShareId> tops_;
  mutable std::map<std::string, std::map<std::string_view, OfProject>> projects_;
};

void add_shares(const ShareLines& lines, const std::vector<ShareLine>& siblings, std::size_t depth,
                const proto::ShareRow& base, std::vector<proto::ShareRow>& out) {
  double shares = 0, usage = 0;
  for (const ShareLine& line : siblings) {
    shares += line.shares;
    usage += line.usage;
  }
  std::uint32_t place = 0;
  for (const ShareLine& line : siblings) {
    proto::ShareRow row = base;
    (depth == 1 ? row.project : row.user) = line.node->name;
    row.shares = static_cast<std::uint32_t>(line.shares);
    row.share = shares > 0 ? line.shares / shares : 0;
    row.usage = line.usage;
    row.rate = line.rate;
    row.part = usage > 0 ? line.usage / usage : 0;
    if (row.part > 0) row.level = row.share / row.part;
    row.place = ++place;
    row.running = line.node->running;
    out.push_back(row);
    if (depth == 1) add_shares(lines, lines.children_of(line.node->id), 2, row, out);
  }
}

// Sums of weights below each quota node, by its index; the roots are under kNoIndex.
std::map<std::uint32_t, double> weights_below(const Context& ctx) {
  std::map<std::uint32_t, double> out;
  for (const sched::QuotaNode& n : ctx.state.tenancy.compiled.view->nodes)
    out[n.parent] += n.weight;
  return out;
}

proto::ShareRow tenant_row(const Context& ctx, const ShareLine& line,
                           const std::map<std::uint32_t, double>& below) {
  const State& state = ctx.state;
  proto::ShareRow row;
  row.tenant = line.node->name;
  row.usage = line.usage;
  row.rate = line.rate;
  row.running = line.node->running;
  const CompiledTenant* tenant = state.tenancy.tenant(row.tenant);
  if (tenant == nullptr) return row;
  const auto& nodes = state.tenancy.compiled.view->nodes;
  row.shares = nodes[tenant->quota_node].weight;
  row.borrows = ctx.rt.quota->share_value(tenant->quota_node, {});
  const double weights = below.at(nodes[tenant->quota_node].parent);
  row.share = weights > 0 ? row.shares / weights : 0;
  row.queued = state.tenant_counts(row.tenant).queued;
  return row;
}

// ---- the order of waiting jobs

struct Tuple {
  proto::PriorityRow row;
  const Job* job = nullptr;
};

class Tuples {
 public:
  explicit Tuples(const Context& ctx) : ctx_(ctx), lines_(ctx) {}

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
    const sched::ClassKey& key = class_of(ctx_.state, job);
    need.amount = asked_of_quota(key.shape, ctx_.state.partition(key.partition));
    row.borrow_levels = ctx_.rt.quota->fit(node, need).levels;
    const auto& nodes = ctx_.state.tenancy.compiled.view->nodes;
    for (std::uint32_t n = node; nodes[n].parent != sched::kNoIndex; n = nodes[n].parent)
      row.share_values.insert(row.share_values.begin(), ctx_.rt.quota->share_value(n, need));
  }
  std::optional<double> level(sched::ShareId id) {
    const auto [it, made] = levels_.try_emplace(id);
    if (!made) return it->second;
    const ShareLine line = lines_.line(id);  // shares over usage; nothing when nothing was used
    if (line.usage > 0) it->second = line.shares / line.usage;
    return it->second;
  }

  const Context& ctx_;
  ShareLines lines_;
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
  const Sight sight(ctx.state, from.who);
  std::set<std::string> asked(m.names.begin(), m.names.end());
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].tenant ? !sight.tenant(nodes[n].name)
                        : !sight.everything() || nodes[n].name == kClusterCohort)
      continue;
    if (!m.names.empty() && asked.erase(nodes[n].name) == 0) continue;
    reply.rows.push_back(use_of(ctx, n));
  }
  if (!asked.empty())
    return refuse(
        ctx, from,
        {ErrorCode::not_found, fmt::format("there is no tenant or cohort {}", *asked.begin())});
  ctx.reply(from, std::move(reply));
}

void handle(Context& ctx, const ClientRequest& from, proto::ShareTree&& m) {
  proto::ShareTreeReply reply;
  reply.half_life = ctx.state.tenancy.half_life;
  reply.now = ctx.now;
  const Sight sight(ctx.state, from.who);
  const ShareLines lines(ctx);
  const auto below = weights_below(ctx);
  const std::set<std::string> asked(m.tenants.begin(), m.tenants.end());
  for (const ShareLine& line : lines.children_of(std::nullopt)) {
    const std::string& name = line.node->name;
    if (!sight.tenant(name) || (!asked.empty() && !asked.contains(name))) continue;
    proto::ShareRow row = tenant_row(ctx, line, below);
    reply.rows.push_back(row);
    proto::ShareRow base;
    base.tenant = row.tenant;
    add_shares(lines, lines.children_of(line.node->id), 1, base, reply.rows);
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
