#include "cli/slurm/sacctmgr_change.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "cli/slurm/account_limits.h"
#include "cli/slurm/format.h"
#include "common/text.h"

namespace gantry::cli::slurm {
namespace {

// Alone in a project that belongs to none: one that names nobody at all is open to its tenant.
constexpr const char* kNoUser = "nobody";

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

Result<void> put_limits(tenancy::Tenant& tenant, const Accounts::Settings& settings) {
  for (const auto& [key, value] : settings.limits)
    if (const auto set = set_limit(tenant, key, value); !set) return tl::unexpected(set.error());
  return {};
}

tl::unexpected<Error> no_limits(const std::string& name, const Accounts::Settings& settings) {
  return fail(ErrorCode::unsupported,
              fmt::format("{}: {}: a limit is a tenant's, the account below root", name,
                          settings.limits.front().first));
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

Accounts::Accounts(const proto::TenancyDocuments& documents) : revision_(documents.revision) {
  for (const tenancy::Document& document : documents.documents)
    if (const auto* tenant = std::get_if<tenancy::Tenant>(&document))
      before_[tenant->name] = now_[tenant->name] = *tenant;
}

Result<Accounts::Place> Accounts::find(const std::string& account) {
  if (const auto it = now_.find(account); it != now_.end()) return Place{&it->second, nullptr};
  for (auto& [name, tenant] : now_)
    for (tenancy::Project& project : tenant.projects)
      if (project.name == account) return Place{&tenant, &project};
  return tl::unexpected(no_account(account));
}

std::string Accounts::tenant_above(const std::string& account) {
  const auto place = find(account);
  return place && place->project != nullptr ? place->tenant->name : std::string();
}

Result<bool> Accounts::add_account(const std::string& name, const Settings& settings) {
  if (find(name)) return false;
  if (settings.parent.empty() || settings.parent == "root") {
    tenancy::Tenant tenant;
    tenant.name = name;
    tenant.description = settings.description.value_or("");
    if (settings.fairshare) tenant.weight = *settings.fairshare * 1000;
    if (auto put = put_limits(tenant, settings); !put) return tl::unexpected(put.error());
    now_[name] = std::move(tenant);
    return true;
  }
  const auto parent = find(settings.parent);
  if (!parent) return tl::unexpected(parent.error());
  if (parent->project != nullptr)
    return fail(ErrorCode::unsupported,
                fmt::format("account {} is a project: accounts have two levels, tenants below root "
                            "and projects below them",
                            settings.parent));
  if (settings.description)
    return fail(ErrorCode::unsupported,
                fmt::format("account {}: a project has no description of its own", name));
  if (!settings.limits.empty()) return no_limits("account " + name, settings);
  parent->tenant->projects.push_back(
      {name, settings.fairshare.value_or(1), {{kNoUser, 0}}});  // until users are added
  return true;
}

Result<bool> Accounts::add_user(const std::string& name, const std::string& account,
                                const Settings& settings) {
  const auto place = find(account);
  if (!place) return tl::unexpected(place.error());
  if (!settings.limits.empty()) return no_limits("user " + name, settings);
  bool changed = false;
  if (!may_submit(*place->tenant, name)) {
    place->tenant->grants.push_back({tenancy::Role::user, name, ""});
    changed = true;
  }
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
  const auto place = find(name);
  if (!place) return tl::unexpected(place.error());
  if (!settings.parent.empty())
    return fail(ErrorCode::unsupported,
                fmt::format("account {}: an account is not moved to another parent; make it there "
                            "and delete it here",
                            name));
  if (place->project == nullptr) {
    if (settings.description) place->tenant->description = *settings.description;
    if (settings.fairshare) place->tenant->weight = *settings.fairshare * 1000;
    return put_limits(*place->tenant, settings);
  }
  if (!settings.limits.empty()) return no_limits("account " + name, settings);
  if (settings.description)
    return fail(ErrorCode::unsupported,
                fmt::format("account {}: a project has no description of its own", name));
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

Result<void> Accounts::modify_user(const std::string& name, const std::string& account,
                                   const Settings& settings) {
  if (!settings.limits.empty()) return no_limits("user " + name, settings);
  bool changed = false;
  for (const Place& place : places_of(name, account))
    if (place.project != nullptr && has_share(*place.project, name) && settings.fairshare) {
      set_share(*place.project, name, *settings.fairshare);
      changed = true;
    }
  if (changed) return {};
  return fail(ErrorCode::not_found,
              fmt::format("user {} has no share in a project that could be set", name));
}

Result<void> Accounts::remove_account(const std::string& name) {
  const auto place = find(name);
  if (!place) return tl::unexpected(place.error());
  if (place->project == nullptr) {
    now_.erase(name);
    return {};
  }
  std::erase_if(place->tenant->projects,
                [&](const tenancy::Project& project) { return project.name == name; });
  return {};
}

// With the tenant's role everything goes; of a project only that the user belongs to it. One that
// names nobody is the whole tenant's, so when the last one goes it is left to nobody, by name.
Result<void> Accounts::remove_user(const std::string& name, const std::string& account) {
  const auto places = places_of(name, account);
  if (places.empty())
    return fail(ErrorCode::not_found, fmt::format("user {} has no association{}", name,
                                                  account.empty() ? "" : " with " + account));
  for (const Place& place : places) {
    if (place.project == nullptr) {
      std::erase_if(place.tenant->grants,
                    [&](const tenancy::Grant& grant) { return grant.user == name; });
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

std::string Accounts::dump(const std::string& cluster) const {
  std::string out =
      fmt::format("Cluster - '{}':Fairshare=1:QOS='normal'\nParent - 'root'\n", cluster);
  for (const auto& [name, tenant] : now_)
    out += fmt::format("Account - '{}':Description='{}':Organization='{}':Fairshare={}\n", name,
                       tenant.description, name, tenant.weight.value_or(1000) / 1000);
  for (const auto& [name, tenant] : now_) {
    out += fmt::format("Parent - '{}'\n", name);
    std::set<std::string> users;
    for (const tenancy::Grant& grant : tenant.grants)
      if (!grant.user.empty() && grant.role >= tenancy::Role::user) users.insert(grant.user);
    for (const std::string& user : users)
      out += fmt::format("User - '{}':DefaultAccount='{}':Fairshare=1\n", user, name);
    for (const tenancy::Project& project : tenant.projects)
      if (project.name != name)
        out += fmt::format("Account - '{}':Description='{}':Organization='{}':Fairshare={}\n",
                           project.name, project.name, name, project.shares);
    for (const tenancy::Project& project : tenant.projects) {
      if (project.name == name || project.users.empty()) continue;
      if (project.users.front().user == kNoUser) continue;
      out += fmt::format("Parent - '{}'\n", project.name);
      for (const tenancy::UserShare& share : project.users)
        out += fmt::format("User - '{}':DefaultAccount='{}':Fairshare={}\n", share.user,
                           project.name, share.shares);
    }
  }
  return out;
}

Result<void> read_setting(const std::string& key, const std::string& value,
                          Accounts::Settings& settings) {
  const std::string word = lower_case(key);
  const auto is = [&](std::string_view name, std::size_t least) {
    return word.size() >= least && name.starts_with(word);
  };
  if (is("parent", 3)) {
    settings.parent = value;
  } else if (is("description", 3)) {
    settings.description = value;
  } else if (is("fairshare", 1) || is("shares", 2)) {
    const auto shares = parse_integer("fairshare", value, 0, 1'000'000);
    if (!shares) return tl::unexpected(shares.error());
    settings.fairshare = static_cast<std::uint32_t>(*shares);
  } else if (!is("organization", 1) && !is("cluster", 1) && !is("defaultaccount", 8)) {
    tenancy::Tenant scratch;
    const auto limit = set_limit(scratch, word, value);
    if (!limit) return tl::unexpected(limit.error());
    if (!*limit)
      return fail(ErrorCode::unsupported,
                  fmt::format("{} has no counterpart here: limits are a tenant's quota, see "
                              "gtenant apply",
                              key));
    settings.limits.emplace_back(word, value);
  }
  return {};
}

namespace {

// "Account - 'cs':Fairshare=2:Description='x'": the kind, the name, and settings.
struct DumpLine {
  std::string kind, name;
  std::vector<std::pair<std::string, std::string>> settings;
};

std::string dump_unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'')
    text = text.substr(1, text.size() - 2);
  return std::string(text);
}

std::vector<std::string> dump_parts(std::string_view text) {  // at ':' outside of quotes
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : text) {
    quoted = quoted != (c == '\'');
    if (c == ':' && !quoted)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

std::optional<DumpLine> read_dump_line(std::string_view line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  DumpLine out;
  out.kind = lower_case(line.substr(0, dash));
  const auto parts = dump_parts(line.substr(dash + 3));
  out.name = dump_unquoted(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    out.settings.emplace_back(
        parts[i].substr(0, equals),
        equals == std::string::npos ? "" : dump_unquoted(parts[i].substr(equals + 1)));
  }
  return out;
}

// Limits of what is below a tenant are named, not kept.
void drop_limits(const DumpLine& line, Accounts::Settings& settings,
                 std::vector<std::string>& ignored) {
  for (const auto& [key, value] : settings.limits)
    ignored.push_back(fmt::format("{} {}: {}={}", line.kind, line.name, key, value));
  settings.limits.clear();
}

Result<void> take_dump_line(const DumpLine& line, const std::string& parent, Accounts& accounts,
                            std::vector<std::string>& ignored) {
  Accounts::Settings settings;
  for (const auto& [key, value] : line.settings)
    if (const auto read = read_setting(key, value, settings); !read)
      ignored.push_back(fmt::format("{} {}: {}={}", line.kind, line.name, key, value));
  settings.parent = parent;
  const bool below_root = parent.empty() || parent == "root";
  if (line.kind == "account") {
    if (!below_root) settings.description.reset();
    if (const std::string tenant = below_root ? "" : accounts.tenant_above(parent);
        !tenant.empty()) {
      ignored.push_back(
          fmt::format("account {}: its parent {} is a project of {}, and so is it now", line.name,
                      parent, tenant));
      settings.parent = tenant;
    }
    if (!below_root) drop_limits(line, settings, ignored);
    auto added = accounts.add_account(line.name, settings);
    return added ? Result<void>() : tl::unexpected(added.error());
  }
  if (below_root) {  // root and its like administer the cluster, which is not an account's affair
    ignored.push_back(fmt::format("user {} of the root account", line.name));
    return {};
  }
  drop_limits(line, settings, ignored);
  Accounts::Settings of_user;
  of_user.fairshare = settings.fairshare;
  auto added = accounts.add_user(line.name, parent, of_user);
  if (!added && added.error().code == ErrorCode::unsupported) {  // a share of a tenant
    if (settings.fairshare != 1u)
      ignored.push_back(fmt::format("user {}: Fairshare={} of {}", line.name,
                                    settings.fairshare.value_or(1), parent));
    added = accounts.add_user(line.name, parent, {});
  }
  return added ? Result<void>() : tl::unexpected(added.error());
}

}  // namespace

Result<void> load_dump(const std::string& text, Accounts& accounts,
                       std::vector<std::string>& ignored) {
  std::string parent;
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    ++number;
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.empty() || line.front() == '#') continue;
    const auto read = read_dump_line(line);
    const auto wrong = [&](const std::string& why) {
      return fail(ErrorCode::malformed, fmt::format("line {}: {}", number, why));
    };
    if (!read) return wrong("\"KIND - 'NAME':KEY=VALUE\" is expected");
    if (read->kind == "parent") {
      parent = read->name;
    } else if (read->kind == "cluster") {
      for (const auto& [key, value] : read->settings)
        if (key != "Fairshare" && key != "QOS")
          ignored.push_back(fmt::format("cluster {}: {}={}", read->name, key, value));
    } else if (read->kind != "account" && read->kind != "user") {
      return wrong(fmt::format("\"{}\" is none of Cluster, Parent, Account and User", read->kind));
    } else if (const auto taken = take_dump_line(*read, parent, accounts, ignored); !taken) {
      return wrong(taken.error().message);
    }
  }
  return {};
}

}  // namespace gantry::cli::slurm
