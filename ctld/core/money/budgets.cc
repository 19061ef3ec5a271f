#include "ctld/core/money/budgets.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/proto/budget.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/resources/index.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

using tenancy::Budget;
using tenancy::BudgetAction;
using tenancy::BudgetPeriod;

constexpr std::int64_t kDay = 86'400;
constexpr Duration kLongestBill =
    hours(24 * 366);  // the cost of a longer bill is estimated in proportion

bool concerns(const BudgetAccount& account, const std::string& project, const std::string& user) {
  const Budget& b = account.budget;
  return (b.project.empty() || b.project == project) && (b.user.empty() || b.user == user);
}

template <class List, class Accounts>
void choose(List& out, Accounts& accounts, const State& state, const Job& job,
            const std::string& tenant) {
  std::string project(state.names.text(job.account));
  if (project.empty()) project = tenant;
  const std::string user(state.names.text(job.user));
  for (auto& account : accounts)
    if (concerns(*account, project, user)) out.push_back(&*account);
}

std::string quarter_of(const std::string& month) {
  const int number = std::stoi(month.substr(5));
  return fmt::format("{}-Q{}", month.substr(0, 4), (number + 2) / 3);
}

// The name of the period that `t` lies in. `month` and `week` are those of `t`.
std::string name_of_period(const BudgetAccount& account, Instant t, const std::string& month,
                           const std::string& week) {
  switch (account.budget.period) {
    case BudgetPeriod::month: return month;
    case BudgetPeriod::quarter: return quarter_of(month);
    case BudgetPeriod::year: return month.substr(0, 4);
    case BudgetPeriod::week: return week;
    case BudgetPeriod::fixed:
      return *account.from <= t && t < *account.until ? std::string("fixed") : std::string();
  }
  return {};
}

void touch(MutableState& state, BudgetAccount& account) {
  if (account.book->fold_due) return;
  account.book->fold_due = true;
  state.unfolded.books.push_back(account.budget.name);
}

void post(MutableState& state, BudgetAccount& account, const std::string& period, std::int64_t day,
          Money amount) {
  if (period.empty() || amount == Money{}) return;
  BudgetBook& book = *account.book;
  book.spent[period] += amount;
  if (book.spent.size() > kPeriodsKept) book.spent.erase(book.spent.begin());
  auto at = std::lower_bound(book.days.begin(), book.days.end(), day,
                             [](const DaySpent& d, std::int64_t n) { return d.day < n; });
  if (at == book.days.end() || at->day != day) at = book.days.insert(at, DaySpent{day, {}});
  at->spent += amount;
  while (book.days.size() > static_cast<std::size_t>(kForecastDays) + 1)
    book.days.erase(book.days.begin());
  touch(state, account);
}

// The periods of the ledger's sums that make up the budget's present period up to now.
std::vector<std::string> periods_so_far(const BudgetAccount& account, Instant at) {
  const TimeZone& zone = account.zone;
  if (account.budget.period == BudgetPeriod::week) return {week_at(zone, at)};
  const BudgetSpan span = span_at(account, at);
  if (span.name.empty()) return {};
  const std::int64_t first = zone.local_of(span.from) / kDay;
  CivilDay day = civil_of(first);
  if (day.day != 1)
    return {};  // a fixed budget that starts within a month: earlier charges are not known
  std::vector<std::string> out;
  const std::string last = month_at(zone, at);
  for (std::string month; month != last;) {
    month = fmt::format("{:04}-{:02}", day.year, day.month);
    out.push_back(month);
    day =
        CivilDay{day.month == 12 ? day.year + 1 : day.year, day.month == 12 ? 1 : day.month + 1, 1};
  }
  return out;
}

Money spent_in(const State& state, const BudgetAccount& account, const std::string& period) {
  const Budget& b = account.budget;
  LedgerParts first;
  first.period = period;
  first.tenant = b.tenant;
  // The names are cut to the length that keys have room for.
  const LedgerParts cut =
      ledger_parts(ledger_key({period, b.tenant, b.project, b.user, {}, {}, {}, {}, {}}));
  Money out;
  const auto& sums = state.ledger.sums;
  for (auto it = sums.lower_bound(ledger_key(first)); it != sums.end(); ++it) {
    const LedgerParts parts = ledger_parts(it->first);
    if (parts.period != period || parts.tenant != cut.tenant) break;
    if ((!b.project.empty() && parts.project != cut.project) ||
        (!b.user.empty() && parts.user != cut.user))
      continue;
    out += it->second.cost - it->second.credit;
  }
  return out;
}

void open_book(MutableState& state, BudgetAccount& account, Instant at) {
  const Budget& b = account.budget;
  BudgetBook& book = *account.book;
  const bool due = book.fold_due;
  book = BudgetBook{b.tenant, b.project, b.user, b.from, at, {}, {}, {}, 0, due};
  book.period = span_at(account, at).name;
  for (const std::string& period : periods_so_far(account, at))
    if (const Money spent = spent_in(state, account, period); spent != Money{})
      book.spent[book.period] += spent;
  touch(state, account);
}

void make_accounts(MutableState& state) {
  BudgetState& budgets = state.budgets;
  budgets.accounts.clear();
  budgets.by_tenant.clear();
  const Documents& documents = state.tenancy.documents;
  for (auto it = documents.lower_bound({Budget::kKind, ""});
       it != documents.end() && it->first.first == Budget::kKind; ++it) {
    const auto& b = std::get<Budget>(it->second);
    BudgetAccount& account = budgets.accounts[b.name];
    account.budget = b;
    account.zone = state.ledger.prices.zone_of(b.tenant);
    if (b.period == BudgetPeriod::fixed) {
      account.from = budget_edge(account.zone, b.from);
      account.until = budget_edge(account.zone, b.until);
    }
    budgets.by_tenant[b.tenant].push_back(&account);
  }
  add_increases(state);
}

const std::string& payer_of(const State& state, const Job& job) {
  return state.partition(class_of(state, job).partition).payer();
}

}  // namespace

BudgetList budgets_of(MutableState& state, const Job& job) {
  BudgetList out;
  if (state.budgets.accounts.empty()) return out;
  const std::string& tenant = payer_of(state, job);
  const auto it = state.budgets.by_tenant.find(tenant);
  if (it != state.budgets.by_tenant.end()) choose(out, it->second, state, job, tenant);
  return out;
}

std::vector<const BudgetAccount*> budgets_of(const State& state, const Job& job) {
  std::vector<const BudgetAccount*> out;
  if (state.budgets.accounts.empty()) return out;
  const std::string& tenant = payer_of(state, job);
  const auto it = state.budgets.by_tenant.find(tenant);
  if (it != state.budgets.by_tenant.end()) choose(out, it->second, state, job, tenant);
  return out;
}

std::vector<const BudgetAccount*> budgets_of(const State& state, const std::string& tenant,
                                             const std::string& project, const std::string& user) {
  std::vector<const BudgetAccount*> out;
  const auto it = state.budgets.by_tenant.find(tenant);
  if (it == state.budgets.by_tenant.end()) return out;
  for (const auto& account : it->second)
    if (concerns(*account, project.empty() ? tenant : project, user)) out.push_back(&*account);
  return out;
}

BudgetSpan span_at(const BudgetAccount& account, Instant t) {
  const TimeZone& zone = account.zone;
  if (account.budget.period == BudgetPeriod::fixed) {
    if (t < *account.from) return {"", t, *account.from};
    if (t >= *account.until) return {"", *account.until, Instant{INT64_MAX}};
    return {"fixed", *account.from, *account.until};
  }
  const std::string month = month_at(zone, t);
  const std::int64_t local = zone.local_of(t);
  const std::int64_t today = local / kDay - (local % kDay < 0 ? 1 : 0);
  std::int64_t from = 0, to = 0;
  if (account.budget.period == BudgetPeriod::week) {
    from = today - (weekday_of(today) + 6) % 7;
    to = from + 7;
  } else {
    const CivilDay day = civil_of(today);
    const int length = account.budget.period == BudgetPeriod::month     ? 1
                       : account.budget.period == BudgetPeriod::quarter ? 3
                                                                        : 12;
    const int first = (day.month - 1) / length * length + 1;
    from = days_of({day.year, first, 1});
    const int next = first + length;
    to = days_of({next > 12 ? day.year + 1 : day.year, next > 12 ? next - 12 : next, 1});
  }
  return {name_of_period(account, t, month, week_at(zone, t)), zone.instant_of(from * kDay),
          zone.instant_of(to * kDay)};
}

void make_budgets(MutableState& state, Instant at) {
  BudgetState& budgets = state.budgets;
  make_accounts(state);
  for (auto it = budgets.books.begin(); it != budgets.books.end();) {
    if (budgets.accounts.contains(it->first)) {
      ++it;
      continue;
    }
    if (!it->second.fold_due) state.unfolded.books.push_back(it->first);
    it = budgets.books.erase(it);
  }
  for (auto& [name, account] : budgets.accounts) {
    account.book = &budgets.books[name];
    const Budget& b = account.budget;
    const BudgetBook& book = *account.book;
    const bool same = book.tenant == b.tenant && book.project == b.project && book.user == b.user &&
                      book.from == b.from;
    if (!same || book.tenant.empty()) open_book(state, account, at);
    state.touched.budgets.push_back(name);
  }
  for (const JobId id : jobs_on_nodes(state)) {
    Job& job = state.jobs.at(id);
    const bool covered = !budgets_of(std::as_const(state), job).empty();
    if (!covered && !job.active->bill.most) continue;
    job.active->bill.most.reset();  // the accounts are new and nothing is reserved yet
    set_aside(state, job);
    core::touch(state, job);
  }
}

void load_budgets(MutableState& state) {
  make_accounts(state);
  for (auto& [name, account] : state.budgets.accounts) account.book = &state.budgets.books[name];
  if (state.budgets.accounts.empty()) return;
  state.jobs.walk(JobId{}, [&](const Job& job) {
    if (job.active)
      for (BudgetAccount* account : budgets_of(state, job))
        account->reserved += job.active->bill.reserved();
    return true;
  });
}

void add_increases(MutableState& state) {
  for (auto& [name, account] : state.budgets.accounts) account.increase = {};
  for (const auto& [number, increase] : state.budgets.increases) {
    if (increase.state != proto::IncreaseState::approved || !increase.amount) continue;
    const auto it = state.budgets.accounts.find(increase.budget);
    if (it != state.budgets.accounts.end()) it->second.increase += *increase.amount;
  }
}

void post_spent(MutableState& state, const BudgetList& budgets, const Piece& piece, Money cost) {
  for (BudgetAccount* account : budgets)
    post(state, *account, name_of_period(*account, piece.from, piece.month, piece.week), piece.day,
         cost);
}

void post_credit(MutableState& state, const BudgetList& budgets, Instant at, Money credit) {
  for (BudgetAccount* account : budgets) {
    const std::int64_t local = account->zone.local_of(at);
    post(state, *account, span_at(*account, at).name, local / kDay, Money{} - credit);
  }
}

void shift_reserved(MutableState& state, const BudgetList& budgets, Money change) {
  if (change == Money{}) return;
  for (BudgetAccount* account : budgets) {
    account->reserved += change;
    GANTRY_ASSERT(account->reserved >= Money{}, "what is taken back was set aside");
    if (change < Money{}) state.touched.budgets.push_back(account->budget.name);
  }
}

std::optional<Money> most_of(const State& state, const Job& job, const Bill& bill, Instant start,
                             Duration more) {
  const auto limit = time_limit_of(state, job);
  if (!limit) return std::nullopt;
  const TimeZone& zone = state.ledger.prices.zone_of(payer_of(state, job));
  const Duration length = *limit + more;
  if (length <= kLongestBill) return cost_until(state.ledger.prices, zone, bill, start + length);
  const Money part = cost_until(state.ledger.prices, zone, bill, start + kLongestBill);
  const __int128 all =
      (static_cast<__int128>(part.micros) * length.us + kLongestBill.us - 1) / kLongestBill.us;
  return Money{static_cast<std::int64_t>(std::min<__int128>(all, tenancy::kMostBudget.micros))};
}

void set_aside(MutableState& state, Job& job) {
  const BudgetList budgets = budgets_of(state, job);
  Bill& bill = job.active->bill;
  if (budgets.empty() || bill.settled) return;
  const Money before = bill.reserved();
  const BudgetState& b = state.budgets;
  const Duration to_start =
      job.started ? Duration{} : b.start_timeout * (job.has_image ? kImageStarts : 1);
  const Instant from = job.started.value_or(job.active->placed) + job.active->suspended_before;
  bill.most = most_of(state, job, bill, from, to_start + b.kill_wait);
  shift_reserved(state, budgets, bill.reserved() - before);
}

void take_back(MutableState& state, Job& job) {
  if (!job.active || !job.active->bill.most) return;
  const BudgetList budgets = budgets_of(state, job);
  shift_reserved(state, budgets, Money{} - job.active->bill.reserved());
  job.active->bill.most.reset();
}

Money amount_of(const BudgetAccount& account) {
  return account.budget.amount + account.increase;
}

Money left_of(const BudgetAccount& account, Instant now) {
  const BudgetSpan span = span_at(account, now);
  if (span.name.empty()) return tenancy::kMostBudget;  // outside its time the budget has no limit
  const auto it = account.book->spent.find(span.name);
  const Money spent = it == account.book->spent.end() ? Money{} : it->second;
  return amount_of(account) - spent - account.reserved;
}

std::map<std::string, BudgetStand> stands_of(const State& state, Instant now) {
  struct Pace {
    Instant from{};
    std::int64_t day = 0;
    Money spent;
    std::optional<Instant> first;  // time of the first known charge
  };
  std::map<std::string, BudgetStand> out;
  std::map<std::string, Pace> paces;
  for (const auto& [name, account] : state.budgets.accounts) {
    BudgetStand& stand = out[name];
    stand.span = span_at(account, now);
    const auto it = account.book->spent.find(stand.span.name);
    if (it != account.book->spent.end()) stand.spent = it->second;
    stand.reserved = account.reserved;
    Pace& pace = paces[name];
    const std::int64_t today = account.zone.local_of(now) / kDay;
    pace.from =
        std::max(account.book->since, account.zone.instant_of((today - kForecastDays) * kDay));
    pace.day = account.zone.local_of(pace.from) / kDay;
    for (const DaySpent& d : account.book->days)
      if (d.day >= pace.day) pace.spent += d.spent;
    if (!account.book->days.empty())
      pace.first = std::max(account.book->since,
                            account.zone.instant_of(account.book->days.front().day * kDay));
  }
  for (const JobId id :
       state.budgets.accounts.empty() ? std::vector<JobId>{} : jobs_on_nodes(state)) {
    const Job& job = state.jobs.at(id);
    const auto budgets = budgets_of(state, job);
    if (budgets.empty() || !job.active || job.active->bill.settled) continue;
    accrue(state, job, now, [&](const Piece& piece, Money cost) {
      for (const BudgetAccount* account : budgets) {
        BudgetStand& stand = out[account->budget.name];
        if (name_of_period(*account, piece.from, piece.month, piece.week) == stand.span.name)
          stand.spent += cost;
        stand.reserved = std::max(Money{}, stand.reserved - cost);
        Pace& pace = paces[account->budget.name];
        if (piece.day >= pace.day) pace.spent += cost;
        pace.first = std::min(pace.first.value_or(piece.from), piece.from);
      }
    });
    const Money rate = rate_at(state.ledger.prices, budgets.front()->zone, job.active->bill,
                               std::max(now, job.active->bill.since));
    for (const BudgetAccount* account : budgets) out[account->budget.name].rate += rate;
  }
  for (auto& [name, stand] : out) {
    stand.forecast = stand.spent;
    const Pace& pace = paces[name];
    if (stand.span.name.empty() || pace.from >= now) continue;
    const Instant since = pace.first.value_or(state.budgets.accounts.at(name).book->since);
    stand.little_history = now - since < kForecastNeeds;
    if (stand.little_history) continue;
    const std::int64_t seen = (now - std::max(pace.from, since)).us;
    const __int128 more = static_cast<__int128>(std::max<std::int64_t>(0, pace.spent.micros)) *
                          (stand.span.to - now).us / seen;
    stand.forecast +=
        Money{static_cast<std::int64_t>(std::min<__int128>(more, tenancy::kMostBudget.micros))};
  }
  return out;
}

}  // namespace gantry::core
