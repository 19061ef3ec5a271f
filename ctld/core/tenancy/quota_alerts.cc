#include "ctld/core/tenancy/quota_alerts.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/proto/tenant_events.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/handler.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/memory.h"
#include "ctld/core/tenancy/subject.h"
#include "ctld/core/tenancy/tenant_submit.h"

namespace gantry::core {
namespace {

constexpr std::array<std::uint32_t, 3> kThresholds{70, 85, 100};  // percent of nominal
constexpr std::int64_t kBelow = 5;                                // percentage points
constexpr Duration kQuiet = minutes(10);
constexpr std::uint32_t kMostEvents = 1000;  // events in one reply

struct Stand {
  std::int64_t used = 0, nominal = 0;
  [[nodiscard]] bool reaches(std::int64_t percent) const {
    return static_cast<double>(used) * 100 >=
           static_cast<double>(nominal) * static_cast<double>(percent);
  }
};

// nullopt if the tenant owns nothing, or has no limit.
std::optional<Stand> stand_of(const Context& ctx, std::uint32_t node, std::uint32_t flavor,
                              Resource r) {
  const sched::QuotaTree& quota = *ctx.rt.tenancy->quota;
  const Stand stand{quota.usage(node, flavor, r), quota.subtree(node, flavor, r)};
  if (stand.nominal == sched::kUnlimited || stand.nominal <= 0) return std::nullopt;
  return stand;
}

std::size_t level_of(const Stand& stand) {
  std::size_t level = 0;
  while (level < kThresholds.size() && stand.reaches(kThresholds[level])) ++level;
  return level;
}

void alert(Context& ctx, std::uint32_t node, std::uint32_t flavor, Resource r, const Stand& stand,
           std::uint32_t percent) {
  const sched::Tenancy& view = ctx.rt.tenancy->quota->tenancy();
  proto::QuotaAlert a;
  a.number = ctx.state.tenancy.last_alert + 1;
  a.at = ctx.now;
  a.tenant = view.nodes[node].name;
  a.flavor = view.flavors[flavor].name;
  a.resource = r;
  a.percent = percent;
  a.used = stand.used;
  a.nominal = stand.nominal;
  // The form of this line is stable, because other programs read it.
  ctx.note(fmt::format("quota_filled tenant={} resource={} flavor={} percent={} used={} nominal={}",
                       a.tenant, kResourceTable[static_cast<std::size_t>(r)].name,
                       a.flavor.empty() ? "all" : a.flavor, percent, a.used, a.nominal));
  ctx.record(event::QuotaFilled{std::move(a)});
}

void look(Context& ctx, std::uint32_t node, std::uint32_t flavor) {
  for (const ResourceRow& row : kResourceTable) {
    const auto stand = stand_of(ctx, node, flavor, row.id);
    if (!stand) continue;
    const std::size_t level = level_of(*stand);
    const auto key = std::tuple{node, flavor, row.id};
    auto it = ctx.rt.tenancy->quota_levels.find(key);
    if (level == 0 && it == ctx.rt.tenancy->quota_levels.end()) continue;
    if (it == ctx.rt.tenancy->quota_levels.end())
      it = ctx.rt.tenancy->quota_levels.emplace(key, QuotaLevel{}).first;
    QuotaLevel& known = it->second;
    while (known.level > level &&
           !stand->reaches(std::int64_t{kThresholds[known.level - 1]} - kBelow))
      --known.level;
    if (level <= known.level) continue;
    known.level = level;
    if (known.told_level >= level && known.told + kQuiet > ctx.now) continue;
    known.told = ctx.now;
    known.told_level = level;
    alert(ctx, node, flavor, row.id, *stand, kThresholds[level - 1]);
  }
}

}  // namespace

void quota_taken(Context& ctx, std::uint32_t quota_node, std::uint32_t flavor) {
  look(ctx, quota_node, 0);
  if (flavor != 0) look(ctx, quota_node, flavor);
}

void quota_given_back(Context& ctx, std::uint32_t quota_node, std::uint32_t flavor) {
  if (ctx.rt.tenancy->quota_levels.empty()) return;
  quota_taken(ctx, quota_node, flavor);  // use has fallen, so this only lowers levels
}

void quota_reckoned(Context& ctx) {
  ctx.rt.tenancy->quota_levels.clear();
  const sched::Tenancy& view = ctx.rt.tenancy->quota->tenancy();
  for (std::uint32_t n = 0; n < view.nodes.size(); ++n) {
    if (!view.nodes[n].tenant) continue;
    for (std::uint32_t f = 0; f < view.flavors.size(); ++f)
      for (const ResourceRow& row : kResourceTable)
        if (const auto stand = stand_of(ctx, n, f, row.id); stand && level_of(*stand) > 0)
          ctx.rt.tenancy->quota_levels[{n, f, row.id}] = {level_of(*stand), 0, {}};
  }
}

static void handle(Context& ctx, const ClientRequest& from, proto::TenantEvents&& m) {
  proto::TenantEventsReply reply;
  reply.now = ctx.now;
  for (const std::string& name : m.names)
    if (!ctx.state.tenancy.has_tenant(name))
      return refuse(ctx, from, {ErrorCode::not_found, fmt::format("there is no tenant {}", name)});
  const std::size_t limit = m.limit == 0 ? kMostEvents : std::min(m.limit, kMostEvents);
  const auto& alerts = ctx.state.tenancy.alerts;
  for (auto it = alerts.rbegin(); it != alerts.rend() && reply.events.size() < limit; ++it) {
    if (it->number <= m.after) break;
    const bool named =
        m.names.empty() || std::find(m.names.begin(), m.names.end(), it->tenant) != m.names.end();
    if (named && (sees_all(ctx.state, from.who) ||
                  has_right(ctx.state, from.who, it->tenant, TenantRight::see)))
      reply.events.push_back(*it);
  }
  std::reverse(reply.events.begin(), reply.events.end());
  ctx.reply(from, std::move(reply));
}

const Subject kQuotaAlertsMessages{.name = "quota alerts",
                                   .handlers = kHandlers<proto::TenantEvents>};

}  // namespace gantry::core
