#include "cli/slurm/accounts/sacctmgr_rows.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/slurm/accounts/account_limits.h"
#include "cli/slurm/accounts/other_accounts.h"
#include "cli/slurm/accounts/other_keys.h"
#include "cli/slurm/accounts/sacctmgr_qos.h"
#include "cli/slurm/format.h"
#include "common/text/split.h"
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
// are listed or named in the request.
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

// Numbers the associations as Slurm's nested sets: an account has two numbers, and those of
// everything below it are in between. The rows come account by account, each followed by its users.
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

// The table of sacctmgr's fields; see the header. A field for which Gantry has no value is empty.
namespace {

using E = const Entry&;
using Out = std::string&;

template <std::string Entry::*Member>
void put_entry(Out o, E v) {
  o += v.*Member;
}
void put_nothing(Out, E) {}

// A limit that only associations of other clusters have.
template <const char* Key>
void put_limit(Out o, E v) {
  if (const auto it = v.limits.find(Key); it != v.limits.end()) o += it->second;
}
// The amount of one resource in a list: a field from before Slurm had these lists.
template <std::string Entry::*List, const char* Resource>
void put_amount(Out o, E v) {
  o += tres_amount(v.*List, Resource);
}
template <const char* Key>
void put_cpus_of(Out o, E v) {
  if (const auto it = v.limits.find(Key); it != v.limits.end()) o += tres_amount(it->second, "cpu");
}
constexpr char kCpu[] = "cpu", kMem[] = "mem", kNode[] = "node";
constexpr char kGrpTresMins[] = "GrpTRESMins", kGrpTresRunMins[] = "GrpTRESRunMins";
constexpr char kGrpJobsAccrue[] = "GrpJobsAccrue", kGrpWall[] = "GrpWall";
constexpr char kMaxTresMins[] = "MaxTRESMins", kMaxJobs[] = "MaxJobs";
constexpr char kMaxJobsAccrue[] = "MaxJobsAccrue";
constexpr char kMaxTresPa[] = "MaxTRESPA", kMaxTresPu[] = "MaxTRESPU", kMaxJobsPa[] = "MaxJobsPA";
constexpr char kCount[] = "Count", kAllocated[] = "Allocated", kAllowed[] = "Allowed";
constexpr char kMaxSubmitPa[] = "MaxSubmitPA", kMinTres[] = "MinTRES", kFlags[] = "Flags";

constexpr Column<Entry> kEntryFields[] = {
    sized("Account", 10, put_entry<&Entry::account>),
    sized("Acct", "Account", 10, put_entry<&Entry::account>),
    sized("Action", 20, put_entry<&Entry::action>),
    sized("Actor", 10, put_entry<&Entry::actor>),
    sized("AdminLevel", "Admin", 9, put_entry<&Entry::admin>),
    sized("TRES", 20, put_entry<&Entry::tres>),
    sized("ClusterNodes", "Cluster Nodes", 20, put_entry<&Entry::nodes>),
    sized("Clusters", "Cluster", 10, put_entry<&Entry::cluster>),
    sized("Coordinators", "Coord Accounts", 20, put_entry<&Entry::coordinated>),
    sized("ControlHost", 15, put_entry<&Entry::host>),
    sized("ControlPort", 12, put_entry<&Entry::port>),
    sized("Count", 6, put_limit<kCount>),
    sized("DefaultAccount", "Def Acct", 10, put_entry<&Entry::default_account>),
    sized("DefaultQOS", "Def QOS", 9, put_entry<&Entry::default_qos>),
    sized("DefaultWCKey", "Def WCKey", 10, put_nothing),
    sized("Description", "Descr", 20, put_entry<&Entry::description>),
    sized("Event", 7, put_entry<&Entry::type>),
    sized("Flags", 20, put_limit<kFlags>),
    sized("GraceTime", 10, put_entry<&Entry::grace>),
    sized("GrpCPUMins", 11, put_cpus_of<kGrpTresMins>),
    sized("GrpCPURunMins", 13, put_cpus_of<kGrpTresRunMins>),
    sized("GrpCPUs", 8, put_amount<&Entry::grp_tres, kCpu>),
    sized("GrpTRES", 13, put_entry<&Entry::grp_tres>),
    sized("GrpTRESMins", 13, put_limit<kGrpTresMins>),
    sized("GrpTRESRunMins", 13, put_limit<kGrpTresRunMins>),
    sized("GrpJobs", 7, put_entry<&Entry::grp_jobs>),
    sized("GrpJobsAccrue", 13, put_limit<kGrpJobsAccrue>),
    sized("GrpMemory", "GrpMem", 7, put_amount<&Entry::grp_tres, kMem>),
    sized("GrpNodes", 8, put_amount<&Entry::grp_tres, kNode>),
    sized("GrpSubmitJobs", "GrpSubmit", 9, put_entry<&Entry::grp_submit>),
    sized("GrpWall", 11, put_limit<kGrpWall>),
    sized("ID", 6, put_entry<&Entry::id>),
    sized("Info", 20, put_entry<&Entry::info>),
    sized("LFT", 6, put_entry<&Entry::left>),
    sized("ServerType", 10, put_entry<&Entry::reason>),
    sized("MaxCPUMinsPerJob", "MaxCPUMins", 11, put_cpus_of<kMaxTresMins>),
    sized("MaxCPUsPerJob", "MaxCPUs", 8, put_amount<&Entry::max_tres, kCpu>),
    sized("MaxTRESPerJob", "MaxTRES", 13, put_entry<&Entry::max_tres>),
    sized("MaxTRESPerNode", 14, put_entry<&Entry::max_tres_node>),
    sized("MaxTRESMinsPerJob", "MaxTRESMins", 13, put_limit<kMaxTresMins>),
    sized("MaxTRESPerAccount", "MaxTRESPA", 13, put_limit<kMaxTresPa>),
    sized("MaxTRESPA", 13, put_limit<kMaxTresPa>),
    sized("MaxTRESPerUser", "MaxTRESPU", 13, put_limit<kMaxTresPu>),
    sized("MaxTRESPU", 13, put_limit<kMaxTresPu>),
    sized("MaxJobs", 7, put_limit<kMaxJobs>),
    sized("MaxJobsAccrue", 13, put_limit<kMaxJobsAccrue>),
    sized("MaxJobsPerAccount", "MaxJobsPA", 9, put_limit<kMaxJobsPa>),
    sized("MaxJobsPA", 9, put_limit<kMaxJobsPa>),
    sized("MaxJobsPerUser", "MaxJobsPU", 9, put_limit<kMaxJobs>),
    sized("MaxJobsPU", 9, put_limit<kMaxJobs>),
    sized("MaxNodesPerJob", "MaxNodes", 8, put_entry<&Entry::max_nodes>),
    sized("MaxSubmitJobs", "MaxSubmit", 9, put_entry<&Entry::max_submit>),
    sized("MaxSubmitJobsPerAccount", "MaxSubmitPA", 11, put_limit<kMaxSubmitPa>),
    sized("MaxSubmitPA", 11, put_limit<kMaxSubmitPa>),
    sized("MaxSubmitJobsPerUser", "MaxSubmitPU", 11, put_entry<&Entry::max_submit>),
    sized("MaxSubmitPU", 11, put_entry<&Entry::max_submit>),
    sized("MaxWallDurationPerJob", "MaxWall", 11, put_entry<&Entry::max_wall>),
    sized("MinTRESPerJob", "MinTRES", 13, put_limit<kMinTres>),
    sized("Name", 10, put_entry<&Entry::name>),
    sized("NodeNames", "NodeName", -15, put_entry<&Entry::nodes>),
    sized("Organization", "Org", 20, put_entry<&Entry::organization>),
    sized("ParentName", 10, put_entry<&Entry::parent>),
    sized("Partition", 10, put_nothing),
    sized("PreemptMode", 11, put_entry<&Entry::type>),
    sized("Preempt", 10, put_entry<&Entry::preempt>),
    sized("PreemptExemptTime", 19, put_entry<&Entry::exempt>),
    sized("Priority", 10, put_entry<&Entry::priority>),
    sized("Problem", 40, put_nothing),
    sized("QOSLevel", "QOS", 20, put_entry<&Entry::qos>),
    sized("Reason", 30, put_entry<&Entry::reason>),
    sized("RGT", 6, put_entry<&Entry::right>),
    sized("RPC", 5, put_entry<&Entry::rpc>),
    sized("Server", 10, put_entry<&Entry::host>),
    sized("Share", 9, put_entry<&Entry::shares>),
    sized("FairShare", "Share", 9, put_entry<&Entry::shares>),
    sized("State", 6, put_entry<&Entry::state>),
    sized("TimeStamp", "Time", 19, put_entry<&Entry::time>),
    sized("TimeEnd", 19, put_entry<&Entry::end>),
    sized("End", "TimeEnd", 19, put_entry<&Entry::end>),
    sized("TimeStart", 19, put_entry<&Entry::start>),
    sized("Start", "TimeStart", 19, put_entry<&Entry::start>),
    sized("Type", 8, put_entry<&Entry::type>),
    sized("UnusedWall", 10, put_nothing),
    sized("UsageFactor", 11, put_entry<&Entry::usage_factor>),
    sized("UsageThreshold", "UsageThres", 10, put_nothing),
    sized("LimitFactor", 11, put_nothing),
    sized("Allocated", "% Allocated", 11, put_limit<kAllocated>),
    sized("PercentAllowed", "% Allowed", 10, put_limit<kAllowed>),
    sized("User", 10, put_entry<&Entry::user>),
    sized("WCKeys", 20, put_nothing),
    sized("Where", 20, put_entry<&Entry::where>),
};

// Fields whose shortest abbreviation is not three letters, and its length.
constexpr std::pair<std::string_view, std::size_t> kShort[] = {
    {"ClusterNodes", 8}, {"AdminLevel", 2}, {"Clusters", 2}, {"Coordinators", 2}, {"Event", 2},
    {"Flags", 2},        {"ID", 2},         {"Info", 2},     {"LFT", 1},          {"Name", 2},
    {"Organization", 1}, {"Problem", 1},    {"RGT", 1},      {"RPC", 1},          {"Share", 1},
    {"FairShare", 2},    {"State", 1},      {"TRES", 2},     {"Type", 2},         {"User", 1},
    {"UnusedWall", 2},   {"WCKeys", 2},     {"Where", 2},    {"TimeStamp", 2},    {"End", 2}};

std::size_t least_letters(std::string_view name) {
  for (const auto& [field, letters] : kShort)
    if (field == name) return letters;
  return 3;
}

// The whole name of the field; the word itself if there is none.
std::string whole_name(const std::string& word) {
  const std::string wanted = lower_case(word);
  for (const Column<Entry>& field : kEntryFields)
    if (lower_case(field.name) == wanted) return std::string(field.name);
  for (const Column<Entry>& field : kEntryFields)
    if (wanted.size() >= least_letters(field.name) && lower_case(field.name).starts_with(wanted))
      return std::string(field.name);
  return "";
}

}  // namespace

std::span<const Column<Entry>> entry_fields() {
  return kEntryFields;
}

Result<Layout> entry_layout(std::string_view format) {
  std::string whole;
  for (const std::string& item : split_list(format)) {
    const std::size_t end = std::min(item.find('%'), item.size());
    const std::string name = whole_name(item.substr(0, end));
    if (name.empty())
      return fail(ErrorCode::usage, fmt::format(" Unknown field '{}'", item.substr(0, end)));
    whole += (whole.empty() ? "" : ",") + name + item.substr(end);
  }
  std::vector<std::string> unknown;
  return list_layout(whole, infos<Entry>(kEntryFields), unknown);
}

}  // namespace gantry::cli::slurm
