// Shows what tenants use of their quota, and where projects and users stand in the fair share. Read
// only; each asker sees what the asker's grants allow. handle_priority.cc shows the order of
// waiting jobs.
#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "common/proto/tenancy_view.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/memory.h"
#include "ctld/core/tenancy/share_lines.h"
#include "ctld/core/tenancy/subject.h"
#include "ctld/core/tenancy/tenants.h"

namespace gantry::core {
namespace {

constexpr std::size_t kPageShares =
    2000;  // rows in one ShareTreeReply; its last tenant may exceed it

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
    // Quota that tenants borrow comes from those that use less than they may lend.
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
  const sched::QuotaTree& quota = *ctx.rt.tenancy->quota;
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

// Sums of the weights below each quota node, by its index; the roots are under kNoIndex.
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
  row.borrows = ctx.rt.tenancy->quota->share_value(tenant->quota_node, {});
  const double weights = below.at(nodes[tenant->quota_node].parent);
  row.share = weights > 0 ? row.shares / weights : 0;
  row.queued = state.tenant_counts(row.tenant).queued;
  return row;
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::TenantUsage&& m) {
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

static void handle(Context& ctx, const ClientRequest& from, proto::ShareTree&& m) {
  proto::ShareTreeReply reply;
  reply.half_life = ctx.state.tenancy.half_life;
  reply.now = ctx.now;
  const Sight sight(ctx.state, from.who);
  const ShareLines lines(ctx);
  const auto below = weights_below(ctx);
  const std::set<std::string> asked(m.tenants.begin(), m.tenants.end());
  const auto add = [&](const ShareLine& line) {
    reply.rows.push_back(tenant_row(ctx, line, below));
    proto::ShareRow base;
    base.tenant = line.node->name;
    add_shares(lines, lines.children_of(line.node->id), 1, base, reply.rows);
  };
  std::vector<ShareLine> tenants = lines.children_of(std::nullopt);
  std::erase_if(tenants, [&](const ShareLine& line) {
    return !sight.tenant(line.node->name) || (!asked.empty() && !asked.contains(line.node->name));
  });
  if (!m.from) {
    for (const ShareLine& line : tenants) add(line);
    return ctx.reply(from, std::move(reply));
  }
  proto::SharePage& page = reply.page.emplace();
  std::vector<std::pair<sched::ShareId, std::uint32_t>>
      by_id;  // each with its place among all tenants
  for (const ShareLine& line : tenants)
    if (line.node->id.value() >= *m.from)
      by_id.emplace_back(line.node->id, static_cast<std::uint32_t>(&line - tenants.data()));
  std::sort(by_id.begin(), by_id.end());
  for (const auto& [id, place] : by_id) {
    if (reply.rows.size() >= kPageShares) {
      page.next = id.value();
      break;
    }
    add(tenants[place]);
    page.places.push_back(place);
  }
  ctx.reply(from, std::move(reply));
}

const Subject kTenantViewMessages{.name = "tenant view",
                                  .handlers = kHandlers<proto::TenantUsage, proto::ShareTree>};

}  // namespace gantry::core
