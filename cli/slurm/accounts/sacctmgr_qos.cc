#include "cli/slurm/accounts/sacctmgr_qos.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "cli/option.h"
#include "cli/session.h"
#include "cli/slurm/accounts/sacctmgr_verbs.h"
#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/records/history.h"
#include "common/proto/use.h"
#include "common/tenancy/use_limits.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

using tenancy::PriorityClass;
using tenancy::VictimMode;

bool contains_name(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> sorted_once(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ","));
}

// Flags are compared without regard to case.
void put_flags(const NameList& list, PriorityClass& cls) {
  const auto canonical = [](const std::vector<std::string>& names) {
    tenancy::LimitTexts texts;
    (void)tenancy::set_limit_text(texts, *tenancy::limit_named("Flags"), joined(names));
    return split_list(texts["Flags"]);
  };
  NameList named{list.replaces, canonical(list.added), canonical(list.removed)};
  const std::string flags = joined(named.applied_to(split_list(cls.limits["Flags"])));
  cls.limits.erase("Flags");
  if (!flags.empty()) cls.limits["Flags"] = flags;
}

Error request_error(const std::string& why) {
  return {ErrorCode::wrong_state, " Error with request: " + why};
}

}  // namespace

std::vector<std::string> NameList::applied_to(const std::vector<std::string>& now) const {
  std::vector<std::string> out = replaces ? std::vector<std::string>{} : now;
  out.insert(out.end(), added.begin(), added.end());
  std::erase_if(out, [&](const std::string& name) { return contains_name(removed, name); });
  return sorted_once(std::move(out));
}

Result<NameList> parse_name_list(const std::string& text, char sign) {
  NameList out;
  bool plain = false, changes = false;
  if (text != "-1")
    for (const std::string& word : split_list(text)) {
      const bool signed_word = word.starts_with('+') || word.starts_with('-');
      const char own = signed_word ? word.front() : sign;
      (own == '-' ? out.removed : out.added).push_back(signed_word ? word.substr(1) : word);
      (own == '=' ? plain : changes) = true;
    }
  if (plain && changes)
    return fail(ErrorCode::usage,
                " You can't set qos equal to something and then add or subtract from it in the "
                "same line");
  out.replaces = sign == '=' && !changes;
  return out;
}

QosBook::QosBook(const proto::TenancyDocuments& documents) : revision_(documents.revision) {
  bool own_default = false;
  for (const tenancy::Document& document : documents.documents) {
    if (const auto* cls = std::get_if<PriorityClass>(&document)) {
      documents_[cls->name] = *cls;
      own_default = own_default || cls->is_default;
    }
    if (const auto* tenant = std::get_if<tenancy::Tenant>(&document)) tenants_.push_back(*tenant);
    if (const auto* tier = std::get_if<tenancy::Tier>(&document))
      tiers_[tier->name] = tier->defaults;
  }
  now_ = documents_;
  for (PriorityClass& cls : tenancy::built_in_classes()) {
    cls.is_default = cls.is_default && !own_default;
    now_.emplace(cls.name, cls);
  }
  before_ = now_;
}

Result<void> QosBook::check_known(const std::vector<std::string>& names) const {
  std::vector<std::string> valid;
  for (const auto& [name, cls] : now_) valid.push_back(name);
  for (const std::string& name : names)
    if (!now_.contains(name))
      return fail(ErrorCode::not_found,
                  fmt::format(" You gave a bad qos '{}'. Valid QOS's are {}", name, joined(valid)));
  return {};
}

std::vector<std::string> QosBook::victims_of(const PriorityClass& cls) const {
  std::vector<std::string> out;
  if (cls.preempts && !cls.victims.empty()) return sorted_once(cls.victims);
  for (const auto& [name, other] : now_)
    if (cls.preempts && other.preemptible && other.value < cls.value) out.push_back(name);
  return out;
}

std::string QosBook::default_of(const tenancy::Tenant& tenant) const {
  const auto tier = tiers_.find(tenant.tier);
  if (!tenant.default_class.empty()) return tenant.default_class;
  if (tier != tiers_.end() && !tier->second.default_class.empty())
    return tier->second.default_class;
  for (const auto& [name, cls] : now_)
    if (cls.is_default) return name;
  return {};
}

std::vector<std::string> QosBook::allowed_to(const tenancy::Tenant& tenant) const {
  const auto tier = tiers_.find(tenant.tier);
  std::vector<std::string> out = tenant.allowed_classes;
  if (out.empty() && tier != tiers_.end()) out = tier->second.allowed_classes;
  const bool open = out.empty();
  const std::string by_default = default_of(tenant);
  for (const auto& [name, cls] : now_)
    if ((open && !cls.preempts) || name == by_default) out.push_back(name);
  return sorted_once(std::move(out));
}

// Sets Preempt for all names of one command together. Several new QOS may name each other, so all
// of them must exist before the first list is checked.
Result<void> QosBook::set_preempt(const std::vector<std::string>& names, const NameList& list) {
  TRY(check_known(list.added));
  TRY(check_known(list.removed));
  for (const std::string& name : names) {
    PriorityClass& cls = now_.at(name);
    const std::vector<std::string> wanted = list.applied_to(victims_of(cls));
    cls.preempts = !wanted.empty();
    cls.victims.clear();
    for (const std::string& victim : wanted)
      if (!now_.at(victim).preemptible)
        return tl::unexpected(request_error(
            fmt::format("Preempt: {} is not taken from, as its PreemptMode is off", victim)));
    if (victims_of(cls) != wanted) cls.victims = wanted;  // other classes than just all lower ones
  }
  return {};
}

Result<std::vector<std::string>> QosBook::add(const std::vector<std::string>& names,
                                              const QosSettings& settings) {
  std::vector<std::string> fresh;
  for (const std::string& name : names) {
    if (now_.contains(name)) continue;
    PriorityClass cls;
    cls.name = cls.description = name;
    now_[name] = cls;
    fresh.push_back(name);
  }
  return modify(fresh, settings);
}

Result<std::vector<std::string>> QosBook::modify(const std::vector<std::string>& names,
                                                 const QosSettings& settings) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    const auto it = now_.find(name);
    if (it == now_.end()) continue;
    PriorityClass& cls = it->second;
    if (settings.description) cls.description = *settings.description;
    if (settings.priority) cls.value = *settings.priority;
    if (settings.grace) cls.grace = *settings.grace;
    if (settings.exempt) cls.min_run_time = *settings.exempt;
    if (settings.preemptible) cls.preemptible = *settings.preemptible;
    if (settings.victim_mode) cls.victim_mode = *settings.victim_mode;
    for (const auto& [limit, value] : settings.limits)
      if (auto set = tenancy::set_limit_text(cls.limits, *tenancy::limit_named(limit), value); !set)
        return tl::unexpected(request_error(set.error().message));
    if (settings.flags) put_flags(*settings.flags, cls);
    found.push_back(name);
  }
  if (settings.preempt) TRY(set_preempt(found, *settings.preempt));
  return found;
}

Result<void> QosBook::check_removal(const std::string& name, const std::string& cluster) const {
  std::string defaults, users;
  if (now_.at(name).is_default)
    defaults += fmt::format("  DefQOS = {:<10} C = {:<10} A = root\n", name, cluster);
  for (const tenancy::Tenant& tenant : tenants_) {
    const bool by_cluster = now_.at(name).is_default && tenant.default_class.empty();
    if (default_of(tenant) == name && !by_cluster)
      defaults += fmt::format("  DefQOS = {:<10} C = {:<10} A = {}\n", name, cluster, tenant.name);
    if (contains_name(tenant.allowed_classes, name))
      users += fmt::format("\n  QOS = {:<10} C = {:<10} A = {}", name, cluster, tenant.name);
  }
  if (!defaults.empty())
    return fail(ErrorCode::wrong_state,
                " Associations listed below have these as their Default QOS.\n" + defaults +
                    " Please either remove the qos' listed above from list and resubmit,\n"
                    " or change the default qos to remove the qos.\n Changes Discarded");
  if (!users.empty())
    return tl::unexpected(request_error(
        fmt::format("the accounts listed below have it: take it from them first, with modify "
                    "account NAME set QOS-={}{}",
                    name, users)));
  for (const PriorityClass& cls : tenancy::built_in_classes())
    if (cls.name == name)
      return tl::unexpected(request_error(
          documents_.contains(name)
              ? fmt::format("QOS {0} is always there; gtenant delete priorityclass {0} makes it "
                            "again what it was",
                            name)
              : fmt::format("QOS {} is always there", name)));
  return {};
}

Result<std::vector<std::string>> QosBook::remove(const std::vector<std::string>& names,
                                                 const std::string& cluster) {
  std::vector<std::string> found;
  for (const std::string& name : sorted_once(names)) {
    if (!now_.contains(name)) continue;
    TRY(check_removal(name, cluster));
    now_.erase(name);
    for (auto& [other, cls] : now_)
      if (std::erase(cls.victims, name) > 0 && cls.victims.empty()) cls.preempts = false;
    found.push_back(name);
  }
  return found;
}

proto::ApplyTenancy QosBook::changes() const {
  proto::ApplyTenancy out;
  out.base_revision = revision_;
  out.comment = "sacctmgr";
  for (const auto& [name, cls] : now_) {
    const auto old = before_.find(name);
    if (old == before_.end() || !(old->second == cls)) out.documents.emplace_back(cls);
  }
  for (const auto& [name, cls] : before_)
    if (!now_.contains(name)) out.removals.push_back({std::string(PriorityClass::kName), name});
  return out;
}

// sacctmgr add qos, modify qos and delete qos. A change is read, worked out on the existing
// classes, confirmed by the user, and applied to the revision that was read.
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
      // A QOS belongs to this cluster; other clusters have no known QOS.
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

// The class of a job determines its rank until the job has ended. So a class cannot be removed
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
