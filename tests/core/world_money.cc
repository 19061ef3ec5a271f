// Prices and the ledger of a scenario; see world.h.
//
//   > prices base cpu=0.10 mem=0.01 gpu=a100:2.50,default:1 spot=500 [from=...] [preempted=all]
//            [meters=storage:0.02] [overhead=network:100,control:7] [platform=5000]
//   > meter admin storage-01 sum=1a2b fraud/train/bob:storage:2026-01-31:12500 ... [check=yes]
//   > meters admin
//   > report alice this-month [last=...] by=tenant,item         > costs alice
//
//   > budget month tenant=fraud amount=100 [project=p] [user=u] [period=week] [from=.. until=..]
//            [warn=50,80] [at=hold|stop|warn|lower-class] [lower=best-effort] [grace=10s]
//   > budgets alice
//   > more alice tenant=fraud budget=month amount=50 [until=+2h]
//   > more alice tenant=fraud cpu=4
//   > decide admin 1 approved                                   > requests alice
//
// The commands `prices` and `budget` add documents to the next apply. `spot` is the factor of the
// price for class best-effort, in thousandths.
#include <fmt/core.h>

#include "common/text/split.h"
#include "common/text/text.h"
#include "world.h"

namespace gantry::core::test {
namespace {

Money money_of(const std::string& text) {
  return *parse_money(text);
}

tenancy::PriceBook book_of(const Words& w) {
  tenancy::PriceBook b;
  b.name = w.plain.at(1);
  b.currency = "EUR";
  b.zone = {"UTC0", "UTC0"};
  if (w.find("from")) b.from = *w.find("from");
  if (w.find("cpu")) b.cpu = money_of(*w.find("cpu"));
  if (w.find("mem")) b.memory = money_of(*w.find("mem"));
  if (w.find("io")) b.io = money_of(*w.find("io"));
  if (w.find("net")) b.net = money_of(*w.find("net"));
  for (const auto& [key, prices] : {std::pair("gpu", &b.gpu), std::pair("meters", &b.meters),
                                    std::pair("overhead", &b.overhead)})
    if (w.find(key))
      for (const std::string& part : split(*w.find(key), ',')) {
        const std::size_t colon = part.rfind(':');
        (*prices)[part.substr(0, colon)] = money_of(part.substr(colon + 1));
      }
  if (w.find("platform")) b.platform_cost = money_of(*w.find("platform"));
  if (w.find("spot"))
    b.plans.push_back({"spot", std::stoi(*w.find("spot")), {"best-effort"}, {}, {}, {}});
  for (const auto& [key, part] :
       {std::pair("preempted", &b.preempted), std::pair("node_failure", &b.node_failure)})
    if (const std::string* text = w.find(key))
      for (const auto& [value, name] : enum_names(tenancy::CreditPart{}))
        if (name == *text) *part = value;
  return b;
}

tenancy::Budget budget_of(const Words& w) {
  tenancy::Budget b;
  b.name = w.plain.at(1);
  for (const auto& [key, text] : {std::pair("tenant", &b.tenant), std::pair("project", &b.project),
                                  std::pair("user", &b.user), std::pair("from", &b.from),
                                  std::pair("until", &b.until), std::pair("lower", &b.lower_to)})
    if (w.find(key)) *text = *w.find(key);
  b.amount = money_of(*w.find("amount"));
  if (w.find("warn"))
    for (const std::string& percent : split(*w.find("warn"), ','))
      b.warn_at.push_back(std::stoul(percent));
  if (w.find("grace")) b.grace = parse_length(*w.find("grace"));
  for (const auto& [value, name] : enum_names(tenancy::BudgetPeriod{}))
    if (w.find("period") && name == *w.find("period")) b.period = value;
  for (const auto& [value, name] : enum_names(tenancy::BudgetAction{}))
    if (w.find("at") && name == *w.find("at")) b.at_limit = value;
  return b;
}

// Parses TENANT/PROJECT/USER:METER:DATE:THOUSANDTHS.
proto::MeterLine meter_line_of(const std::string& text, std::size_t number) {
  proto::MeterLine line;
  line.line = static_cast<std::uint32_t>(number);
  const std::vector<std::string> parts = split(text, ':');
  const std::vector<std::string> whose = split(parts.at(0), '/');
  line.tenant = whose.at(0);
  if (whose.size() > 1) line.project = whose[1];
  if (whose.size() > 2) line.user = whose[2];
  line.meter = parts.at(1);
  line.date = parts.at(2);
  line.amount = std::stoll(parts.at(3));
  return line;
}

proto::ListJobs list_all() {
  proto::ListJobs m;
  m.filter.states = {"all"};
  return m;
}

}  // namespace

bool World::money_command(const std::string& verb, const Words& w) {
  if (verb == "budget") return pending_.documents.emplace_back(budget_of(w)), true;
  if (verb == "budgets") return ask(w.plain.at(1), proto::ListBudgets{}), true;
  if (verb == "requests") return ask(w.plain.at(1), proto::ListIncreases{{}, true}), true;
  if (verb == "more") {
    proto::AskIncrease m;
    m.wanted.tenant = *w.find("tenant");
    if (w.find("budget")) m.wanted.budget = *w.find("budget");
    if (w.find("amount")) m.wanted.amount = money_of(*w.find("amount"));
    if (w.find("cpu")) m.wanted.quota = std::stoll(*w.find("cpu")) * 1000;
    m.wanted.resource = Resource::cpu;
    if (w.find("until")) m.wanted.until = time_of(*w.find("until"));
    m.wanted.reason = "because";
    return ask(w.plain.at(1), std::move(m)), true;
  }
  if (verb == "decide") {
    proto::DecideIncrease m{std::stoull(w.plain.at(2)), {}, {}};
    for (const auto& [value, name] : enum_names(proto::IncreaseState{}))
      if (name == w.plain.at(3)) m.state = value;
    return ask(w.plain.at(1), std::move(m)), true;
  }
  if (verb == "meters") return ask(w.plain.at(1), proto::ListMeters{}), true;
  if (verb == "meter") {
    proto::ImportMeter m;
    m.name = w.plain.at(2);
    m.digest = *w.find("sum");
    m.check = w.find("check") != nullptr;
    for (std::size_t i = 3; i < w.plain.size(); ++i)
      m.lines.push_back(meter_line_of(w.plain[i], i - 1));
    return ask(w.plain.at(1), std::move(m)), true;
  }
  if (verb == "prices") return pending_.documents.emplace_back(book_of(w)), true;
  if (verb == "report") {
    proto::QueryLedger m;
    m.first = m.last = w.plain.at(2);
    if (w.find("last")) m.last = *w.find("last");
    if (w.find("by")) m.by = split(*w.find("by"), ',');
    return ask(w.plain.at(1), std::move(m)), true;
  }
  if (verb != "costs") return false;
  core_->step(now_,
              ClientRequest{ConnectionId(1), next_request_++, who(w.plain.at(1)), list_all()});
  Turn turn = core_->take_turn();
  const auto* reply = turn.replies.at(0).message.get_if<proto::ListJobsReply>();
  if (reply == nullptr) return print(turn.replies.at(0)), true;
  for (const proto::JobRow& row : reply->rows) {
    std::string text = fmt::format("{}:", row.job.value());
    if (!row.cost) text += " no cost";
    if (row.cost) text += fmt::format(" {} {}", format_money(*row.cost), reply->currency);
    if (row.credit != Money{}) text += fmt::format(", credit {}", format_money(row.credit));
    if (row.cost_rate) text += fmt::format(", {} an hour", format_money(*row.cost_rate));
    line(text);
  }
  return true;
}

void World::print(const proto::BudgetList& m) {
  if (m.rows.empty()) line("no budget");
  for (const proto::BudgetRow& r : m.rows) {
    std::string text = fmt::format(
        "{} {}: {} spent, {} reserved, of {}; forecast {}; until {}", r.budget.name, r.period,
        format_money(r.spent), format_money(r.reserved), format_money(r.amount),
        r.little_history ? "none yet" : format_money(r.forecast, 2), time_text(r.to));
    if (r.waiting > 0) text += fmt::format("; {} wait", r.waiting);
    for (const proto::PeriodSpent& p : r.earlier)
      text += fmt::format("; {} in {}", format_money(p.spent), p.period);
    line(text);
  }
}

void World::print(const proto::IncreaseReply& m) {
  if (m.rows.empty()) line("no request");
  for (const proto::Increase& i : m.rows)
    line(fmt::format("request {} of {} by {}: {}{} {}{}", i.number, i.tenant, i.asked_by,
                     i.amount ? format_money(*i.amount) + " for " + i.budget
                              : amount_words(i.resource, i.quota.value_or(0)),
                     i.until ? " until " + time_text(*i.until) : "", enum_name(i.state),
                     i.decided_by.empty() ? "" : " by " + i.decided_by));
}

void World::print(const proto::LedgerReply& m) {
  if (m.rows.empty()) line("nothing");
  for (const proto::LedgerRow& r : m.rows) {
    std::string text;
    for (const std::string* key : {&r.period, &r.tenant, &r.label, &r.project, &r.user, &r.job_type,
                                   &r.pool, &r.item, &r.plan, &r.labels, &r.job_label})
      if (!key->empty()) text += *key + " ";
    text += fmt::format(
        "cpu {} mem {} gpu {} cost {} credit {} runs {}", format_hours(r.cpu, kThousandthsUnit),
        format_hours(r.memory, kMebibyteUnit), format_hours(r.gpu, kThousandthsUnit),
        format_money(r.cost), format_money(r.credit), r.runs);
    if (r.list != r.cost) text += fmt::format(" list {}", format_money(r.list));
    if (r.waste != Money{})
      text += fmt::format(" waste {} (cpu {}, mem {})", format_money(r.waste),
                          format_hours(r.idle_cpu, kThousandthsUnit),
                          format_hours(r.idle_memory, kMebibyteUnit));
    if (r.waited > Duration{})
      text += fmt::format(" {} starts waited {}", r.starts, format_duration(r.waited));
    if (r.io != Held{}) text += fmt::format(" io {}", format_hours(r.io, kThousandthsUnit));
    if (r.net != Held{}) text += fmt::format(" net {}", format_hours(r.net, kThousandthsUnit));
    if (r.metered != Held{})
      text += fmt::format(" metered {}", format_hours(r.metered, kThousandthsUnit));
    if (r.overhead != Money{}) text += fmt::format(" overhead {}", format_money(r.overhead));
    line(text);
  }
  for (const proto::Recovery& r : m.recovery)
    line(
        fmt::format("{}: {} of {} earned", r.period, format_money(r.earned), format_money(r.cost)));
}

void World::print(const proto::MeterReply& m) {
  if (m.batches.empty()) line("no batch");
  for (const proto::PostedBatch& b : m.batches)
    line(fmt::format("{} {} by {}: {} lines, {} {}{}", b.name, time_text(b.at),
                     b.by.empty() ? "itself" : b.by, b.lines, format_money(b.cost), m.currency,
                     m.again ? ", again" : ""));
}

}  // namespace gantry::core::test
