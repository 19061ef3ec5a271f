#include "ctld/core/tenancy/admission.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "config/config.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/tenancy/reservations.h"
#include "ctld/core/tenancy/secrets.h"
#include "ctld/core/tenancy/storage.h"

namespace gantry::core {
namespace {

using NameList = std::vector<std::string>;

bool among(const NameList& list, const std::string& name) {
  return !name.empty() && std::find(list.begin(), list.end(), name) != list.end();
}

// A tenant's name in a list stands for that tenant only, not for a project of the same name in
// another one.
bool account_allowed(const State& state, const PartitionConfig& p, const std::string& account,
                     const std::string& tenant) {
  const bool others = account != tenant && state.tenancy.tenant(account) != nullptr;
  const std::string project = tenant.empty() ? std::string() : tenant + "/" + account;
  const auto named_in = [&](const NameList& list) {
    return (!others && among(list, account)) || among(list, tenant) || among(list, project);
  };
  return !named_in(p.deny_accounts) && (p.allow_accounts.empty() || named_in(p.allow_accounts));
}

bool class_allowed(const PartitionConfig& p, const std::string& name) {
  return !among(p.deny_qos, name) && (p.allow_qos.empty() || among(p.allow_qos, name));
}

std::string rule(std::string_view what, const NameList& allow, const NameList& deny) {
  return allow.empty() ? fmt::format("deny_{}: {}", what, fmt::join(deny, ", "))
                       : fmt::format("allow_{}: {}", what, fmt::join(allow, ", "));
}

bool has_lists(const PartitionConfig& p) {
  return !(p.allow_accounts.empty() && p.deny_accounts.empty() && p.allow_qos.empty() &&
           p.deny_qos.empty());
}

// The rule as the asker may read it, without names of other tenants that the asker may not see.
std::string accounts_rule(const State& state, const Identity& who, const PartitionConfig& p) {
  const Sight sight(state, who);
  return rule("accounts", sight.accounts(p.allow_accounts), sight.accounts(p.deny_accounts));
}

Result<void> check_groups(const Identity& who, const PartitionConfig& p) {
  if (p.allow_groups.empty() || is_admin(who)) return {};
  for (const std::string& group : who.groups)
    if (among(p.allow_groups, group)) return {};
  return fail(ErrorCode::permission_denied,
              fmt::format("{} is in no group that may use partition {} (allow_groups: {})",
                          who.owner.user, p.name, fmt::join(p.allow_groups, ", ")));
}

}  // namespace

Result<void> check_open(const Identity& who, const Partition& queue, bool reserved) {
  if (!queue.accepts_jobs())
    return fail(ErrorCode::wrong_state,
                fmt::format("partition {} accepts no jobs now", queue.name));
  if (queue.declared->admins_only && !is_admin(who))
    return fail(ErrorCode::permission_denied,
                fmt::format("partition {} is for administrators alone", queue.name));
  if (queue.declared->reservation_only && !reserved)
    return fail(ErrorCode::permission_denied,
                fmt::format("partition {} takes only jobs that name a reservation", queue.name));
  return {};
}

Result<void> check_admission(const State& state, const Identity& who, const Partition& queue,
                             const Applicant& job) {
  if (auto r = check_groups(who, *queue.declared); !r) return r;
  return check_partition_lists(state, who, queue, job);
}

Result<void> check_partition_lists(const State& state, const Identity& who, const Partition& queue,
                                   const Applicant& job) {
  const PartitionConfig& p = *queue.declared;
  if (!has_lists(p)) return {};
  const std::string tenant = tenant_name_of(state, queue);
  if (!account_allowed(state, p, job.account, tenant))
    return fail(
        ErrorCode::permission_denied,
        fmt::format("{} may not use partition {} ({})",
                    job.account.empty() ? "a job without an account" : "account " + job.account,
                    p.name, accounts_rule(state, who, p)));
  if (!class_allowed(p, job.priority_class))
    return fail(ErrorCode::permission_denied,
                fmt::format("priority class \"{}\" may not be used in partition {} ({})",
                            job.priority_class, p.name, rule("qos", p.allow_qos, p.deny_qos)));
  return {};
}

std::optional<Verdict> verdict_of_admission(const State& state, const Job& job) {
  const sched::ClassKey& key = class_of(state, job);
  const Partition& queue = state.partition(key.partition);
  if (auto missing = verdict_of_secrets(state, job)) return missing;
  if (auto denied = verdict_of_datasets(state, job)) return denied;
  if (queue.declared == nullptr) return std::nullopt;
  if (owes_tenant(state, queue)) return Verdict{Reason::no_tenant, 0, 0, queue.name};
  if (!key.reservation.empty() && !let_into(state, job, key.reservation))
    return Verdict{Reason::reservation, 0, 0, key.reservation};
  const PartitionConfig& p = *queue.declared;
  if (!has_lists(p)) return std::nullopt;
  if (!account_allowed(state, p, std::string(state.names.text(job.account)),
                       tenant_name_of(state, queue)))
    return Verdict{Reason::account_not_allowed, 0, 0, p.name};
  const auto& classes = state.tenancy.class_names;
  if (key.priority_class < classes.size() && !class_allowed(p, classes[key.priority_class]))
    return Verdict{Reason::qos_not_allowed, 0, 0, p.name};
  return std::nullopt;
}

std::vector<std::string> unknown_in_lists(const State& state, const Config& config) {
  std::set<std::string> accounts, pairs;
  for (const auto& [name, tenant] : state.tenancy.compiled.tenants) {
    accounts.insert(name);
    for (const tenancy::Project& p : tenant.effective.projects) {
      accounts.insert(p.name);
      pairs.insert(name + "/" + p.name);
    }
  }
  std::set<std::string> classes;
  for (const tenancy::PriorityClass& c : state.tenancy.compiled.classes) classes.insert(c.name);
  std::vector<std::string> out;
  const auto look = [&](const PartitionConfig& p, std::string_view option, const NameList& list,
                        const std::set<std::string>& known, std::string_view what) {
    for (const std::string& name : list)
      if (!known.empty() && !known.contains(name) && !pairs.contains(name))
        out.push_back(fmt::format("partition {}: {}: there is no {} \"{}\"; there are {}", p.name,
                                  option, what, name, fmt::join(known, ", ")));
  };
  for (const PartitionConfig& p : config.partitions) {
    look(p, "allow_accounts", p.allow_accounts, accounts, "tenant or project");
    look(p, "deny_accounts", p.deny_accounts, accounts, "tenant or project");
    look(p, "allow_qos", p.allow_qos, classes, "priority class");
    look(p, "deny_qos", p.deny_qos, classes, "priority class");
  }
  return out;
}

}  // namespace gantry::core
