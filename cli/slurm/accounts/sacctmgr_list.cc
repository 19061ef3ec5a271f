// Lists users, accounts, associations and QOS as Slurm's clients ask for them. They are made from
// the tenants' documents: projects are accounts, grants become associations, and priority classes
// are QOS.
#include "cli/slurm/accounts/sacctmgr_list.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/session.h"
#include "cli/slurm/accounts/account_limits.h"
#include "cli/slurm/accounts/change_words.h"
#include "cli/slurm/accounts/other_listing.h"
#include "cli/slurm/accounts/sacctmgr_fields.h"
#include "cli/slurm/accounts/sacctmgr_qos.h"
#include "cli/slurm/accounts/sacctmgr_show.h"
#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "common/proto/tenancy.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

// The user restricts a listing by names and by conditions of the form KEY=VALUE.
struct Conditions {
  std::vector<std::string> names, users, accounts, clusters, parents;
  std::string format;
  bool with_associations = false;
  bool without_limits = false;  // wopl: the associations alone
};

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

Entry qos_entry(const QosBook& book, const tenancy::PriorityClass& cls) {
  Entry entry;
  entry.name = cls.name;
  entry.description = cls.description;
  entry.priority = std::to_string(cls.value);
  entry.grace = format_duration_long(cls.grace);
  if (cls.min_run_time.us > 0) entry.exempt = format_duration_long(cls.min_run_time);
  entry.usage_factor = "1.000000";
  entry.preempt = fmt::format("{}", fmt::join(book.victims_of(cls), ","));
  entry.type = cls.preemptible ? enum_name(cls.victim_mode) : "off";
  return entry;
}

struct Tenants {
  std::vector<Entry> accounts, associations, qos;  // associations: of accounts and of users
};

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
  const Entry limited = with_limits(entry, tenant);
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
    account.parent = tenant.name;
    account.shares = std::to_string(project.shares);
    account.description = or_else(project.description, project.name);
    account.organization = or_else(project.organization, tenant.name);
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

bool has_word(const std::vector<std::string>& list, const std::string& word) {
  return list.empty() || std::find(list.begin(), list.end(), word) != list.end();
}

std::vector<Entry> users_from(const std::vector<Entry>& associations, const Conditions& c) {
  std::vector<Entry> out;
  std::map<std::string, std::size_t> seen;  // by user: the place of the row
  for (const Entry& one : associations) {
    if (one.user.empty() || !has_word(c.names, one.user)) continue;
    const auto [at, fresh] = seen.try_emplace(one.user, out.size());
    if (fresh || c.with_associations) {
      out.push_back(one);
      continue;
    }
    // The row of a user has the highest of the roles that the tenants' documents give.
    if (one.admin == "Administrator" || out[at->second].admin == "None")
      out[at->second].admin = one.admin;
  }
  // The associations of a user stand together.
  std::stable_sort(out.begin(), out.end(), [&](const Entry& a, const Entry& b) {
    return seen.at(a.user) < seen.at(b.user);
  });
  return out;
}

Entry cluster_entry(const std::string& cluster) {
  Entry entry;
  entry.cluster = entry.name = cluster;
  entry.qos = "normal";
  entry.shares = "1";
  entry.rpc = "11008";
  if (const auto config = find_client_config()) {
    const std::string& address = config->address;
    const std::size_t begin = address.find("//") == std::string::npos ? 0 : address.find("//") + 2;
    entry.host = address.substr(begin, address.rfind(':') - begin);
    entry.port = address.substr(address.rfind(':') + 1);
  }
  return entry;
}

std::vector<Entry> tres_entries() {
  std::vector<Entry> out;
  for (const auto& [type, name] : {std::pair<const char*, const char*>{"cpu", ""},
                                   {"mem", ""},
                                   {"node", ""},
                                   {"billing", ""},
                                   {"fs", "disk"},
                                   {"gres", "gpu"}}) {
    out.emplace_back().type = type;
    out.back().name = name;
    out.back().id = std::to_string(out.size());
  }
  return out;
}

struct Listing {
  std::string_view name;
  std::size_t least;
  std::string_view format;
  std::string_view with_associations;  // format with associations; "" = the same format
};
constexpr std::string_view kAssociationLimits =
    "Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,MaxJobs,MaxTRES,MaxTRESPerNode,"
    "MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins";
constexpr Listing kListings[] = {
    {"users", 1, "User,DefaultAccount,AdminLevel",
     "User,DefaultAccount,AdminLevel,Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,"
     "MaxTRES,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS"},
    {"accounts", 2, "Account,Descr,Org",
     "Account,Descr,Org,Cluster,ParentName,User,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,"
     "GrpTRESMins,MaxJobs,MaxNodes,MaxTRES,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS"},
    {"associations", 2, "Cluster,Account,User,Partition", ""},
    {"clusters", 2,
     "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,"
     "MaxSubmit,"
     "MaxWall,QOS,DefaultQOS",
     ""},
    {"qos", 1,
     "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags%40,UsageThres,"
     "UsageFactor,"
     "GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,"
     "MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxJobsPA,MaxSubmitPA,MinTRES",
     ""},
    {"tres", 2, "Type,Name%15,ID", ""},
    {"events", 1, "Cluster,NodeName,Start,End,State,Reason,User", ""},
    {"reservations", 4, "Cluster,Name%15,TRES%30,TimeStart,TimeEnd,UnusedWall", ""},
    {"transactions", 1, "Time,Action,Actor,Where,Info", ""},
    {"txn", 2, "Time,Action,Actor,Where,Info", ""},
    // These are always empty: documents are checked before they are applied, licences are of
    // gantry.yaml, keys of work are free text that nobody has to register, and there are no
    // federations.
    {"federation", 1, "Name%10,Cluster,ID,Flags,State", ""},
    {"problems", 1, "Cluster,Account,User,Problem", ""},
    {"resource", 4, "Name,Server,Type,Count,Allocated,ServerType", ""},
    {"wckeys", 1, "Name,Cluster,User", ""},
};
const Listing* find_listing(const std::string& word) {
  const std::string wanted = lower_case(word);
  for (const Listing& one : kListings)
    if (wanted.size() >= one.least && one.name.starts_with(wanted)) return &one;
  return nullptr;
}

bool read_conditions(std::string_view listing, const std::vector<std::string>& words,
                     Conditions& c) {
  const auto add = [](std::vector<std::string>& out, std::string_view text) {
    for (std::string& word : split_list(text)) out.push_back(std::move(word));
  };
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string key = lower_case(word.substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : unquoted(word.substr(equals + 1));
    // Details that other listings of Slurm leave out are always there, or do not exist.
    if (key == "where" || key.starts_with("withcoor") || key.starts_with("withd") ||
        key.starts_with("withsub") || key.starts_with("withrawq") || key.starts_with("wopi") ||
        key.starts_with("withoutparenti") || key.starts_with("tree") || key.starts_with("onlydef"))
      continue;
    if (key.starts_with("wopl") || key.starts_with("withoutparentl") || key == "wolimits" ||
        key == "withoutlimits") {
      c.without_limits = true;
      continue;
    }
    if (key == "withassoc" || key == "withassocs")
      c.with_associations = true;
    else if (equals == std::string::npos)
      add(c.names, word);
    else if (key.starts_with("format"))
      c.format += (c.format.empty() ? "" : ",") + value;
    else if (key.starts_with("user"))
      add(c.users, value);
    else if (key.starts_with("acc"))
      add(c.accounts, value);
    else if (key.starts_with("name") || (listing == "qos" && key.starts_with("qos")))
      add(c.names, value);
    else if (key.starts_with("cluster"))
      add(c.clusters, value);
    else if (key.starts_with("parent"))
      add(c.parents, value);
    else {
      fmt::print(stderr, " Unknown condition: {}\n", word);
      return false;
    }
  }
  return true;
}

void print_entries(const SacctmgrCall& options, Layout layout, const std::vector<Entry>& entries) {
  TableStyle style;
  style.header = !options.no_header;
  if (options.parsable || options.parsable2) {
    style.delimiter = "|";
    style.trailing_delimiter = !options.parsable2;
  } else {
    style.rule = true;
    style.cut_mark = '+';
    layout.after = " ";
  }
  TableWriter table(std::move(layout), style, stdout);
  for (const Entry& entry : entries) put_row<Entry>(table, entry_fields(), entry);
}

std::vector<Entry> clusters_from(const proto::TenancyDocuments& documents, const Conditions& c) {
  std::vector<Entry> out{cluster_entry(cluster_name())};
  for (Entry& other : other_cluster_rows(documents)) out.push_back(std::move(other));
  std::erase_if(out, [&](const Entry& one) {
    return !has_word(c.names, one.name) || !has_word(c.clusters, one.name);
  });
  return out;
}

// The rows of one listing.
Result<std::vector<Entry>> entries_of(const Invocation& call, std::string_view listing,
                                      const Conditions& c) {
  if (listing == "problems" || listing == "resource" || listing == "wckeys" ||
      listing == "federation")
    return std::vector<Entry>{};
  if (listing == "tres") return tres_entries();
  if (listing == "events") return node_events(call.program(), cluster_name());
  if (listing == "reservations") return reservation_entries(call.program(), cluster_name());
  if (listing == "transactions" || listing == "txn") return transactions(call.program());
  const auto documents = ask<proto::TenancyDocuments>(call.program(), proto::GetTenancy{});
  if (!documents) return tl::unexpected(documents.error());
  if (listing == "clusters") return clusters_from(*documents, c);
  Tenants all = read_tenants(*documents, c, cluster_name());
  std::erase_if(all.associations, [&](const Entry& one) {
    return !has_word(c.users, one.user) || !has_word(c.accounts, one.account) ||
           !has_word(c.clusters, one.cluster) || !has_word(c.parents, one.parent);
  });
  if (listing == "users") return users_from(all.associations, c);
  if (listing == "associations") return std::move(all.associations);
  if (listing == "accounts" && !c.with_associations)
    for (Entry& other : other_account_rows(all.associations, all.accounts))
      all.accounts.push_back(std::move(other));
  std::vector<Entry> entries = listing == "qos"      ? all.qos
                               : c.with_associations ? all.associations
                                                     : all.accounts;
  std::erase_if(entries, [&](const Entry& one) {
    return !has_word(c.names, one.name) || !has_word(c.accounts, one.name) ||
           (listing == "accounts" &&
            (!has_word(c.clusters, one.cluster) || !has_word(c.parents, one.parent)));
  });
  return entries;
}

}  // namespace

Result<int> list_entities(const Invocation& call, const SacctmgrCall& options,
                          const std::vector<std::string>& words) {
  const std::string asked = words.empty() ? "" : lower_case(words.front());
  if (asked.size() >= 3 && std::string_view("configuration").starts_with(asked))
    return show_accounting_config(cluster_entry(cluster_name()));
  if (asked.size() >= 2 && std::string_view("runawayjobs").starts_with(asked)) {
    // A job has an end as soon as its nodes say so or are lost, so no job runs for ever.
    fmt::print("Runaway Jobs: No runaway jobs found on cluster {}\n", cluster_name());
    return 0;
  }
  if (!asked.empty() && std::string_view("stats").starts_with(asked)) {
    complain(call, "show stats is not supported: the controller keeps the accounting; use sdiag");
    return 1;
  }
  const Listing* found = words.empty() ? nullptr : find_listing(words.front());
  if (found == nullptr) {
    fmt::print(stderr, "No valid entity in list command\nInput line must include one of: ");
    for (const Listing& one : kListings) fmt::print(stderr, "{} ", one.name);
    fmt::print(stderr, "\n");
    return 1;
  }
  const Listing& listing = *found;
  Conditions c;
  if (!read_conditions(listing.name, {words.begin() + 1, words.end()}, c)) return 1;
  c.with_associations = c.with_associations || options.associations;
  std::string_view format = listing.format;
  if (c.with_associations && !listing.with_associations.empty()) format = listing.with_associations;
  if (!c.format.empty()) format = c.format;
  std::string all_fields(format);
  if (listing.name == "associations" && c.format.empty() && !c.without_limits)
    all_fields += fmt::format(",{}", kAssociationLimits);
  const auto layout = entry_layout(all_fields);
  if (!layout) {
    fmt::print(stderr, "{}\n", layout.error().message);
    return 1;
  }
  const auto entries = entries_of(call, listing.name, c);
  if (!entries) return tl::unexpected(entries.error());
  print_entries(options, *layout, *entries);
  return 0;
}

}  // namespace gantry::cli::slurm
