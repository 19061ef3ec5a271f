// gtenant policy: the fields that policies can use, and what new policies would have done to past
// jobs.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/columns/history_rows.h"
#include "cli/session.h"
#include "cli/tenancy/cmd_gtenant.h"
#include "common/codec/codec.h"
#include "common/job/verdict_text.h"
#include "common/policy/judge.h"
#include "common/text/text.h"
#include "config/tenancy/capacity.h"
#include "config/tenancy/files/load.h"

namespace gantry::cli::gtenant_policy {
namespace {

using tenancy::Policy;

// Accounting keeps these fields of a job; its other fields are not known.
policy::Facts facts_of(const proto::HistoryRow& row) {
  policy::Facts out{
      {"account", row.row.account},
      {"class", row.priority_class},
      {"comment", row.comment},
      {"cpus", std::to_string(row.row.cpus)},
      {"gpus", std::to_string(std::max(row.row.gpus, row.row.gpu_parts > 0 ? 1u : 0u))},
      {"licenses", row.licenses},
      {"name", row.row.name},
      {"nodes", std::to_string(row.row.nodes)},
      {"partition", row.row.partition},
      {"reservation", row.row.reservation},
      {"tenant", row.row.tenant},
      {"time", row.row.time_limit ? std::to_string(row.row.time_limit->seconds()) : ""},
      {"type", row.work_type ? std::string(enum_name(*row.work_type)) : std::string()},
      {"user", row.row.user},
      {"wckey", row.wckey},
  };
  for (const auto& [key, value] : row.labels)
    out.emplace(std::string(policy::kLabelFact) + key, value);
  return out;
}

// Effect counts what one policy of the files would have done.
struct Effect {
  std::uint64_t jobs = 0;     // jobs that it would have refused, warned about or changed
  std::uint64_t unknown = 0;  // about which accounting does not keep enough
  std::vector<std::string> examples;
};

struct TestOptions {
  std::vector<std::string> files;
  Instant since{};
  std::uint64_t most = 10;
};

Result<void> add_file(TestOptions& o, std::string_view path) {
  if (path.empty()) return fail(ErrorCode::usage, "a file's name is empty");
  o.files.emplace_back(path);
  return {};
}
Result<void> set_since(TestOptions& o, std::string_view text) {
  ASSIGN(since, parse_time(text, system_now(), TimeSense::latest));
  o.since = *since;
  return {};
}
constexpr Option kTestOptions[] = {
    takes("examples", 'n', "N", "Name at most N jobs of each policy (default 10)",
          number<"the number of examples", 0, 10'000, &TestOptions::most>),
    takes("filename", 'f', "FILE|DIR", "Documents of the kind Policy; may be given several times",
          call<add_file>),
    takes("since", 'S', "TIME",
          "Jobs that were there after this time: now-7days (default), 2026-01-31", call<set_since>),
};

Result<std::vector<Policy>> policies_in(const TestOptions& options, Session& session) {
  ASSIGN(present, present_documents(session));
  tenancy::LoadOptions load;
  load.known = present->documents;
  load.nodes = &present->nodes;
  ASSIGN(loaded, tenancy::load_documents(options.files, load));
  std::vector<Policy> out;
  for (tenancy::Document& document : loaded->documents)
    if (auto* policy = std::get_if<Policy>(&document)) out.push_back(std::move(*policy));
  if (out.empty()) return fail(ErrorCode::usage, "the files have no document of the kind Policy");
  return out;
}

bool acts(const Policy& policy, const policy::Facts& facts) {
  if (policy.action == tenancy::PolicyAction::allow) return false;
  if (policy.action != tenancy::PolicyAction::set) return true;
  return std::any_of(policy.values.begin(), policy.values.end(), [&](const auto& one) {
    const auto value = policy::value_of(facts, one.first);
    return !value || value->empty();
  });
}

// Each policy is tested alone, in the mode that it does not have yet.
void look_at(const proto::HistoryRow& row, const std::vector<Policy>& policies,
             std::map<std::string, Effect>& effects, std::size_t most) {
  const policy::Facts facts = facts_of(row);
  for (const Policy& policy : policies) {
    if (!policy.tenant.empty() && policy.tenant != row.row.tenant) continue;
    const policy::Holds holds = policy::holds(policy, facts);
    Effect& effect = effects[policy.name];
    if (holds == policy::Holds::unknown) ++effect.unknown;
    if (holds != policy::Holds::yes || !acts(policy, facts)) continue;
    ++effect.jobs;
    if (effect.examples.size() < most)
      effect.examples.push_back(
          fmt::format("{} {} of {}{}", row.row.job.value(), row.row.name, row.row.user,
                      row.row.tenant.empty() ? "" : fmt::format(", tenant {}", row.row.tenant)));
  }
}

std::string_view verb_of(const Policy& policy) {
  switch (policy.action) {
    case tenancy::PolicyAction::deny: return "would have refused";
    case tenancy::PolicyAction::warn: return "would have warned of";
    case tenancy::PolicyAction::set: return "would have filled in";
    case tenancy::PolicyAction::allow: break;
  }
  return "allows, and so does nothing to";
}

void print(const std::vector<Policy>& policies, const std::map<std::string, Effect>& effects,
           std::size_t rows) {
  fmt::print("{} looked at\n", counted(static_cast<std::int64_t>(rows), "job"));
  for (const Policy& policy : policies) {
    const auto it = effects.find(policy.name);
    const Effect effect = it == effects.end() ? Effect{} : it->second;
    fmt::print("policy {} {} {}\n", policy.name, verb_of(policy),
               counted(static_cast<std::int64_t>(effect.jobs), "job"));
    for (const std::string& example : effect.examples) fmt::print("  {}\n", example);
    if (effect.jobs > effect.examples.size() && !effect.examples.empty())
      fmt::print("  and {} more\n", effect.jobs - effect.examples.size());
    if (effect.unknown > 0)
      fmt::print("  of {} accounting does not keep what the policy asks for\n",
                 counted(static_cast<std::int64_t>(effect.unknown), "job"));
  }
}

Result<int> run_test(const Invocation& in) {
  TestOptions options;
  options.since = system_now() - hours(7 * 24);
  OPERANDS(operands, in, &options, 0, 0);
  if (options.files.empty()) return fail(ErrorCode::usage, "no file is given; use -f FILE");
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(policies, policies_in(options, *session));
  proto::QueryHistory query;
  query.start = options.since;
  ASSIGN(history, history_rows(*session, std::move(query)));
  std::map<std::string, Effect> effects;
  for (const proto::HistoryRow& row : history->rows) look_at(row, *policies, effects, options.most);
  print(*policies, effects, history->rows.size());
  return 0;
}

struct NoOptions {};

Result<int> run_fields(const Invocation& in) {
  NoOptions none;
  OPERANDS(operands, in, &none, 0, 0);
  constexpr std::array<std::pair<policy::Measure, std::string_view>, 5> kWords{
      {{policy::Measure::text, "text"},
       {policy::Measure::number, "number"},
       {policy::Measure::memory, "memory"},
       {policy::Measure::duration, "time"},
       {policy::Measure::flag, "true, false"}}};
  for (const policy::FactRow& row : policy::kFacts) {
    const auto word = std::find_if(kWords.begin(), kWords.end(),
                                   [&](const auto& one) { return one.first == row.measure; });
    fmt::print("{:<16} {:<12} {}{}\n", row.name, word->second, row.doc,
               policy::is_settable(row.name) ? " (may be filled in)" : "");
  }
  fmt::print("{:<16} {:<12} {}\n", "labels.KEY", "text", "a label (may be filled in)");
  return 0;
}

const Command kTest{
    {"test", "What policies would have done to the jobs of the past"},
    {.description =
         "Nothing is applied. Each policy is asked alone, whatever its mode, about the jobs that "
         "accounting shows you. Where a policy asks for what accounting does not keep (an image, a "
         "network), it says of how many jobs; apply it with `mode: audit` to see what it would do "
         "to "
         "those that come.",
     .options = kTestOptions,
     .examples = {{"gtenant policy test -f rules.yaml -S now-30days",
                   "What these policies would have done to the jobs of a month"}},
     .run = run_test}};

const Command kFields{
    {"fields", "List the fields of a job that policies may name"},
    {.examples = {{"gtenant policy fields", "What `match` may name"}}, .run = run_fields}};

constexpr const Command* kSub[] = {&kTest, &kFields};

}  // namespace

const Command kTenantPolicy{
    {"policy", "Try policies out before they hold"},
    {.description = "Policies are documents (`kind: Policy`), applied and shown as all others. "
                    "docs/policies.md explains them.",
     .examples = {{"gtenant policy fields", "What a policy may ask"},
                  {"gtenant policy test -f rules.yaml",
                   "What it would have done in the last week"}},
     .sub = kSub}};

}  // namespace gantry::cli::gtenant_policy
