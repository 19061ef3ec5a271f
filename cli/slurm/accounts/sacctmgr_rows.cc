#include "cli/slurm/accounts/sacctmgr_rows.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/slurm/accounts/account_limits.h"
#include "cli/slurm/accounts/other_keys.h"
#include "cli/slurm/accounts/other_listing.h"
#include "cli/slurm/accounts/sacctmgr_qos.h"
#include "cli/slurm/format.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

bool member_of(const std::string& user, const std::string& group) {
  const passwd* entry = ::getpwnam(user.c_str());
  const ::group* wanted = ::getgrnam(group.c_str());
  if (entry == nullptr || wanted == nullptr) return false;
  const gid_t gid = wanted->gr_gid;
  int count = 256;
  std::array<gid_t, 256> groups{};
  if (::getgrouplist(user.c_str(), entry->pw_gid, groups.data(), &count) < 0) return false;
  return std::find(groups.begin(), groups.begin() + count, gid) != groups.begin() + count;
}

// The users that may submit to the tenant: those named in grants, and of groups the members that
// are listed or asked for.
std::set<std::string> users_of(const tenancy::Tenant& tenant, const Conditions& c) {
  std::set<std::string> users;
  for (const tenancy::Grant& grant : tenant.grants) {
    if (grant.role < tenancy::Role::user) continue;
    if (!grant.user.empty()) users.insert(grant.user);
    if (grant.group.empty()) continue;
    if (const ::group* group = ::getgrnam(grant.group.c_str()))
      for (char** member = group->gr_mem; *member != nullptr; ++member) users.insert(*member);
    for (const auto* list : {&c.users, &c.names})
      for (const std::string& user : *list)
        if (member_of(user, grant.group)) users.insert(user);
  }
  return users;
}

bool names_user(const tenancy::Project& project, const std::string& user) {
  return std::any_of(project.users.begin(), project.users.end(),
                     [&](const tenancy::UserShare& share) { return share.user == user; });
}

// True if a grant names the user as an admin of the tenant. Admins belong to every project.
bool administers(const tenancy::Tenant& tenant, const std::string& user) {
  return std::any_of(tenant.grants.begin(), tenant.grants.end(), [&](const tenancy::Grant& g) {
    return g.user == user && g.role >= tenancy::Role::tenant_admin;
  });
}

// The project that is charged for a job of the user that names no project: the first one that names
// the user, else the first one that is open to all.
std::string default_project(const tenancy::Tenant& tenant,
                            const std::vector<tenancy::Project>& projects,
                            const std::string& user) {
  if (const auto it = tenant.default_accounts.find(user); it != tenant.default_accounts.end())
    return it->second;
  for (const tenancy::Project& project : projects)
    if (names_user(project, user)) return project.name;
  for (const tenancy::Project& project : projects)
    if (project.users.empty()) return project.name;
  return projects.front().name;
}

Entry with_limits(Entry entry, const tenancy::Tenant& tenant) {
  const auto number = [](const std::optional<std::uint32_t>& n) {
    return n ? std::to_string(*n) : std::string();
  };
  entry.grp_tres = group_tres(tenant);
  entry.grp_jobs = number(tenant.counts.running_jobs);
  entry.grp_submit = number(tenant.counts.queued_jobs);
  entry.max_submit = number(tenant.counts.queued_jobs_per_user);
  entry.max_tres = most_tres(tenant.jobs.max_per_job);
  entry.max_tres_node = most_tres(tenant.jobs.max_per_node);
  entry.max_nodes = number(tenant.jobs.max_nodes);
  if (tenant.jobs.max_time) entry.max_wall = format_duration_long(*tenant.jobs.max_time);
  return entry;
}

// The limits of use, in the fields of Slurm.
void put_use(const tenancy::LimitTexts& texts, Entry& e) {
  const auto join = [](std::string& list, const std::string& more) {
    list += (list.empty() ? "" : ",") + more;
  };
  static constexpr std::pair<std::string_view, std::string_view> kByKey[] = {
      {"GrpTRESMins", "GrpTRESMins"},
      {"GrpTRESRunMins", "GrpTRESRunMins"},
      {"GrpWall", "GrpWall"},
      {"MaxTRESMinsPerJob", "MaxTRESMins"},
      {"MaxJobs", "MaxJobs"},
      {"MaxTRESPerUser", "MaxTRESPU"},
      {"MaxTRESPerAccount", "MaxTRESPA"},
      {"MaxJobsPerUser", "MaxJobs"},
      {"MaxJobsPerAccount", "MaxJobsPA"},
      {"MaxSubmitJobsPerAccount", "MaxSubmitPA"},
      {"MinTRESPerJob", "MinTRES"},
      {"Flags", "Flags"}};
  for (const auto& [name, text] : texts) {
    for (const auto& [key, field] : kByKey)
      if (name == key) e.limits[std::string(field)] = text;
    if (name == "GrpTRES") join(e.grp_tres, text);
    if (name == "GrpJobs") e.grp_jobs = text;
    if (name == "GrpSubmitJobs") e.grp_submit = text;
    if (name == "MaxSubmitJobs" || name == "MaxSubmitJobsPerUser") e.max_submit = text;
    if (name == "MaxTRESPerNode") join(e.max_tres_node, text);
    if (name == "MaxWallDurationPerJob") e.max_wall = text;
    if (name == "UsageFactor") e.usage_factor = text;
    if (name == "Priority") e.priority = text;
    if (name == "DefaultQOS") e.default_qos = text;
    if (name == "QOS") e.qos = text;
    if (name != "MaxTRESPerJob") continue;
    join(e.max_tres, text);
    if (const std::string nodes = tres_amount(text, "node"); !nodes.empty()) e.max_nodes = nodes;
  }
}

Entry qos_entry(const QosBook& book, const tenancy::PriorityClass& cls) {
  Entry entry;
  entry.name = cls.name;
  entry.description = cls.description;
  entry.priority = std::to_string(cls.value);
  entry.grace = format_duration_long(cls.grace);
  if (cls.min_run_time.us > 0) entry.exempt = format_duration_long(cls.min_run_time);
  entry.usage_factor = "1.000000";
  put_use(cls.limits, entry);
  entry.preempt = fmt::format("{}", fmt::join(book.victims_of(cls), ","));
  entry.type = cls.preemptible ? enum_name(cls.victim_mode) : "off";
  return entry;
}

// The rows of one account and its users.
void add_account(const tenancy::Tenant& tenant, const std::vector<tenancy::Project>& projects,
                 const tenancy::Project& project, const Entry& account, const Conditions& c,
                 Tenants& out) {
  out.associations.push_back(account);
  for (const std::string& user : users_of(tenant, c)) {
    if (!project.users.empty() && !names_user(project, user) && !administers(tenant, user))
      continue;
    Entry one = account;
    one.user = user;
    for (std::string* group : {&one.grp_tres, &one.grp_jobs, &one.grp_submit}) group->clear();
    for (const char* group : {"GrpTRESMins", "GrpTRESRunMins", "GrpWall"}) one.limits.erase(group);
    put_use(limits_of_use(tenant, {project.name, user}), one);
    one.default_account = default_project(tenant, projects, user);
    one.admin = "None";
    for (const tenancy::Grant& grant : tenant.grants)
      if (grant.user == user && grant.role == tenancy::Role::operator_role) one.admin = "Operator";
    for (const tenancy::Grant& grant : tenant.grants)
      if (grant.user == user && grant.role == tenancy::Role::admin) one.admin = "Administrator";
    if (std::any_of(tenant.grants.begin(), tenant.grants.end(), [&](const tenancy::Grant& grant) {
          return grant.user == user && grant.role == tenancy::Role::tenant_admin;
        }))
      one.coordinated = tenant.name;
    one.shares = "1";
    for (const tenancy::UserShare& share : project.users)
      if (share.user == user) one.shares = std::to_string(share.shares);
    out.associations.push_back(std::move(one));
  }
}

void add_tenant(const tenancy::Tenant& tenant, const QosBook& book, const Conditions& c,
                const std::string& cluster, Tenants& out) {
  const auto or_else = [](const std::string& text, const std::string& other) {
    return text.empty() ? other : text;
  };
  Entry entry;
  entry.cluster = cluster;
  entry.account = entry.name = tenant.name;
  entry.parent = "root";
  entry.description = or_else(tenant.description, tenant.name);
  entry.organization = or_else(tenant.organization, tenant.name);
  entry.qos = fmt::format("{}", fmt::join(book.allowed_to(tenant), ","));
  entry.default_qos = book.default_of(tenant);
  entry.shares = std::to_string(times_in(Thousandths{tenant.weight.value_or(1000)}).value());
  Entry limited = with_limits(entry, tenant);
  put_use(limits_of_use(tenant, {tenant.name}), limited);
  out.accounts.push_back(limited);
  std::vector<tenancy::Project> projects = tenant.projects;
  if (projects.empty()) projects.push_back({tenant.name, 1, {}, {}, {}});
  const auto own = std::find_if(projects.begin(), projects.end(),
                                [&](const tenancy::Project& p) { return p.name == tenant.name; });
  if (own != projects.end())
    add_account(tenant, projects, *own, limited, c, out);
  else
    out.associations.push_back(limited);
  for (const tenancy::Project& project : projects) {
    if (project.name == tenant.name) continue;
    Entry account = entry;
    account.account = account.name = project.name;
    account.parent = or_else(project.parent, tenant.name);
    account.shares = std::to_string(project.shares);
    account.description = or_else(project.description, project.name);
    account.organization = or_else(project.organization, tenant.name);
    put_use(limits_of_use(tenant, {project.name}), account);
    out.accounts.push_back(account);
    add_account(tenant, projects, project, account, c, out);
  }
}

// The account "root" is above all others. Its only user administers the cluster.
void add_root(const QosBook& book, const std::string& cluster, Tenants& out) {
  Entry root;
  root.cluster = cluster;
  root.account = root.name = "root";
  root.description = "default root account";
  root.organization = "root";
  root.shares = "1";
  root.qos = book.default_of({});
  out.accounts.push_back(root);
  out.associations.push_back(root);
  root.user = root.default_account = "root";
  root.admin = "Administrator";
  out.associations.push_back(root);
}

// Numbers the associations as the nested sets of Slurm: the numbers of what is below an account lie
// between its two. The rows come account by account, each followed by its users.
void number_associations(std::vector<Entry>& rows) {
  std::size_t next = 1;
  std::vector<Entry*> open;
  const auto close_until = [&](const auto& done) {
    while (!open.empty() && !done(*open.back())) {
      open.back()->right = std::to_string(next++);
      open.pop_back();
    }
  };
  std::size_t id = 1;
  for (Entry& row : rows) {
    row.id = std::to_string(id++);
    if (row.user.empty())
      close_until([&](const Entry& above) { return above.account == row.parent; });
    row.left = std::to_string(next++);
    if (row.user.empty())
      open.push_back(&row);
    else
      row.right = std::to_string(next++);
  }
  close_until([](const Entry&) { return false; });
}

}  // namespace

Tenants read_tenants(const proto::TenancyDocuments& documents, const Conditions& c,
                     const std::string& cluster) {
  Tenants out;
  const QosBook book(documents);
  for (const auto& [name, cls] : book.all()) out.qos.push_back(qos_entry(book, cls));
  add_root(book, cluster, out);
  for (const tenancy::Document& document : documents.documents)
    if (const auto* tenant = std::get_if<tenancy::Tenant>(&document))
      add_tenant(*tenant, book, c, cluster, out);
  number_associations(out.associations);
  for (Entry& other : other_associations(documents)) {
    other.id = std::to_string(out.associations.size() + 1);
    out.associations.push_back(std::move(other));
  }
  return out;
}

}  // namespace gantry::cli::slurm
