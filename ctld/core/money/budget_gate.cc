#include "ctld/core/money/budget_gate.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/proto/budget.h"
#include "common/proto/job_text.h"
#include "common/proto/tenant_events.h"
#include "common/text/text.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_budget.h"
#include "ctld/core/money/budgets.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/money/memory.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/tenants.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

using tenancy::BudgetAction;

constexpr std::size_t kMostNeeds = 4096;   // job classes whose cost is remembered
constexpr std::size_t kMostOpened = 4096;  // jobs released in one look
constexpr Duration kLookAgain =
    hours(1);  // how often to look while something runs, because prices may change
constexpr Duration kLookPause = seconds(5);  // least time between looks because of starts
constexpr Money kNoLimit{INT64_MAX};         // cost of a job without a time limit

bool holds(const BudgetAccount& account) {
  return account.budget.at_limit == BudgetAction::hold ||
         account.budget.at_limit == BudgetAction::stop;
}

// The cost if the job starts now with these grants and runs to its limit.
Money need_of(const Context& ctx, const Job& job, const std::vector<sched::NodeGrant>& grants,
              bool exclusive) {
  const Holding holding = holding_of(ctx.state, grants, exclusive);
  Bill bill;
  bill.plan = plan_of(ctx.state, job, ctx.now);
  bill.since = ctx.now;
  for (const BillItem& item : holding.items) bill.lines.emplace_back().what = item;
  for (const auto& held : holding.held)
    for (const HeldPart& part : held) bill.lines[part.line].amount += part.amount;
  return most_of(ctx.state, job, bill, ctx.now, Duration{}).value_or(kNoLimit);
}

void close_gate(Context& ctx, const Job& job, const BudgetAccount& account, Money need) {
  drop_gate(ctx, job.id);
  ctx.rt.money->claims.erase(job.id);
  ctx.rt.money->gates[job.id] = {account.budget.name, need, job.cls, job.account};
  ctx.rt.money->gated[account.budget.name].emplace(need, job.id);
}

void remember(Context& ctx, const Job& job, Money need) {
  if (ctx.rt.money->needs.size() >= kMostNeeds) ctx.rt.money->needs.clear();
  ctx.rt.money->needs.insert_or_assign(job.cls, BudgetNeed{class_of(ctx.state, job), need});
}

// The least that the job needs, before any plan has looked for nodes. A job that no budget lets
// start anywhere must not block resources.
std::optional<Money> known_need(const Context& ctx, const Job& job,
                                const std::vector<const BudgetAccount*>& budgets) {
  const auto known = ctx.rt.money->needs.find(job.cls);
  if (known != ctx.rt.money->needs.end() && known->second.key == class_of(ctx.state, job))
    return known->second.need;
  Money left = kNoLimit;
  for (const BudgetAccount* account : budgets)
    if (holds(*account)) left = std::min(left, left_of(*account, ctx.now));
  return least_cost(ctx, job, left);
}

// Makes other jobs of the class wait too, because the scheduler would only offer them one by one in
// vain.
void close_others(Context& ctx, const Job& job, const BudgetAccount& account, Money need) {
  const auto user = ctx.state.users.find(job.uid);
  if (user == ctx.state.users.end()) return;
  const std::vector<JobId> all = user->second.jobs.ids();
  for (const JobId id : all) {
    const Job* other = ctx.state.jobs.find(id);
    if (other == nullptr || other->cls != job.cls || other->account != job.account) continue;
    if (other->phase != Phase::queued || ctx.rt.plan->marks.at(id).told.startable == 0) continue;
    close_gate(ctx, *other, account, need);
    sync_queue(ctx, *other);
  }
}

// The cost of jobs for which others are being preempted. They start soon, and then reserve it.
Money claimed_of(const Context& ctx, const BudgetAccount& account) {
  Money sum;
  for (const auto& [id, claim] : ctx.rt.money->claims) {
    const Job* job = ctx.state.jobs.find(id);
    if (job == nullptr || claim.jobs == 0) continue;
    const auto budgets = budgets_of(ctx.state, *job);
    if (std::find(budgets.begin(), budgets.end(), &account) == budgets.end()) continue;
    const __int128 all = static_cast<__int128>(claim.need.micros) * claim.jobs + sum.micros;
    sum = Money{static_cast<std::int64_t>(std::min<__int128>(all, tenancy::kMostBudget.micros))};
  }
  return sum;
}

std::optional<std::uint32_t> lower_class(const Context& ctx, const Job& job,
                                         const BudgetAccount& account) {
  const auto& classes = ctx.state.tenancy.compiled.classes;
  const std::uint32_t own = class_of(ctx.state, job).priority_class;
  for (std::uint32_t i = 0; i < classes.size(); ++i)
    if (classes[i].name == account.budget.lower_to && classes[i].value < classes.at(own).value)
      return i;
  return std::nullopt;
}

std::string money(const Context& ctx, Money amount) {
  return format_money(amount, 2) + " " + ctx.state.ledger.prices.currency;
}

}  // namespace

bool refused_by_budget(Context& ctx, JobId id, const std::vector<sched::NodeGrant>& grants,
                       bool exclusive, BudgetSums* beside) {
  const Job& job = ctx.state.jobs.at(id);
  const auto budgets = budgets_of(std::as_const(ctx.state), job);
  if (budgets.empty()) return false;
  std::optional<Money> need;
  const BudgetAccount* lowering = nullptr;
  for (const BudgetAccount* account : budgets) {
    if (account->budget.at_limit == BudgetAction::warn) continue;
    if (!need) need = need_of(ctx, job, grants, exclusive);
    Money all = *need;
    if (beside != nullptr) {
      Money& sum = (*beside)[account->budget.name];
      all = sum > kNoLimit - all ? kNoLimit : all + sum;
      sum = all;
    }
    if (all <= left_of(*account, ctx.now)) continue;
    if (!holds(*account)) {
      lowering = account;
      continue;
    }
    const bool fresh = !ctx.rt.money->needs.contains(job.cls);
    remember(ctx, job, all);
    close_gate(ctx, job, *account, all);
    sync_queue(ctx, ctx.state.jobs.at(id));
    if (fresh) close_others(ctx, job, *account, all);
    ctx.turn.schedule = true;
    return true;
  }
  if (lowering == nullptr) return false;
  const auto lower = lower_class(ctx, job, *lowering);
  if (!lower) return false;
  ctx.note(fmt::format("job {} is lowered to {}: budget {} has {} left", display_id(ctx.state, job),
                       lowering->budget.lower_to, lowering->budget.name,
                       money(ctx, left_of(*lowering, ctx.now))));
  ctx.record(event::JobLowered{id, *lower, true});
  ctx.turn.schedule = true;
  return true;
}

bool claim_refused_by_budget(Context& ctx, JobId id, NodeId node, bool first) {
  if (ctx.rt.money->gates.contains(id))
    return true;  // an earlier decision of this plan made the job wait
  const Job& job = ctx.state.jobs.at(id);
  const auto budgets = budgets_of(std::as_const(ctx.state), job);
  if (std::none_of(budgets.begin(), budgets.end(), [](const auto* b) { return holds(*b); }))
    return false;
  BudgetClaim& claim = ctx.rt.money->claims[id];
  if (!first && claim.jobs > 0) return false;
  if (!job.is_array()) claim.jobs = 0;  // a new record replaces the old one
  Bill bill = bill_on_nodes_like(ctx, job, node);
  bill.since = ctx.now;
  claim.need = most_of(ctx.state, job, bill, ctx.now, Duration{}).value_or(kNoLimit);
  for (const BudgetAccount* account : budgets) {
    if (!holds(*account)) continue;
    if (claim.need <= left_of(*account, ctx.now) - claimed_of(ctx, *account)) continue;
    if (claim.jobs > 0)
      return true;  // the tasks for which others were preempted are about to start
    close_gate(ctx, job, *account, Money{claim.need});
    sync_queue(ctx, ctx.state.jobs.at(id));
    ctx.turn.schedule = true;
    return true;
  }
  claim.jobs =
      std::min<std::uint32_t>(claim.jobs + 1, job.is_array() ? job.tasks->pending.count() : 1);
  return false;
}

void drop_claim(Context& ctx, JobId job, bool one_task) {
  const auto it = ctx.rt.money->claims.find(job);
  if (it == ctx.rt.money->claims.end()) return;
  if (one_task && it->second.jobs > 1) {
    --it->second.jobs;
    return;
  }
  ctx.rt.money->claims.erase(it);
  // Other jobs may have been refused because money was kept for this one.
  for (const BudgetAccount* account : budgets_of(std::as_const(ctx.state), ctx.state.jobs.at(job)))
    ctx.touched.budgets.push_back(account->budget.name);
}

void budget_taken(Context& ctx, const Job& job) {
  if (ctx.state.budgets.accounts.empty() || budgets_of(std::as_const(ctx.state), job).empty())
    return;
  const Instant soon = std::max(ctx.now, ctx.rt.money->budgets_seen + kLookPause);
  ctx.rt.money->budgets_due = std::min(ctx.rt.money->budgets_due.value_or(soon), soon);
}

void drop_gate(Context& ctx, JobId job) {
  const auto it = ctx.rt.money->gates.find(job);
  if (it == ctx.rt.money->gates.end()) return;
  const auto all = ctx.rt.money->gated.find(it->second.budget);
  all->second.erase({it->second.need, job});
  if (all->second.empty()) ctx.rt.money->gated.erase(all);
  ctx.rt.money->gates.erase(it);
}

bool gated(Context& ctx, const Job& job) {
  if (ctx.rt.money->gates.empty() && ctx.state.budgets.accounts.empty()) return false;
  const auto it = ctx.rt.money->gates.find(job.id);
  if (it != ctx.rt.money->gates.end()) {
    const BudgetGate& gate = it->second;
    if (gate.cls == job.cls && gate.account == job.account &&
        ctx.state.budgets.accounts.contains(gate.budget))
      return true;
    drop_gate(ctx, job.id);
  }
  if (ctx.rt.plan->marks.at(job.id).told.startable != 0) return false;
  std::optional<Money> need;
  const auto budgets = budgets_of(std::as_const(ctx.state), job);
  for (const BudgetAccount* account : budgets) {
    if (!holds(*account)) continue;
    if (!need) need = known_need(ctx, job, budgets);
    if (!need) return false;
    if (*need <= left_of(*account, ctx.now)) continue;
    close_gate(ctx, job, *account, *need);
    return true;
  }
  return false;
}

std::optional<Verdict> verdict_of_budget(const Context& ctx, const Job& job) {
  const auto it = ctx.rt.money->gates.find(job.id);
  if (it == ctx.rt.money->gates.end()) return std::nullopt;
  const auto account = ctx.state.budgets.accounts.find(it->second.budget);
  if (account == ctx.state.budgets.accounts.end()) return std::nullopt;
  return Verdict{Reason::budget, it->second.need.micros,
                 std::max(Money{}, left_of(account->second, ctx.now)).micros, it->second.budget};
}

bool open_gates(Context& ctx) {
  std::vector<std::string> moved;
  moved.swap(ctx.touched.budgets);
  if (moved.empty() || ctx.rt.money->gated.empty()) return false;
  std::sort(moved.begin(), moved.end());
  moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
  bool some = false;
  for (const std::string& name : moved) {
    const auto all = ctx.rt.money->gated.find(name);
    if (all == ctx.rt.money->gated.end()) continue;
    const auto account = ctx.state.budgets.accounts.find(name);
    const Money left =
        account == ctx.state.budgets.accounts.end() ? kNoLimit : left_of(account->second, ctx.now);
    std::vector<std::pair<JobId, Money>> fitting;  // the oldest first
    for (const auto& [need, job] : all->second) {
      if (need > left || fitting.size() >= kMostOpened) break;
      fitting.emplace_back(job, need);
    }
    std::sort(fitting.begin(), fitting.end());
    Money sum;
    for (const auto& [job, need] : fitting) {
      if (need > left - sum) continue;
      sum += need;
      drop_gate(ctx, job);
      ctx.touched.jobs.push_back(job);
      some = true;
    }
  }
  return some;
}

// ---- thresholds, periods, the end

namespace {

void expire_increases(Context& ctx) {
  std::vector<proto::Increase> over;
  for (const auto& [number, increase] : ctx.state.budgets.increases)
    if (increase.state == proto::IncreaseState::approved && increase.until &&
        *increase.until <= ctx.now)
      over.push_back(increase);
  bool quota = false;
  for (proto::Increase& increase : over) {
    increase.state = proto::IncreaseState::expired;
    quota |= increase.quota.has_value();
    ctx.note(fmt::format("increase {} of tenant {} is over", increase.number, increase.tenant));
    ctx.record(event::IncreaseSet{std::move(increase)});
  }
  if (quota) compile_tenancy(ctx);
}

bool roll(Context& ctx) {
  event::BudgetsRolled e;
  for (const auto& [name, account] : ctx.state.budgets.accounts)
    if (std::string now = span_at(account, ctx.now).name; now != account.book->period)
      e.periods.emplace(name, std::move(now));
  if (e.periods.empty()) return false;
  ctx.record(e);
  return true;
}

// Moves waiting jobs that a budget lowered back into their own class if the budget has money left
// again.
void restore_lowered(Context& ctx) {
  std::vector<JobId> jobs;
  ctx.state.jobs.walk(JobId{}, [&](const Job& job) {
    if (!job.lowered || job.phase != Phase::queued) return true;
    for (const BudgetAccount* account : budgets_of(std::as_const(ctx.state), job))
      if (account->budget.at_limit == BudgetAction::lower_class &&
          left_of(*account, ctx.now) <= Money{})
        return true;
    jobs.push_back(job.id);
    return true;
  });
  const auto& names = ctx.state.tenancy.class_names;
  for (const JobId id : jobs) {
    const auto head = codec::decode<SpecHead>(spec_bytes(ctx.state, ctx.state.jobs.at(id)));
    const auto own =
        head ? std::find(names.begin(), names.end(), head->spec.priority_class) : names.end();
    const auto index = own == names.end() ? 0 : own - names.begin();
    ctx.record(event::JobLowered{id, static_cast<std::uint32_t>(index), false});
  }
}

std::uint32_t end_jobs(Context& ctx, const BudgetAccount& account, const BudgetStand& stand) {
  std::uint32_t ended = 0;
  for (const JobId id : jobs_on_nodes(ctx.state)) {
    const Job& job = ctx.state.jobs.at(id);
    if (job.phase != Phase::starting && job.phase != Phase::running) continue;
    const auto budgets = budgets_of(std::as_const(ctx.state), job);
    if (std::find(budgets.begin(), budgets.end(), &account) == budgets.end()) continue;
    event::JobFinishing e;
    e.job = id;
    e.outcome = Outcome::cancelled;
    e.grace = account.budget.grace;
    e.cause = fmt::format("budget {} is used up: {} of {}", account.budget.name,
                          format_money(stand.spent, 2), money(ctx, amount_of(account)));
    if (job.warn && job.phase == Phase::running) send_warning(ctx, job);
    ctx.record(e);
    ctx.turn.changes.emplace_back(placed_view(ctx.state, ctx.state.jobs.at(id)));
    ++ended;
  }
  return ended;
}

bool reaches(Money spent, Money amount, std::uint32_t percent) {
  return static_cast<__int128>(spent.micros) * 100 >=
         static_cast<__int128>(amount.micros) * percent;
}

// The greatest threshold that is reached and was not announced yet; 0 = none.
std::uint32_t fresh_threshold(const BudgetAccount& account, const BudgetStand& stand) {
  std::uint32_t out = 0;
  std::vector<std::uint32_t> levels = account.budget.warn_at;
  levels.push_back(100);
  for (const std::uint32_t percent : levels)
    if (percent > account.book->told && reaches(stand.spent, amount_of(account), percent))
      out = std::max(out, percent);
  return out;
}

void announce(Context& ctx, const BudgetAccount& account, const BudgetStand& stand,
              std::uint32_t percent, std::uint32_t ended) {
  proto::QuotaAlert a;
  a.number = ctx.state.tenancy.last_alert + 1;
  a.at = ctx.now;
  a.tenant = account.budget.tenant;
  a.percent = percent;
  a.budget = account.budget.name;
  a.period = stand.span.name;
  a.spent = stand.spent;
  a.amount = amount_of(account);
  a.ended = ended;
  // The form of this line is stable, because other programs read it.
  ctx.note(fmt::format(
      "budget_reached tenant={} budget={} period={} percent={} spent={} amount={} "
      "ended={}",
      a.tenant, a.budget, a.period, percent, format_money(a.spent), format_money(a.amount), ended));
  ctx.record(event::BudgetReached{std::move(a)});
}

// Moves `due` forward to the time when this account may next reach a threshold or its end.
void next_look(Context& ctx, const BudgetAccount& account, const BudgetStand& stand,
               std::optional<Instant>& due) {
  const auto at = [&](Instant t) { due = std::min(due.value_or(t), t); };
  if (stand.span.to != Instant{INT64_MAX}) at(std::max(stand.span.to, ctx.now + microseconds(1)));
  if (stand.span.name.empty() || stand.rate <= Money{}) return;
  std::vector<std::uint32_t> levels = account.budget.warn_at;
  levels.push_back(100);
  for (const std::uint32_t percent : levels) {
    const __int128 mark = (static_cast<__int128>(amount_of(account).micros) * percent + 99) / 100;
    if (percent <= account.book->told || mark <= stand.spent.micros) continue;
    const __int128 wait =
        ((mark - stand.spent.micros) * kMicrosecondsPerHour + stand.rate.micros - 1) /
        stand.rate.micros;
    at(ctx.now + Duration{static_cast<std::int64_t>(
                     std::clamp<__int128>(wait, seconds(1).us, kLookAgain.us))});
  }
}

}  // namespace

void look_at_budgets(Context& ctx) {
  ctx.rt.money->budgets_seen = ctx.now;
  ctx.rt.money->budgets_due.reset();
  expire_increases(ctx);
  for (const auto& [number, increase] : ctx.state.budgets.increases)
    if (increase.state == proto::IncreaseState::approved && increase.until)
      ctx.rt.money->budgets_due =
          std::min(ctx.rt.money->budgets_due.value_or(*increase.until), *increase.until);
  const bool rolled = roll(ctx);
  const auto& accounts = ctx.state.budgets.accounts;
  const bool lowers = std::any_of(accounts.begin(), accounts.end(), [](const auto& entry) {
    return entry.second.budget.at_limit == BudgetAction::lower_class;
  });
  if (lowers && (rolled || !ctx.touched.budgets.empty())) restore_lowered(ctx);
  if (accounts.empty()) return;
  std::optional<Instant> due = ctx.rt.money->budgets_due;
  for (const auto& [name, stand] : stands_of(ctx.state, ctx.now)) {
    const BudgetAccount& account = accounts.at(name);
    if (!stand.span.name.empty()) {
      std::uint32_t ended = 0;
      if (account.budget.at_limit == BudgetAction::stop &&
          reaches(stand.spent, amount_of(account), 100))
        ended = end_jobs(ctx, account, stand);
      if (const std::uint32_t percent = fresh_threshold(account, stand); percent > 0)
        announce(ctx, account, stand, percent, ended);
    }
    next_look(ctx, account, stand, due);
  }
  ctx.rt.money->budgets_due = due;
}

// ---- submit

Result<void> check_budgets(const Context& ctx, const Partition& partition, const JobSpec& spec,
                           const std::string& user, std::optional<Duration> limit) {
  if (limit || ctx.state.budgets.accounts.empty()) return {};
  for (const BudgetAccount* account : budgets_of(ctx.state, partition.payer(), spec.account, user))
    if (holds(*account))
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("the job has no time limit (-t), and budget {} of tenant {} sets aside "
                      "what a job may cost at most",
                      account->budget.name, partition.payer()));
  return {};
}

void warn_of_budgets(const Context& ctx, const Partition& partition, const JobSpec& spec,
                     const std::string& user, const Estimate& cost,
                     std::vector<std::string>& warnings) {
  if (!cost.most || ctx.state.budgets.accounts.empty()) return;
  const std::uint64_t tasks = spec.array ? count_indexes(spec.array->ranges) : 1;
  const Money one{cost.most->micros / static_cast<std::int64_t>(std::max<std::uint64_t>(tasks, 1))};
  for (const BudgetAccount* account :
       budgets_of(ctx.state, partition.payer(), spec.account, user)) {
    const tenancy::Budget& b = account->budget;
    if (b.at_limit == BudgetAction::warn || span_at(*account, ctx.now).name.empty()) continue;
    const bool lowers = b.at_limit == BudgetAction::lower_class;
    if (one > amount_of(*account))
      warnings.push_back(fmt::format(
          "it may cost up to {}{}, and budget {} is {} in all: {}", money(ctx, one),
          tasks > 1 ? " a task" : "", b.name, money(ctx, amount_of(*account)),
          lowers ? "it can only start in class " + b.lower_to
                 : "on the dearest nodes it can never start; shorten its time limit, or ask for "
                   "more (gtenant request)"));
    else if (one > left_of(*account, ctx.now))
      warnings.push_back(
          fmt::format("it may cost up to {}{}, and budget {} has {} left: {}", money(ctx, one),
                      tasks > 1 ? " a task" : "", b.name,
                      money(ctx, std::max(Money{}, left_of(*account, ctx.now))),
                      lowers ? "it will start in class " + b.lower_to : "it waits for more"));
  }
}

}  // namespace gantry::core
