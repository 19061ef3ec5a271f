#include "cli/slurm/accounts/sacctmgr_change.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/slurm/accounts/account_limits.h"
#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

Error no_account(const std::string& name) {
  return {ErrorCode::not_found, fmt::format("account {} doesn't exist", name)};
}

bool may_submit(const tenancy::Tenant& tenant, const std::string& user) {
  return std::any_of(tenant.grants.begin(), tenant.grants.end(), [&](const tenancy::Grant& g) {
    return g.user == user && g.role >= tenancy::Role::user;
  });
}

bool has_share(const tenancy::Project& project, const std::string& user) {
  return std::any_of(project.users.begin(), project.users.end(),
                     [&](const tenancy::UserShare& share) { return share.user == user; });
}

bool has_user_share(const tenancy::Tenant& tenant, const std::string& user) {
  return std::any_of(tenant.projects.begin(), tenant.projects.end(),
                     [&](const tenancy::Project& project) { return has_share(project, user); });
}

// The QOS of one account or user, which override those of the account above.
Result<void> put_own_qos(tenancy::LimitTexts& texts, const std::vector<std::string>& above,
                         const Accounts::Settings& settings) {
  if (settings.qos) {
    const auto it = texts.find("QOS");
    const std::vector<std::string> now = it == texts.end() ? above : split_list(it->second);
    const std::string list = fmt::format("{}", fmt::join(settings.qos->applied_to(now), ","));
    texts.erase("QOS");
    if (!list.empty()) texts["QOS"] = list;
  }
  if (settings.default_qos) {
    texts.erase("DefaultQOS");
    if (!settings.default_qos->empty()) texts["DefaultQOS"] = *settings.default_qos;
  }
  return {};
}

// True for a limit of Slurm that has no counterpart here.
bool is_limit_of_slurm(const std::string& key) {
  static constexpr std::pair<std::string_view, std::size_t> kLimits[] = {
      {"grpjobsaccrue", 8},
      {"maxcpurunminsperuser", 8},
      {"maxjobsaccrue", 8},
      {"minpriothreshold", 4}};
  return std::any_of(std::begin(kLimits), std::end(kLimits), [&](const auto& limit) {
    return key.size() >= limit.second && limit.first.starts_with(key);
  });
}

void set_share(tenancy::Project& project, const std::string& user, std::uint32_t shares) {
  for (tenancy::UserShare& share : project.users)
    if (share.user == user) {
      share.shares = shares;
      return;
    }
  project.users.push_back({user, shares});
}

}  // namespace

Accounts::Accounts(const proto::TenancyDocuments& documents)
    : revision_(documents.revision), qos_(documents) {
  for (const tenancy::Document& document : documents.documents)
    if (const auto* tenant = std::get_if<tenancy::Tenant>(&document))
      before_[tenant->name] = now_[tenant->name] = *tenant;
}

Result<void> Accounts::put_limits(tenancy::Tenant& tenant, const AccountOfLimit& of,
                                  const Settings& settings) const {
  for (const auto& [key, value] : settings.limits) TRY(set_limit(tenant, of, key, value));
  const bool whole = of.user.empty() && of.account == tenant.name;
  if (whole || (!settings.qos && !settings.default_qos)) return {};
  if (settings.default_qos && !settings.default_qos->empty())
    TRY(qos_.check_known({*settings.default_qos}));
  if (settings.qos)
    for (const auto* names : {&settings.qos->added, &settings.qos->removed})
      TRY(qos_.check_known(*names));
  tenancy::LimitTexts texts = limits_of_use(tenant, of);
  TRY(put_own_qos(texts, qos_.allowed_to(tenant), settings));
  put_limits_of_use(tenant, of, texts);
  return {};
}

Result<Accounts::Place> Accounts::find(const std::string& account) {
  if (const auto it = now_.find(account); it != now_.end()) return Place{&it->second, nullptr};
  for (auto& [name, tenant] : now_)
    for (tenancy::Project& project : tenant.projects)
      if (project.name == account) return Place{&tenant, &project};
  return tl::unexpected(no_account(account));
}

bool Accounts::has_user(const std::string& user, const std::string& account) {
  return !places_of(user, account).empty();
}

std::string Accounts::tenant_above(const std::string& account) {
  const auto place = find(account);
  return place && place->project != nullptr ? place->tenant->name : std::string();
}

Result<void> Accounts::put_qos(tenancy::Tenant& tenant, const Settings& settings) const {
  if (settings.default_qos && !settings.default_qos->empty())
    TRY(qos_.check_known({*settings.default_qos}));
  if (settings.default_qos) tenant.default_class = *settings.default_qos;
  if (settings.qos) {
    for (const auto* names : {&settings.qos->added, &settings.qos->removed})
      TRY(qos_.check_known(*names));
    tenant.allowed_classes = settings.qos->applied_to(qos_.allowed_to(tenant));
  }
  // If a list has only one QOS, it becomes the default, as in Slurm, unless another default was
  // given.
  if (settings.qos && !settings.default_qos && tenant.default_class.empty() &&
      tenant.allowed_classes.size() == 1)
    tenant.default_class = tenant.allowed_classes.front();
  // Jobs may always name the default QOS. A list of QOS without the default would therefore not be
  // kept, so it is refused.
  const auto& allowed = tenant.allowed_classes;
  const std::string by_default = qos_.default_of(tenant);
  if ((!settings.qos && !settings.default_qos) || allowed.empty() ||
      std::find(allowed.begin(), allowed.end(), by_default) != allowed.end())
    return {};
  return fail(ErrorCode::wrong_state,
              fmt::format(" Error with request:\n These associations don't have access to their "
                          "default qos.\n Please give them access before they the default can be "
                          "set to this.\n  DefQOS = {:<10} A = {}",
                          by_default, tenant.name));
}

Result<void> Accounts::check_qos(const Settings& settings) const {
  tenancy::Tenant scratch;
  return put_qos(scratch, settings);
}

Result<bool> Accounts::add_account(const std::string& name, const Settings& settings) {
  if (find(name)) return false;
  if (settings.parent.empty() || settings.parent == "root") {
    tenancy::Tenant tenant;
    tenant.name = name;
    // An account of Slurm is no partition: its jobs go to the partitions, which determine where
    // they run, for how long, and on which network.
    tenant.own_queue = false;
    tenant.jobs.host_network = true;
    tenant.description = settings.description.value_or("");
    tenant.organization = settings.organization.value_or("");
    if (settings.fairshare)
      tenant.weight = thousandths_of(Times{*settings.fairshare}).narrow<std::uint32_t>().value();
    TRY(put_limits(tenant, {name}, settings));
    TRY(put_qos(tenant, settings));
    now_[name] = std::move(tenant);
    return true;
  }
  ASSIGN(parent, find(settings.parent));
  parent->tenant->projects.push_back({name,
                                      settings.fairshare.value_or(1),
                                      {{kNoUser, 0}},  // stays until users are added
                                      settings.description.value_or(""),
                                      settings.organization.value_or(""),
                                      parent->project == nullptr ? "" : settings.parent});
  TRY(put_limits(*parent->tenant, {name}, settings));
  return true;
}

Result<bool> Accounts::add_user(const std::string& name, const std::string& account,
                                const Settings& settings) {
  ASSIGN(place, find(account));
  const auto before = place->tenant->associations;
  TRY(put_limits(*place->tenant, {account, name}, settings));
  bool changed = before != place->tenant->associations;
  // The first association of a user is with the default account, unless another one is given.
  const bool first = places_of(name, "").empty() && default_account_of(name).empty();
  if (!may_submit(*place->tenant, name)) {
    place->tenant->grants.push_back({tenancy::Role::user, name, ""});
    changed = true;
  }
  if (first) place->tenant->default_accounts[name] = account;
  if (place->project == nullptr && settings.fairshare)
    return fail(ErrorCode::unsupported,
                fmt::format("fairshare of user {}: a user's shares are of a project, and {} is a "
                            "tenant",
                            name, account));
  if (place->project == nullptr) return changed;
  if (has_share(*place->project, name)) return changed;
  auto& users = place->project->users;
  std::erase_if(users, [](const tenancy::UserShare& share) { return share.user == kNoUser; });
  users.push_back({name, settings.fairshare.value_or(1)});
  return true;
}

Result<void> Accounts::modify_account(const std::string& name, const Settings& settings) {
  ASSIGN(place, find(name));
  if (!settings.parent.empty())
    return fail(ErrorCode::unsupported,
                fmt::format("account {}: an account is not moved to another parent; make it there "
                            "and delete it here",
                            name));
  if (place->project == nullptr) {
    if (settings.description) place->tenant->description = *settings.description;
    if (settings.organization) place->tenant->organization = *settings.organization;
    if (settings.fairshare)
      place->tenant->weight =
          thousandths_of(Times{*settings.fairshare}).narrow<std::uint32_t>().value();
    TRY(put_limits(*place->tenant, {name}, settings));
    return put_qos(*place->tenant, settings);
  }
  TRY(put_limits(*place->tenant, {name}, settings));
  if (settings.description) place->project->description = *settings.description;
  if (settings.organization) place->project->organization = *settings.organization;
  if (settings.fairshare) place->project->shares = *settings.fairshare;
  return {};
}

std::vector<Accounts::Place> Accounts::places_of(const std::string& user,
                                                 const std::string& account) {
  std::vector<Place> out;
  for (auto& [name, tenant] : now_) {
    if (!may_submit(tenant, user)) continue;
    if (account.empty() || account == name) out.push_back({&tenant, nullptr});
    for (tenancy::Project& project : tenant.projects) {
      const bool theirs = project.users.empty() || has_share(project, user);
      if (theirs && (account.empty() || account == project.name))
        out.push_back({&tenant, &project});
    }
  }
  return out;
}

std::vector<std::string> Accounts::accounts_of(const std::string& user) {
  std::vector<std::string> out;
  for (const Place& place : places_of(user, "")) {
    // A tenant with projects has its users in them.
    if (place.project != nullptr)
      out.push_back(place.project->name);
    else if (place.tenant->projects.empty())
      out.push_back(place.tenant->name);
  }
  return out;
}

std::string Accounts::default_account_of(const std::string& user) const {
  for (const auto& [name, tenant] : now_)
    if (const auto it = tenant.default_accounts.find(user); it != tenant.default_accounts.end())
      return it->second;
  return "";
}

Result<void> Accounts::put_default_account(const std::string& user, const std::string& account) {
  const auto places = places_of(user, account);
  if (places.empty())
    return fail(ErrorCode::not_found,
                fmt::format(" Can't modify because these users aren't associated with new default "
                            "account '{}'...\n  U = {:<9} C = {:<10}",
                            account, user, cluster_name()));
  for (auto& [name, tenant] : now_) tenant.default_accounts.erase(user);
  places.front().tenant->default_accounts[user] = account;
  return {};
}

Result<void> Accounts::put_admin_level(const std::string& user, tenancy::Role level) {
  const auto places = places_of(user, "");
  if (places.empty())
    return fail(ErrorCode::not_found,
                fmt::format("user {} has no association: a role stands in the document of a tenant "
                            "that the user belongs to",
                            user));
  for (auto& [name, tenant] : now_) {
    const bool member = may_submit(tenant, user);
    std::erase_if(tenant.grants, [&](const tenancy::Grant& grant) {
      return grant.user == user && grant.role >= tenancy::Role::operator_role;
    });
    if (member && !may_submit(tenant, user))
      tenant.grants.push_back({tenancy::Role::user, user, ""});  // the user stays a member
  }
  auto& grants = places.front().tenant->grants;
  if (level >= tenancy::Role::operator_role) grants.push_back({level, user, ""});
  return {};
}

Result<void> Accounts::put_coordinator(const std::string& account, const std::string& user,
                                       bool coordinates) {
  ASSIGN(place, find(account));
  if (place->project != nullptr)
    return fail(ErrorCode::unsupported,
                fmt::format(" account {} is a project: its coordinators are those of {}, the "
                            "account below root",
                            account, place->tenant->name));
  auto& grants = place->tenant->grants;
  std::erase_if(grants, [&](const tenancy::Grant& grant) {
    return grant.user == user && grant.role == tenancy::Role::tenant_admin;
  });
  if (coordinates)
    grants.push_back({tenancy::Role::tenant_admin, user, ""});
  else if (!may_submit(*place->tenant, user) && has_user_share(*place->tenant, user))
    grants.push_back({tenancy::Role::user, user, ""});  // still has the role user, for its projects
  return {};
}

Result<void> Accounts::modify_user(const std::string& name, const std::string& account,
                                   const Settings& settings) {
  if (!settings.default_account.empty()) TRY(put_default_account(name, settings.default_account));
  if (settings.admin_level) TRY(put_admin_level(name, *settings.admin_level));
  bool changed = (!settings.default_account.empty() || settings.admin_level) && !settings.fairshare;
  for (const Place& place : places_of(name, account))
    if (place.project != nullptr && has_share(*place.project, name) && settings.fairshare) {
      set_share(*place.project, name, *settings.fairshare);
      changed = true;
    }
  const bool limits = !settings.limits.empty() || settings.qos || settings.default_qos;
  if (limits)
    for (const std::string& one : accounts_of(name)) {
      if (!account.empty() && account != one) continue;
      const auto place = find(one);
      TRY(put_limits(*place->tenant, {one, name}, settings));
      changed = true;
    }
  if (changed || settings.reset_usage) return {};
  return fail(ErrorCode::not_found,
              fmt::format("user {} has no share in a project that could be set", name));
}

Result<void> Accounts::remove_account(const std::string& name) {
  ASSIGN(place, find(name));
  if (place->project == nullptr) {
    now_.erase(name);
    return {};
  }
  std::erase_if(place->tenant->default_accounts,
                [&](const auto& entry) { return entry.second == name; });
  std::erase_if(place->tenant->projects,
                [&](const tenancy::Project& project) { return project.name == name; });
  drop_limits_of_use(*place->tenant, {name});
  return {};
}

// Removes a user's associations. Without the association to a tenant the user loses the role in it;
// without the association to a project only the place in that project. A project without users is
// open to the whole tenant, so when the last user is removed, the user "nobody" is added.
Result<void> Accounts::remove_user(const std::string& name, const std::string& account) {
  const auto places = places_of(name, account);
  if (places.empty())
    return fail(ErrorCode::not_found, fmt::format("user {} has no association{}", name,
                                                  account.empty() ? "" : " with " + account));
  for (const Place& place : places) {
    drop_limits_of_use(*place.tenant, {account, name});
    if (place.project == nullptr) {
      std::erase_if(place.tenant->grants,
                    [&](const tenancy::Grant& grant) { return grant.user == name; });
      place.tenant->default_accounts.erase(name);
      continue;
    }
    auto& users = place.project->users;
    if (users.empty()) {
      if (account.empty()) continue;
      return fail(ErrorCode::unsupported,
                  fmt::format("account {} is open to all users of its tenant; add those that it "
                              "belongs to",
                              account));
    }
    std::erase_if(users, [&](const tenancy::UserShare& share) { return share.user == name; });
    if (const auto it = place.tenant->default_accounts.find(name);
        it != place.tenant->default_accounts.end() && it->second == place.project->name)
      place.tenant->default_accounts.erase(it);
    if (users.empty()) users.push_back({kNoUser, 0});
  }
  return {};
}

proto::ApplyTenancy Accounts::changes() const {
  proto::ApplyTenancy out;
  out.base_revision = revision_;
  out.comment = "sacctmgr";
  for (const auto& [name, tenant] : now_) {
    const auto old = before_.find(name);
    if (old == before_.end() || !(old->second == tenant)) out.documents.emplace_back(tenant);
  }
  for (const auto& [name, tenant] : before_)
    if (!now_.contains(name)) out.removals.push_back({"Tenant", name});
  return out;
}

Result<void> read_setting(const std::string& key, const std::string& value,
                          Accounts::Settings& settings) {
  std::string word = lower_case(key);
  char sign = '=';
  if (word.ends_with('+') || word.ends_with('-')) {
    sign = word.back();
    word.pop_back();
  }
  const auto is = [&](std::string_view name, std::size_t least) {
    return word.size() >= least && name.starts_with(word);
  };
  if (sign != '=' && !is("qoslevel", 1))
    return fail(ErrorCode::usage,
                fmt::format("{}: it is one value, which = sets; {}= is for QOS", word, sign));
  if (is("parent", 3)) {
    settings.parent = value;
  } else if (is("description", 3)) {
    settings.description = value;
  } else if (is("fairshare", 1) || is("shares", 2)) {
    ASSIGN(shares, parse_integer("fairshare", value, 0, 1'000'000));
    settings.fairshare = static_cast<std::uint32_t>(*shares);
  } else if (is("qoslevel", 1)) {
    ASSIGN(list, parse_name_list(value, sign));
    settings.qos = std::move(*list);
  } else if (is("defaultqos", 8)) {
    settings.default_qos = value == "-1" ? "" : value;
  } else if (is("organization", 1)) {
    settings.organization = value;
  } else if (is("defaultaccount", 8)) {
    settings.default_account = value;
  } else if (is("adminlevel", 2)) {
    const std::string level = lower_case(value);
    if (level.empty() || (!std::string_view("none").starts_with(level) &&
                          !std::string_view("operator").starts_with(level) &&
                          !std::string_view("administrator").starts_with(level)))
      return fail(ErrorCode::usage, fmt::format(" Invalid value for AdminLevel ({}): it is None, "
                                                "Operator or Administrator",
                                                value));
    settings.admin_level = level.front() == 'n'   ? tenancy::Role::user
                           : level.front() == 'o' ? tenancy::Role::operator_role
                                                  : tenancy::Role::admin;
  } else if (!is("cluster", 1)) {
    tenancy::Tenant scratch;
    if (is("rawusage", 7)) {
      if (value != "0" && value != "0.0")
        return fail(ErrorCode::usage, " RawUsage: it can be set to 0 only");
      settings.reset_usage = true;
      return {};
    }
    ASSIGN(limit, set_limit(scratch, {}, word, value));
    if (!*limit && value == "-1" && is_limit_of_slurm(word))
      return {};  // there is no limit to remove
    if (!*limit)
      return fail(ErrorCode::unsupported,
                  fmt::format("{} has no counterpart here: limits are those of sacctmgr, and a "
                              "tenant's quota, see gtenant apply",
                              key));
    settings.limits.emplace_back(word, value);
  }
  return {};
}

}  // namespace gantry::cli::slurm
