// gtenant request: a tenant's admins ask for more budget or quota, and the platform's admins
// decide.
#include <fmt/core.h>

#include "cli/session.h"
#include "cli/table.h"
#include "cli/tenancy/cmd_gtenant.h"
#include "common/text/text.h"
#include "config/tenancy/amounts.h"

namespace gantry::cli::gtenant_request {
namespace {

using proto::Increase;
using proto::IncreaseState;

struct AskOptions {
  Increase wanted;
  std::string quota;  // "gpu=8"
  bool json = false;
};

Result<void> set_amount(AskOptions& o, std::string_view text) {
  const auto amount = parse_money(text);
  if (!amount) return fail(ErrorCode::usage, "--amount: " + amount.error().message);
  o.wanted.amount = *amount;
  return {};
}
Result<void> set_until(AskOptions& o, std::string_view text) {
  const auto until = parse_time(text, system_now());
  if (!until) return fail(ErrorCode::usage, "--until: " + until.error().message);
  o.wanted.until = *until;
  return {};
}
Result<void> set_quota(AskOptions& o, std::string_view text) {
  const std::size_t equals = text.find('=');
  for (const auto& [resource, key] : tenancy::kResourceKeys) {
    if (equals == std::string_view::npos || text.substr(0, equals) != key) continue;
    const auto amount = tenancy::parse_amount(resource, text.substr(equals + 1));
    if (!amount) return fail(ErrorCode::usage, "--quota: " + amount.error().message);
    o.wanted.resource = resource;
    o.wanted.quota = *amount;
    return {};
  }
  return fail(ErrorCode::usage, fmt::format("--quota: \"{}\" is none of gpu=N, cpu=N, memory=SIZE, "
                                            "scratch=SIZE, io=RATE and net=RATE",
                                            text));
}

constexpr Option kAskOptions[] = {
    takes("amount", "MONEY", "How much more the budget is to be", call<set_amount>),
    takes("budget", "NAME", "Of which budget, with --amount", put<AT(AskOptions, wanted.budget)>),
    takes("comment", 'm', "TEXT", "Why", put<AT(AskOptions, wanted.reason)>),
    takes("flavor", "FLAVOR", "Of which quota; of all flavors together unless given",
          put<AT(AskOptions, wanted.flavor)>),
    flag("json", "As JSON", put<&AskOptions::json>),
    takes("quota", "RESOURCE=N", "How much more nominal quota: gpu=8, memory=512Gi",
          call<set_quota>),
    takes("until", "TIME", "Until when; for good unless given", call<set_until>),
};

std::string what_of(const Increase& i, const std::string& currency) {
  if (i.amount) return fmt::format("{} {} for {}", format_money(*i.amount, 2), currency, i.budget);
  return fmt::format("{}{}", amount_words(i.resource, i.quota.value_or(0)),
                     i.flavor.empty() ? "" : " of " + i.flavor);
}

void print_reply(const proto::IncreaseReply& reply, bool json) {
  if (json) {
    fmt::print("{}\n", codec::to_json(reply, codec::JsonStyle::pretty));
    return;
  }
  for (const Increase& i : reply.rows)
    fmt::print("request {}: {} more of tenant {}{}: {}\n", i.number, what_of(i, reply.currency),
               i.tenant, i.until ? " until " + format_time(*i.until) : "", enum_name(i.state));
}

Result<int> run_ask(const Invocation& in) {
  AskOptions options;
  OPERANDS(operands, in, &options, 1, 1);
  options.wanted.tenant = (**operands)[0];
  const Increase& w = options.wanted;
  if (w.amount.has_value() == w.quota.has_value() || w.amount.has_value() == w.budget.empty())
    return fail(ErrorCode::usage,
                "ask for --budget NAME --amount MONEY, or for --quota RESOURCE=N");
  if (w.amount && !w.flavor.empty()) return fail(ErrorCode::usage, "--flavor is for --quota");
  ASSIGN(reply, ask<proto::IncreaseReply>(in.program(), proto::AskIncrease{options.wanted}));
  print_reply(*reply, options.json);
  return 0;
}

// ---- decisions

struct DecideOptions {
  std::string note;
  bool json = false;
};
constexpr Option kDecideOptions[] = {
    takes("comment", 'm', "TEXT", "Why, for the history", put<&DecideOptions::note>),
    flag("json", "As JSON", put<&DecideOptions::json>),
};

Result<int> decide(const Invocation& in, IncreaseState state) {
  DecideOptions options;
  OPERANDS(operands, in, &options, 1, 1);
  ASSIGN(number, parse_integer("the request's number", (**operands)[0], 1, INT64_MAX));
  ASSIGN(reply, ask<proto::IncreaseReply>(
                    in.program(), proto::DecideIncrease{static_cast<std::uint64_t>(*number), state,
                                                        options.note}));
  print_reply(*reply, options.json);
  return 0;
}
Result<int> run_approve(const Invocation& in) {
  return decide(in, IncreaseState::approved);
}
Result<int> run_deny(const Invocation& in) {
  return decide(in, IncreaseState::denied);
}
Result<int> run_withdraw(const Invocation& in) {
  return decide(in, IncreaseState::withdrawn);
}
Result<int> run_end(const Invocation& in) {
  return decide(in, IncreaseState::expired);
}

// ---- list

struct RequestListOptions {
  bool all = false;
  bool json = false;
  bool no_header = false;
};
constexpr Option kRequestListOptions[] = {
    flag("all", 'a', "Those that were denied, withdrawn or are over as well",
         put<&RequestListOptions::all>),
    flag("json", "As JSON", put<&RequestListOptions::json>),
    flag("noheader", 'n', "No line of headers", put<&RequestListOptions::no_header>),
};

struct RequestRow {
  const Increase* increase = nullptr;
  std::string what;
};
using O = std::string&;
using R = const RequestRow&;

void put_text(O o, const std::string& text) {
  o += text.empty() ? "-" : text;
}

constexpr Column<RequestRow> kRequestColumns[] = {
    {'i', "Request", "REQUEST", [](O o, R r) { o += std::to_string(r.increase->number); }},
    {'t', "Tenant", "TENANT", [](O o, R r) { o += r.increase->tenant; }},
    {'w', "What", "MORE", [](O o, R r) { o += r.what; }},
    {'u', "Until", "UNTIL",
     [](O o, R r) { o += r.increase->until ? format_time(*r.increase->until) : "for good"; }},
    {'s', "State", "STATE", [](O o, R r) { o += enum_name(r.increase->state); }},
    {'b', "By", "BY", [](O o, R r) { o += r.increase->asked_by; }},
    {'d', "Decided", "DECIDED", [](O o, R r) { put_text(o, r.increase->decided_by); }},
    {'r', "Reason", "REASON", [](O o, R r) {
       put_text(o, r.increase->note.empty() ? r.increase->reason
                                            : r.increase->reason + " (" + r.increase->note + ")");
     }}};
constexpr std::string_view kRequestFormat = "%.7i %t %w %u %s %b %d %r";

Result<int> run_request_list(const Invocation& in) {
  RequestListOptions options;
  OPERANDS(operands, in, &options, 0, kAnyOperands);
  ASSIGN(reply,
         ask<proto::IncreaseReply>(in.program(), proto::ListIncreases{**operands, options.all}));
  if (options.json) return print_pretty(*reply);
  const std::span<const Column<RequestRow>> columns(kRequestColumns);
  ASSIGN(layout, parse_format(kRequestFormat, infos(columns), true));
  TableWriter table(std::move(*layout), {.header = !options.no_header}, stdout);
  for (const Increase& i : reply->rows)
    add_row(table, columns, RequestRow{&i, what_of(i, reply->currency)});
  return 0;
}

const Command kRequestAsk{
    {"ask", "Ask for more of a budget or of quota", "TENANT"},
    {.options = kAskOptions,
     .examples = {{"gtenant request ask fraud --budget fraud-month --amount 500 --until 2026-12-01",
                   "More money until the end of the month"},
                  {"gtenant request ask fraud --quota gpu=8 --flavor a100 -m 'quarter end'",
                   "More quota"},
                  {"gtenant request list", "What is asked for, and what is in force"},
                  {"gtenant request approve 7", "A platform admin's word"}},
     .run = run_ask}};
const Command kRequestList{
    {"list", "List requests that are open or in force", "[TENANT...]"},
    {.options = kRequestListOptions,
     .examples = {{"gtenant request list", "Those that are open or in force"}},
     .run = run_request_list}};
const Command kRequestApprove{
    {"approve", "Grant a request (platform admins)", "NUMBER"},
    {.options = kDecideOptions,
     .examples = {{"gtenant request approve 7", "From now on the budget or quota is larger"}},
     .run = run_approve}};
const Command kRequestDeny{
    {"deny", "Refuse a request (platform admins)", "NUMBER"},
    {.options = kDecideOptions,
     .examples = {{"gtenant request deny 7 -m 'next quarter'", "With a reason for who asked"}},
     .run = run_deny}};
const Command kRequestWithdraw{{"withdraw", "Take back a request that is not decided", "NUMBER"},
                               {.options = kDecideOptions,
                                .examples = {{"gtenant request withdraw 7", "Of one's own"}},
                                .run = run_withdraw}};
const Command kRequestEnd{
    {"end", "End what was approved, now (platform admins)", "NUMBER"},
    {.options = kDecideOptions,
     .examples = {{"gtenant request end 7", "Take an approved increase back before its time"}},
     .run = run_end}};
constexpr const Command* kRequestSub[] = {&kRequestAsk,  &kRequestList,     &kRequestApprove,
                                          &kRequestDeny, &kRequestWithdraw, &kRequestEnd};

}  // namespace

const Command kTenantRequest{
    {"request", "More of a budget or of quota: ask, list, approve, deny, withdraw, end"},
    {.description =
         "A tenant's admin asks, a platform admin decides. What is approved is added to the budget "
         "or to the nominal quota until its time is over; documents stay as they are.",
     .examples = {{"gtenant request ask fraud --budget fraud-month --amount 500 --until 2026-12-01",
                   "More money until the end of the month"},
                  {"gtenant request ask fraud --quota gpu=8 --flavor a100 -m 'quarter end'",
                   "More quota"},
                  {"gtenant request list", "What is asked for, and what is in force"},
                  {"gtenant request approve 7", "A platform admin's word"}},
     .sub = kRequestSub}};

}  // namespace gantry::cli::gtenant_request
