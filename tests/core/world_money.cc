// Prices and the ledger of a scenario; see world.h.
//
//   > prices base cpu=0.10 mem=0.01 gpu=a100:2.50,default:1 spot=500 [from=...] [preempted=all]
//   > report alice this-month [last=...] by=tenant,item         > costs alice
//
// `prices` joins the documents of the next apply. spot: what class best-effort pays, in
// thousandths.
#include <fmt/core.h>

#include "common/text.h"
#include "world.h"

namespace gantry::core::test {
namespace {

std::vector<std::string> words_at(const std::string& text, char at) {
  std::vector<std::string> out(1);
  for (const char c : text)
    if (c == at)
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

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
  if (w.find("gpu"))
    for (const std::string& part : words_at(*w.find("gpu"), ',')) {
      const std::size_t colon = part.rfind(':');
      b.gpu[part.substr(0, colon)] = money_of(part.substr(colon + 1));
    }
  if (w.find("spot"))
    b.plans.push_back({"spot", std::stoi(*w.find("spot")), {"best-effort"}, {}, {}, {}});
  for (const auto& [key, part] :
       {std::pair("preempted", &b.preempted), std::pair("node_failure", &b.node_failure)})
    if (const std::string* text = w.find(key))
      for (const auto& [value, name] : enum_names(tenancy::CreditPart{}))
        if (name == *text) *part = value;
  return b;
}

proto::ListJobs list_all() {
  proto::ListJobs m;
  m.filter.states = {"all"};
  return m;
}

}  // namespace

bool World::money_command(const std::string& verb, const Words& w) {
  if (verb == "prices") return pending_.documents.emplace_back(book_of(w)), true;
  if (verb == "report") {
    proto::QueryLedger m;
    m.first = m.last = w.plain.at(2);
    if (w.find("last")) m.last = *w.find("last");
    if (w.find("by")) m.by = words_at(*w.find("by"), ',');
    return ask(w.plain.at(1), std::move(m)), true;
  }
  if (verb != "costs") return false;
  core_->step(now_,
              ClientRequest{ConnectionId(1), next_request_++, who(w.plain.at(1)), list_all()});
  Turn turn = core_->take_turn();
  const auto* reply = std::get_if<proto::ListJobsReply>(&turn.replies.at(0).message);
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

void World::print(const proto::LedgerReply& m) {
  if (m.rows.empty()) line("nothing");
  for (const proto::LedgerRow& r : m.rows) {
    std::string text;
    for (const std::string* key :
         {&r.period, &r.tenant, &r.project, &r.user, &r.job_type, &r.pool, &r.item, &r.plan})
      if (!key->empty()) text += *key + " ";
    text += fmt::format(
        "cpu {} mem {} gpu {} cost {} credit {} runs {}", format_hours(r.cpu, kThousandthsUnit),
        format_hours(r.memory, kMebibyteUnit), format_hours(r.gpu, kThousandthsUnit),
        format_money(r.cost), format_money(r.credit), r.runs);
    line(text);
  }
}

}  // namespace gantry::core::test
