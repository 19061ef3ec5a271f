// Writes and reads sacctmgr's dump file: accounts and users below their parents.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cli/slurm/accounts/sacctmgr_change.h"
#include "cli/slurm/format.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {

namespace {

// The QOS that the account's own document names, in Slurm's order of keys.
std::string dumped_qos(const tenancy::Tenant& tenant) {
  std::string out;
  if (!tenant.default_class.empty()) out += fmt::format(":DefaultQOS='{}'", tenant.default_class);
  if (!tenant.allowed_classes.empty())
    out += fmt::format(":QOS='{}'", fmt::join(tenant.allowed_classes, ","));
  return out;
}

// The account that is charged for jobs of the user that name none, if the tenant's document sets
// it.
std::string dumped_default(const tenancy::Tenant& tenant, const std::string& user) {
  if (const auto it = tenant.default_accounts.find(user); it != tenant.default_accounts.end())
    return it->second;
  for (const tenancy::Project& project : tenant.projects)
    for (const tenancy::UserShare& share : project.users)
      if (share.user == user) return project.name;
  return tenant.name;
}

// Limits of use, each in quotes, because times contain colons.
std::string dumped_limits(const tenancy::Tenant& tenant, const AccountOfLimit& of) {
  std::string out;
  for (const auto& [name, text] : limits_of_use(tenant, of))
    out += fmt::format(":{}='{}'", name, text);
  return out;
}

const std::string& or_else(const std::string& text, const std::string& other) {
  return text.empty() ? other : text;
}

}  // namespace

namespace {

std::string dumped_account(const tenancy::Tenant& tenant, const tenancy::Project& project) {
  return fmt::format("Account - '{}':Description='{}':Organization='{}':Fairshare={}{}\n",
                     project.name, or_else(project.description, project.name),
                     or_else(project.organization, tenant.name), project.shares,
                     dumped_limits(tenant, {project.name}));
}

// The tenant's projects, except the one with its name, each after its parent.
std::vector<const tenancy::Project*> from_the_top(const tenancy::Tenant& tenant) {
  std::vector<const tenancy::Project*> out;
  for (const tenancy::Project& project : tenant.projects)
    if (project.name != tenant.name) out.push_back(&project);
  const auto depth = [&](const tenancy::Project* p) {
    return tenancy::projects_above(tenant.projects, p->name).size();
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const auto* a, const auto* b) { return depth(a) < depth(b); });
  return out;
}

}  // namespace

std::string Accounts::dump(const std::string& cluster) const {
  std::string out =
      fmt::format("Cluster - '{}':Fairshare=1:QOS='normal'\nParent - 'root'\n", cluster);
  for (const auto& [name, tenant] : now_)
    out += fmt::format("Account - '{}':Description='{}':Organization='{}':Fairshare={}{}{}\n", name,
                       tenant.description, or_else(tenant.organization, name),
                       times_in(Thousandths{tenant.weight.value_or(1000)}).value(),
                       dumped_qos(tenant), dumped_limits(tenant, {name}));
  for (const auto& [name, tenant] : now_) {
    out += fmt::format("Parent - '{}'\n", name);
    const auto default_of = [&, &t = tenant](const std::string& user) {
      const std::string chosen = default_account_of(user);
      return chosen.empty() ? dumped_default(t, user) : chosen;
    };
    std::set<std::string> users;
    for (const tenancy::Grant& grant : tenant.grants)
      if (!grant.user.empty() && grant.role >= tenancy::Role::user) users.insert(grant.user);
    for (const std::string& user : users)
      out += fmt::format("User - '{}':DefaultAccount='{}':Fairshare=1{}\n", user, default_of(user),
                         dumped_limits(tenant, {name, user}));
    for (const tenancy::Project& project : tenant.projects)
      if (project.parent.empty() && project.name != name) out += dumped_account(tenant, project);
    for (const tenancy::Project* project : from_the_top(tenant)) {
      std::string lines;
      for (const tenancy::Project& below : tenant.projects)
        if (below.parent == project->name) lines += dumped_account(tenant, below);
      for (const tenancy::UserShare& share : project->users)
        if (share.user != kNoUser)
          lines += fmt::format("User - '{}':DefaultAccount='{}':Fairshare={}{}\n", share.user,
                               default_of(share.user), share.shares,
                               dumped_limits(tenant, {project->name, share.user}));
      if (!lines.empty()) out += fmt::format("Parent - '{}'\n{}", project->name, lines);
    }
  }
  return out;
}

namespace {

// A line of a dump has the kind of entity, its name, and settings, for example
// "Account - 'cs':Fairshare=2:Description='x'".
struct DumpLine {
  std::string kind, name;
  std::vector<std::pair<std::string, std::string>> settings;
};

std::string dump_unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'')
    text = text.substr(1, text.size() - 2);
  return std::string(text);
}

std::vector<std::string> dump_parts(std::string_view text) {  // splits at ':' outside of quotes
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

bool sets_qos(const std::string& key) {
  const std::string word = lower_case(key);
  return word == "qos" || word == "qoslevel" || word == "defaultqos";
}

void drop_qos(const DumpLine& line, Accounts::Settings& settings,
              std::vector<std::string>& ignored) {
  for (const auto& [key, value] : line.settings)
    if (sets_qos(key))
      ignored.push_back(fmt::format("{} {}: {}={}", line.kind, line.name, key, value));
  settings.qos.reset();
  settings.default_qos.reset();
}

Result<void> take_dump_line(const DumpLine& line, const std::string& parent, Accounts& accounts,
                            std::vector<std::string>& ignored) {
  Accounts::Settings settings;
  // A file gives no user a role in the cluster: that needs `modify user`.
  for (const auto& [key, value] : line.settings)
    if (const auto read = read_setting(key, value, settings);
        !read || std::exchange(settings.admin_level, std::nullopt))
      ignored.push_back(fmt::format("{} {}: {}={}", line.kind, line.name, key, value));
  settings.parent = parent;
  const bool below_root = parent.empty() || parent == "root";
  if (line.kind == "account") {
    // A dump fills in default values; such a value is not kept.
    if (!below_root && settings.description == line.name) settings.description.reset();
    if (settings.organization == line.name || settings.organization == parent)
      settings.organization.reset();
    // A dump contains only names of QOS, so an account may name QOS that do not exist here; they
    // are dropped too.
    if (!accounts.check_qos(settings)) drop_qos(line, settings, ignored);
    auto added = accounts.add_account(line.name, settings);
    return added ? Result<void>() : tl::unexpected(added.error());
  }
  // Users of the root account administer the cluster; a tenant's document cannot express that.
  if (below_root) {
    ignored.push_back(fmt::format("user {} of the root account", line.name));
    return {};
  }
  if (!accounts.check_qos(settings)) drop_qos(line, settings, ignored);
  Accounts::Settings of_user;
  of_user.fairshare = settings.fairshare;
  of_user.limits = settings.limits;
  of_user.qos = settings.qos;
  of_user.default_qos = settings.default_qos;
  auto added = accounts.add_user(line.name, parent, of_user);
  if (!added && added.error().code == ErrorCode::unsupported) {  // the parent is a tenant
    if (settings.fairshare != 1u)
      ignored.push_back(fmt::format("user {}: Fairshare={} of {}", line.name,
                                    settings.fairshare.value_or(1), parent));
    of_user.fairshare.reset();
    added = accounts.add_user(line.name, parent, of_user);
  }
  if (added && settings.default_account == parent)
    TRY(accounts.put_default_account(line.name, parent));
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
