// sacctmgr add qos, modify qos and delete qos. A change is read, worked out on the existing
// classes, confirmed by the user, and applied to the revision that was read.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "cli/session.h"
#include "cli/slurm/accounts/sacctmgr_qos.h"
#include "cli/slurm/accounts/sacctmgr_verbs.h"
#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/records/history.h"
#include "common/proto/use.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

struct QosPlan {
  std::vector<std::string> names;
  QosSettings settings;
  bool has_settings = false;
};

// For `add`, names and settings may stand in any order. For the other verbs, names come before
// `set` and settings after it.
Result<QosPlan> read_qos_plan(std::string_view verb, const std::vector<std::string>& words) {
  QosPlan plan;
  const bool adding = verb == "add";
  bool setting = adding;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string key = lower_case(std::string_view(words[i]).substr(0, equals));
    const bool bare = equals == std::string::npos;
    const bool names = !key.empty() && (std::string_view("names").starts_with(key) ||
                                        std::string_view("qoslevel").starts_with(key));
    if (bare && (key == "where" || key == "set")) {
      setting = adding || key == "set";
    } else if ((adding || !setting) && (bare || names)) {
      for (std::string& name : split_list(bare ? words[i] : words[i].substr(equals + 1)))
        if (std::find(plan.names.begin(), plan.names.end(), name) == plan.names.end())
          plan.names.push_back(std::move(name));
    } else if (!setting && !bare && std::string_view("clusters").starts_with(key)) {
      // A QOS is of this cluster; another one's name means no QOS that is known here.
      if (const std::string cluster = words[i].substr(equals + 1); cluster != cluster_name())
        return fail(ErrorCode::not_found,
                    fmt::format(" This cluster '{}' has no QOS here.", cluster));
    } else if (!setting) {
      return fail(
          ErrorCode::usage,
          fmt::format(" Unknown condition: {}\n Use keyword 'set' to modify value", words[i]));
    } else {
      TRY(read_qos_setting(words[i], plan.settings));
      plan.has_settings = true;
    }
  }
  if (adding && plan.names.empty()) return fail(ErrorCode::usage, " Need name of qos to add.");
  if (verb == "modify" && !plan.has_settings)
    return fail(ErrorCode::usage, " You didn't give me anything to set");
  if (verb == "delete" && (plan.names.empty() || plan.has_settings))
    return fail(ErrorCode::usage, " No conditions given to remove, not executing.");
  return plan;
}

// The class of a job decides its rank until the job has ended. A class can therefore not be removed
// while it has such jobs.
Result<void> check_no_jobs(Session& session, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  proto::QueryHistory query;
  query.start = system_now();  // jobs that ended earlier do not matter
  ASSIGN(history, ask_history(session, std::move(query)));
  HistorySieve sieve;
  sieve.qos = names;
  keep_only(*history, sieve);
  std::string jobs;
  const std::string cluster = cluster_name();
  for (const proto::HistoryRow& job : history->jobs)
    if (job.row.phase != Phase::ended)
      jobs += fmt::format("\n  JobID = {:<10} C = {:<10} A = {:<10} U = {:<9}", job.row.job.value(),
                          cluster, job.row.account, job.row.user);
  if (jobs.empty()) return {};
  return fail(ErrorCode::wrong_state,
              " Error with request: Job(s) active, cancel job(s) before remove" + jobs);
}

std::string qos_title(std::string_view verb) {
  return verb == "add"      ? " Adding QOS(s)"
         : verb == "modify" ? " Modified qos..."
                            : " Deleting QOS(s)...";
}

Result<std::vector<std::string>> change_book(Session& session, std::string_view verb,
                                             const QosPlan& plan, QosBook& book) {
  if (verb == "add") return book.add(plan.names, plan.settings);
  if (verb == "modify") return book.modify(plan.names, plan.settings);
  auto removed = book.remove(plan.names, cluster_name());
  if (removed) TRY(check_no_jobs(session, *removed));
  return removed;
}

void print_qos_plan(std::string_view verb, const QosPlan& plan,
                    const std::vector<std::string>& names) {
  fmt::print("{}\n", qos_title(verb));
  for (const std::string& name : names) fmt::print("  {}\n", name);
  if (verb == "add")
    fmt::print(" Settings\n  Description    = {}\n{}",
               plan.settings.description.value_or(names.back()), shown_settings(plan.settings));
}

}  // namespace

Result<int> change_qos(const Invocation& call, std::string_view verb,
                       const std::vector<std::string>& words, bool immediate) {
  auto plan = read_qos_plan(verb, words);
  if (!plan) return say_refusal(plan.error());
  ASSIGN(session, Session::open(call.program()));
  ASSIGN(documents, session->call<proto::TenancyDocuments>(proto::GetTenancy{}));
  QosBook book(*documents);
  if (plan->names.empty()) {
    if (!immediate && !person_agrees("You didn't set any conditions with 'WHERE'.\n"
                                     "Are you sure you want to continue?")) {
      fmt::print("Aborted\n");
      return 0;
    }
    for (const auto& [name, cls] : book.all()) plan->names.push_back(name);
  }
  const auto names = change_book(*session, verb, *plan, book);
  if (!names) return say_refusal(names.error());
  if (names->empty()) {
    fmt::print("{}\n", verb == "add"      ? " Nothing new added."
                       : verb == "modify" ? " Nothing modified"
                                          : " Nothing deleted");
    return 1;
  }
  print_qos_plan(verb, *plan, *names);
  if (!immediate && !person_agrees()) {
    fmt::print(" Changes Discarded\n");
    return 0;
  }
  if (plan->settings.reset_usage)
    for (const std::string& name : *names)
      if (const auto reset = session->call<proto::Ok>(proto::ResetUse{name, "", ""}); !reset)
        return say_refusal(reset.error());
  const proto::ApplyTenancy changes = book.changes();
  // The documents already say this.
  if (changes.documents.empty() && changes.removals.empty()) return 0;
  const auto done = session->call<proto::TenancyPlanned>(changes);
  if (!done)
    return say_refusal(
        {done.error().code,
         fmt::format(" {}: {}", verb == "add" ? "Problem adding QOS" : "Error with request",
                     done.error().message)});
  return 0;
}

}  // namespace gantry::cli::slurm
