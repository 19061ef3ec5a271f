// ListBudgets, and increases of a budget or of quota: a tenant's admin asks for one, a platform
// admin decides it, and it ends when its time is over.
#include <algorithm>

#include <fmt/core.h>

#include "common/proto/budget.h"
#include "common/text/text.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_budget.h"
#include "ctld/core/handler.h"
#include "ctld/core/money/budget_gate.h"
#include "ctld/core/money/budgets.h"
#include "ctld/core/money/memory.h"
#include "ctld/core/money/subject.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/tenant_submit.h"
#include "ctld/core/tenancy/tenants.h"

namespace gantry::core {
namespace {

using proto::Increase;
using proto::IncreaseState;

constexpr std::size_t kMostReasonBytes = 1024;
constexpr std::size_t kMostAsked = 100;  // open requests of one tenant
constexpr std::int64_t kMostQuota = std::int64_t{1} << 60;

bool may_ask(const State& state, const Identity& who, const std::string& tenant) {
  return has_right(state, who, tenant, TenantRight::ask_increase);
}
bool may_see(const State& state, const Identity& who, const std::string& tenant) {
  return sees_all(state, who) || has_right(state, who, tenant, TenantRight::see);
}

proto::BudgetRow row_of(const Context& ctx, const BudgetAccount& account,
                        const BudgetStand& stand) {
  proto::BudgetRow row;
  row.budget = account.budget;
  row.period = stand.span.name;
  row.from = stand.span.from;
  row.to = stand.span.to;
  row.amount = amount_of(account);
  row.increase = account.increase;
  row.spent = stand.spent;
  row.reserved = stand.reserved;
  row.forecast = stand.forecast;
  row.little_history = stand.little_history;
  if (const auto it = ctx.rt.money->gated.find(account.budget.name);
      it != ctx.rt.money->gated.end())
    row.waiting = it->second.size();
  for (const auto& [period, spent] : account.book->spent)
    if (period != stand.span.name) row.earlier.push_back({period, spent});
  return row;
}

bool named(const std::vector<std::string>& names, const tenancy::Budget& b) {
  return names.empty() || std::find(names.begin(), names.end(), b.name) != names.end() ||
         std::find(names.begin(), names.end(), b.tenant) != names.end();
}

// An error if a request for more of a budget is wrong.
Result<void> check_money(const State& state, const Increase& i) {
  const auto it = state.budgets.accounts.find(i.budget);
  if (it == state.budgets.accounts.end() || it->second.budget.tenant != i.tenant)
    return fail(ErrorCode::not_found,
                fmt::format("there is no budget {} of tenant {}", i.budget, i.tenant));
  if (*i.amount <= Money{} || *i.amount > tenancy::kMostBudget)
    return fail(ErrorCode::invalid_argument,
                fmt::format("more by {} is no increase; use 0.01 to {}", format_money(*i.amount),
                            format_money(tenancy::kMostBudget)));
  return {};
}

tenancy::QuotaLine* line_of(std::vector<tenancy::QuotaLine>& quota, const Increase& i) {
  for (tenancy::QuotaLine& line : quota)
    if (line.resource == i.resource && line.flavor == i.flavor) return &line;
  return nullptr;
}

Result<void> check_quota(const State& state, const Increase& i) {
  const auto it = state.tenancy.documents.find({tenancy::Tenant::kKind, i.tenant});
  auto quota = std::get<tenancy::Tenant>(it->second).quota;
  if (line_of(quota, i) == nullptr)
    return fail(ErrorCode::not_found,
                fmt::format("tenant {} has no quota of its own for {}{}: there is nothing to raise",
                            i.tenant, enum_name(i.resource),
                            i.flavor.empty() ? "" : " of flavor " + i.flavor));
  if (*i.quota <= 0 || *i.quota > kMostQuota)
    return fail(ErrorCode::invalid_argument, "an increase of quota is above 0");
  return {};
}

Result<void> check_asked(const Context& ctx, const Identity& who, const Increase& i) {
  const State& state = ctx.state;
  if (!state.tenancy.has_tenant(i.tenant) || !may_see(state, who, i.tenant))
    return fail(ErrorCode::not_found, fmt::format("there is no tenant {}", i.tenant));
  if (!may_ask(state, who, i.tenant))
    return fail(ErrorCode::permission_denied,
                fmt::format("{} is no admin of tenant {}", who.owner.user, i.tenant));
  if (i.amount.has_value() == i.quota.has_value())
    return fail(ErrorCode::invalid_argument, "ask for more of a budget, or of quota: one of them");
  if (i.reason.size() > kMostReasonBytes)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the reason has {} bytes; at most {} are allowed", i.reason.size(),
                            kMostReasonBytes));
  if (i.until && *i.until <= ctx.now)
    return fail(ErrorCode::invalid_argument,
                fmt::format("until {} is in the past", format_time(*i.until)));
  const auto asked = std::count_if(
      state.budgets.increases.begin(), state.budgets.increases.end(), [&](const auto& entry) {
        return entry.second.tenant == i.tenant && entry.second.state == IncreaseState::asked;
      });
  if (asked >= static_cast<std::ptrdiff_t>(kMostAsked))
    return fail(ErrorCode::limit_exceeded,
                fmt::format("{} requests of tenant {} are open already", asked, i.tenant));
  return i.amount ? check_money(state, i) : check_quota(state, i);
}

Result<void> check_decision(const Context& ctx, const Identity& who, const Increase& i,
                            IncreaseState to) {
  const bool own = to == IncreaseState::withdrawn;
  if (own ? !may_ask(ctx.state, who, i.tenant) : !is_admin(who))
    return fail(ErrorCode::permission_denied,
                fmt::format("{} is no administrator of {}", who.owner.user,
                            own ? "tenant " + i.tenant : "this cluster"));
  const bool fits = to == IncreaseState::expired ? i.state == IncreaseState::approved
                                                 : i.state == IncreaseState::asked;
  if (!fits || to == IncreaseState::asked)
    return fail(ErrorCode::wrong_state,
                fmt::format("request {} is {}", i.number, enum_name(i.state)));
  if (to != IncreaseState::approved) return {};
  if (i.until && *i.until <= ctx.now)
    return fail(ErrorCode::wrong_state, fmt::format("request {} was until {}, which is over",
                                                    i.number, format_time(*i.until)));
  return i.amount ? check_money(ctx.state, i) : check_quota(ctx.state, i);
}

void reply_with(Context& ctx, const ClientRequest& from, const Increase& increase) {
  ctx.reply(from, proto::IncreaseReply{{increase}, ctx.state.ledger.prices.currency});
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::ListBudgets&& m) {
  proto::BudgetList reply;
  reply.currency = ctx.state.ledger.prices.currency;
  reply.now = ctx.now;
  const bool everything = sees_all(ctx.state, from.who);
  for (const auto& [name, stand] : stands_of(ctx.state, ctx.now)) {
    const BudgetAccount& account = ctx.state.budgets.accounts.at(name);
    const tenancy::Budget& b = account.budget;
    const bool sees = everything || b.user == from.who.owner.user ||
                      (!from.who.inside && may_see(ctx.state, from.who, b.tenant));
    if (sees && named(m.names, b)) reply.rows.push_back(row_of(ctx, account, stand));
  }
  std::sort(reply.rows.begin(), reply.rows.end(), [](const auto& a, const auto& b) {
    return std::tie(a.budget.tenant, a.budget.project, a.budget.user, a.budget.name) <
           std::tie(b.budget.tenant, b.budget.project, b.budget.user, b.budget.name);
  });
  ctx.reply(from, std::move(reply));
}

static void handle(Context& ctx, const ClientRequest& from, proto::AskIncrease&& m) {
  Increase increase = std::move(m.wanted);
  if (auto r = check_asked(ctx, from.who, increase); !r) return refuse(ctx, from, r.error());
  increase.number = ctx.state.budgets.last_increase + 1;
  increase.state = IncreaseState::asked;
  increase.asked_by = from.who.owner.user;
  increase.asked_at = ctx.now;
  increase.decided_by.clear();
  increase.decided_at = {};
  increase.note.clear();
  ctx.note(fmt::format("increase {} is asked for by {} of tenant {}", increase.number,
                       increase.asked_by, increase.tenant));
  ctx.record(event::IncreaseSet{increase});
  reply_with(ctx, from, increase);
}

static void handle(Context& ctx, const ClientRequest& from, proto::DecideIncrease&& m) {
  const auto it = ctx.state.budgets.increases.find(m.number);
  const bool known =
      it != ctx.state.budgets.increases.end() && may_see(ctx.state, from.who, it->second.tenant);
  if (!known)
    return refuse(ctx, from,
                  {ErrorCode::not_found, fmt::format("there is no request {}", m.number)});
  Increase increase = it->second;
  if (auto r = check_decision(ctx, from.who, increase, m.state); !r)
    return refuse(ctx, from, r.error());
  if (m.note.size() > kMostReasonBytes)
    return refuse(
        ctx, from,
        {ErrorCode::limit_exceeded, fmt::format("the note has {} bytes; at most {} are allowed",
                                                m.note.size(), kMostReasonBytes)});
  increase.state = m.state;
  increase.decided_by = from.who.owner.user;
  increase.decided_at = ctx.now;
  increase.note = std::move(m.note);
  ctx.note(fmt::format("increase {} of tenant {} is {} by {}", increase.number, increase.tenant,
                       enum_name(increase.state), increase.decided_by));
  ctx.record(event::IncreaseSet{increase});
  if (increase.quota) compile_tenancy(ctx);
  look_at_budgets(ctx);
  reply_with(ctx, from, increase);
}

static void handle(Context& ctx, const ClientRequest& from, proto::ListIncreases&& m) {
  proto::IncreaseReply reply;
  reply.currency = ctx.state.ledger.prices.currency;
  for (const auto& [number, i] : ctx.state.budgets.increases) {
    const bool open = i.state == IncreaseState::asked || i.state == IncreaseState::approved;
    if (!m.all && !open) continue;
    if (!m.tenants.empty() &&
        std::find(m.tenants.begin(), m.tenants.end(), i.tenant) == m.tenants.end())
      continue;
    if (may_see(ctx.state, from.who, i.tenant)) reply.rows.push_back(i);
  }
  ctx.reply(from, std::move(reply));
}

const Subject kBudgetMessages{.name = "budget",
                              .handlers = kHandlers<proto::ListBudgets, proto::AskIncrease,
                                                    proto::DecideIncrease, proto::ListIncreases>};

}  // namespace gantry::core
