// Lists users, accounts, associations and QOS as Slurm's clients ask for them. They are made from
// the tenants' documents: projects are accounts, grants become associations, and priority classes
// are QOS.
#include "cli/slurm/accounts/sacctmgr_list.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <set>

#include "cli/session.h"
#include "cli/slurm/accounts/account_limits.h"
#include "cli/slurm/accounts/sacctmgr_qos.h"
#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "common/proto/tenancy.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

// An entry is one line of a listing. All kinds of listings use this struct; a member for which a
// listing has no column is empty.
struct Entry {
  std::string cluster, account, parent, user, name, description, qos, default_account, admin;
  std::string type, host, port;
  std::string grp_tres, grp_jobs, grp_submit, max_submit, max_wall;  // for an account below root
  std::uint32_t shares = 1;
  std::int64_t priority = 0;
  Duration grace{}, exempt{};
  std::string preempt, default_qos;
};

using E = const Entry&;
using Out = std::string&;
constexpr Field<Entry> kEntryFields[] = {
    {.name = "Account", .put = [](Out o, E v) { o += v.account; }, .width = 10},
    {.name = "AdminLevel", .header = "Admin", .put = [](Out o, E v) { o += v.admin; }, .width = 9},
    {.name = "Admin", .put = [](Out o, E v) { o += v.admin; }, .width = 9},
    {.name = "Cluster", .put = [](Out o, E v) { o += v.cluster; }, .width = 10},
    {.name = "ControlHost", .put = [](Out o, E v) { o += v.host; }, .width = 15},
    {.name = "ControlPort", .put = [](Out o, E v) { o += v.port; }, .width = 12},
    {.name = "DefaultAccount",
     .header = "Def Acct",
     .put = [](Out o, E v) { o += v.default_account; },
     .width = 10},
    {.name = "DefAcct",
     .header = "Def Acct",
     .put = [](Out o, E v) { o += v.default_account; },
     .width = 10},
    {.name = "DefaultQOS",
     .header = "Def QOS",
     .put = [](Out o, E v) { o += v.default_qos; },
     .width = 9},
    {.name = "Description",
     .header = "Descr",
     .put = [](Out o, E v) { o += v.description; },
     .width = 20},
    {.name = "Descr", .put = [](Out o, E v) { o += v.description; }, .width = 20},
    {.name = "Fairshare",
     .header = "Share",
     .put = [](Out o, E v) { o += std::to_string(v.shares); },
     .width = 9},
    {.name = "Share", .put = [](Out o, E v) { o += std::to_string(v.shares); }, .width = 9},
    {.name = "Flags", .put = [](Out, E) {}, .width = 20},
    {.name = "GraceTime",
     .put = [](Out o, E v) { o += format_duration_long(v.grace); },
     .width = 10},
    {.name = "GrpJobs", .put = [](Out o, E v) { o += v.grp_jobs; }, .width = 7},
    {.name = "GrpSubmit", .put = [](Out o, E v) { o += v.grp_submit; }, .width = 9},
    {.name = "GrpTRES", .put = [](Out o, E v) { o += v.grp_tres; }, .width = 13},
    {.name = "ID", .put = [](Out, E) {}, .width = 6},
    {.name = "MaxJobs", .put = [](Out, E) {}, .width = 7},
    {.name = "MaxSubmit", .put = [](Out o, E v) { o += v.max_submit; }, .width = 9},
    {.name = "MaxTRES", .put = [](Out, E) {}, .width = 13},
    {.name = "MaxWall", .put = [](Out o, E v) { o += v.max_wall; }, .width = 11},
    {.name = "Name", .put = [](Out o, E v) { o += v.name; }, .width = 16},
    {.name = "Organization",
     .header = "Org",
     .put = [](Out o, E v) { o += v.parent; },
     .width = 20},
    {.name = "Org", .put = [](Out o, E v) { o += v.parent; }, .width = 20},
    {.name = "ParentName",
     .header = "Par Name",
     .put = [](Out o, E v) { o += v.parent; },
     .width = 10},
    {.name = "Partition", .put = [](Out, E) {}, .width = 10},
    {.name = "Preempt", .put = [](Out o, E v) { o += v.preempt; }, .width = 10},
    {.name = "PreemptExemptTime",
     .put =
         [](Out o, E v) {
           if (v.exempt.us > 0) o += format_duration_long(v.exempt);
         },
     .width = 19},
    {.name = "PreemptMode", .put = [](Out o, E v) { o += v.type; }, .width = 11},
    {.name = "Priority", .put = [](Out o, E v) { o += std::to_string(v.priority); }, .width = 10},
    {.name = "QOS", .put = [](Out o, E v) { o += v.qos; }, .width = 20},
    {.name = "RPC", .put = [](Out o, E) { o += "11008"; }, .width = 5},
    {.name = "Type", .put = [](Out o, E v) { o += v.type; }, .width = 8},
    {.name = "UsageFactor", .put = [](Out o, E) { o += "1.000000"; }, .width = 11},
    {.name = "User", .put = [](Out o, E v) { o += v.user; }, .width = 10},
    {.name = "Problem", .put = [](Out, E) {}, .width = 40},
    {.name = "Server", .put = [](Out, E) {}, .width = 10},
    {.name = "Count", .put = [](Out, E) {}, .width = 6},
    {.name = "Allocated", .header = "% Allocated", .put = [](Out, E) {}, .width = 11},
    {.name = "ServerType", .put = [](Out, E) {}, .width = 10},
    {.name = "WCKey", .put = [](Out, E) {}, .width = 10},
};

// The user restricts a listing by names and by conditions of the form KEY=VALUE.
struct Conditions {
  std::vector<std::string> names, users, accounts;
  std::string format;
  bool with_associations = false;
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
std::string default_project(const std::vector<tenancy::Project>& projects,
                            const std::string& user) {
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
  if (tenant.jobs.max_time) entry.max_wall = format_duration_long(*tenant.jobs.max_time);
  return entry;
}

Entry qos_entry(const QosBook& book, const tenancy::PriorityClass& cls) {
  Entry entry;
  entry.name = cls.name;
  entry.description = cls.description;
  entry.priority = cls.value;
  entry.grace = cls.grace;
  entry.exempt = cls.min_run_time;
  entry.preempt = fmt::format("{}", fmt::join(book.victims_of(cls), ","));
  entry.type = cls.preemptible ? enum_name(cls.victim_mode) : "off";
  return entry;
}

struct Tenants {
  std::vector<Entry> accounts, associations, qos;
};

Tenants read_tenants(const proto::TenancyDocuments& documents, const Conditions& c,
                     const std::string& cluster) {
  Tenants out;
  const QosBook book(documents);
  for (const auto& [name, cls] : book.all()) out.qos.push_back(qos_entry(book, cls));
  for (const tenancy::Document& document : documents.documents) {
    const auto* tenant = std::get_if<tenancy::Tenant>(&document);
    if (tenant == nullptr) continue;
    Entry entry;
    entry.cluster = cluster;
    entry.account = entry.name = tenant->name;
    entry.parent = "root";
    entry.description = tenant->description.empty() ? tenant->name : tenant->description;
    entry.qos = fmt::format("{}", fmt::join(book.allowed_to(*tenant), ","));
    entry.default_qos = book.default_of(*tenant);
    out.accounts.push_back(with_limits(entry, *tenant));
    std::vector<tenancy::Project> projects = tenant->projects;
    if (projects.empty()) projects.push_back({tenant->name, 1, {}});
    for (const tenancy::Project& project : projects) {
      Entry account = entry;
      account.account = account.name = project.name;
      account.parent = project.name == tenant->name ? "root" : tenant->name;
      account.shares = project.shares;
      if (project.name != tenant->name) out.accounts.push_back(account);
      for (const std::string& user : users_of(*tenant, c)) {
        if (!project.users.empty() && !names_user(project, user) && !administers(*tenant, user))
          continue;
        Entry one = account;
        one.user = user;
        one.default_account = default_project(projects, user);
        one.admin = "None";
        one.shares = 1;
        for (const tenancy::UserShare& share : project.users)
          if (share.user == user) one.shares = share.shares;
        out.associations.push_back(one);
      }
    }
  }
  return out;
}

bool has_word(const std::vector<std::string>& list, const std::string& word) {
  return list.empty() || std::find(list.begin(), list.end(), word) != list.end();
}

std::vector<Entry> users_from(const std::vector<Entry>& associations, const Conditions& c) {
  std::vector<Entry> out;
  std::set<std::string> seen;
  for (const Entry& one : associations) {
    if (!has_word(c.names, one.user)) continue;
    if (!c.with_associations && !seen.insert(one.user).second) continue;
    out.push_back(one);
  }
  return out;
}

std::vector<Entry> cluster_entry(const std::string& cluster) {
  Entry entry;
  entry.cluster = entry.name = cluster;
  entry.qos = "normal";
  if (const auto config = find_client_config()) {
    const std::string& address = config->address;
    const std::size_t begin = address.find("//") == std::string::npos ? 0 : address.find("//") + 2;
    entry.host = address.substr(begin, address.rfind(':') - begin);
    entry.port = address.substr(address.rfind(':') + 1);
  }
  return {entry};
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
  }
  return out;
}

// Prints what a client of Slurm asks about the accounting: the keys of `show config` that are true
// of this cluster, whose controller keeps the accounting itself.
int show_accounting_config() {
  const auto config = find_client_config();
  fmt::print("Configuration data as of {}\n", format_time(system_now()));
  const auto line = [](std::string_view key, std::string_view value) {
    fmt::print("{:<22} = {}\n", key, value);
  };
  const Entry cluster = cluster_entry(cluster_name()).front();
  line("AccountingStorageHost", cluster.host);
  line("AccountingStoragePort", cluster.port);
  line("AccountingStorageType", "accounting_storage/slurmdbd");
  line("AccountingStorageUser", "N/A");
  line("AuthType", "auth/munge");
  line("ClusterName", cluster.cluster);
  line("SLURM_CONF", config ? config->path : "(null)");
  line("SLURM_VERSION", kSlurmVersion.substr(6));
  line("TrackWCKey", "No");
  return 0;
}

struct Listing {
  std::string_view name;
  std::size_t least;
  std::string_view format;
  std::string_view with_associations;  // format with associations; "" = the same format
};
constexpr Listing kListings[] = {
    {"users", 1, "User,DefaultAccount,AdminLevel",
     "User,DefaultAccount,AdminLevel,Cluster,Account,Partition,Share,Priority,MaxJobs,MaxTRES,"
     "MaxSubmit,MaxWall,QOS,DefaultQOS"},
    {"accounts", 2, "Account,Descr,Org", "Account,Descr,Org,Cluster,ParentName,User,Share,QOS"},
    {"associations", 2,
     "Cluster,Account,User,Partition,Share,Priority,MaxJobs,MaxTRES,MaxSubmit,MaxWall,QOS,"
     "DefaultQOS",
     ""},
    {"clusters", 2, "Cluster,ControlHost,ControlPort,RPC,Share,QOS,DefaultQOS", ""},
    {"qos", 1, "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,UsageFactor", ""},
    {"tres", 1, "Type,Name,ID", ""},
    // These are always empty: documents are checked before they are applied, licences are of
    // gantry.yaml, and keys of work are free text that nobody has to register.
    {"problems", 1, "Cluster,Account,User,Problem", ""},
    {"resources", 4, "Name,Server,Type,Count,Allocated,ServerType", ""},
    {"wckeys", 1, "WCKey,Cluster,User", ""},
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
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "where" || key == "withcoordinator" || key == "withcoord") continue;
    if (key == "withassoc" || key == "withassocs")
      c.with_associations = true;
    else if (equals == std::string::npos)
      add(c.names, word);
    else if (key.starts_with("format"))
      c.format += (c.format.empty() ? "" : ",") + value;
    else if (key.starts_with("user"))
      add(c.users, value);
    else if (key.starts_with("account"))
      add(c.accounts, value);
    else if (key.starts_with("name") || (listing == "qos" && key.starts_with("qos")))
      add(c.names, value);
    else if (!key.starts_with("cluster")) {
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
  for (const Entry& entry : entries) put_row<Entry>(table, kEntryFields, entry);
}

// Replaces shortened field names by whole ones: "name,prio%10". As in Slurm, three letters are
// enough.
std::string with_whole_names(std::string_view format) {
  std::string out;
  for (const std::string& item : split_list(format)) {
    const std::size_t end = std::min(item.find('%'), item.size());
    const std::string word = lower_case(item.substr(0, end));
    std::string_view name = std::string_view(item).substr(0, end);
    const auto begins = [&](const Field<Entry>& f) { return lower_case(f.name).starts_with(word); };
    const auto is = [&](const Field<Entry>& f) { return lower_case(f.name) == word; };
    const auto last = std::end(kEntryFields);
    if (std::find_if(kEntryFields, last, is) == last && word.size() >= 3)
      if (const auto* field = std::find_if(kEntryFields, last, begins); field != last)
        name = field->name;
    out += (out.empty() ? "" : ",") + std::string(name) + item.substr(end);
  }
  return out;
}

}  // namespace

Result<int> list_entities(const Invocation& call, const SacctmgrCall& options,
                          const std::vector<std::string>& words) {
  const std::string asked = words.empty() ? "" : lower_case(words.front());
  if (asked.size() >= 3 && std::string_view("configuration").starts_with(asked))
    return show_accounting_config();
  if (asked.size() >= 2 && std::string_view("runawayjobs").starts_with(asked)) {
    // A job has an end as soon as its nodes say so or are lost, so no job runs for ever.
    fmt::print("Runaway Jobs: No runaway jobs found on cluster {}\n", cluster_name());
    return 0;
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
  std::vector<std::string> unknown;
  const Layout layout =
      list_layout(with_whole_names(format), names_of<Entry>(kEntryFields), unknown);
  if (!unknown.empty()) {
    fmt::print(stderr, " Unknown field '{}'\n", unknown.front());
    return 1;
  }
  const std::string cluster = cluster_name();
  if (listing.name == "problems" || listing.name == "resources" || listing.name == "wckeys")
    return print_entries(options, layout, {}), 0;
  if (listing.name == "clusters") return print_entries(options, layout, cluster_entry(cluster)), 0;
  if (listing.name == "tres") return print_entries(options, layout, tres_entries()), 0;
  const auto documents = ask<proto::TenancyDocuments>(call.program(), proto::GetTenancy{});
  if (!documents) return tl::unexpected(documents.error());
  Tenants all = read_tenants(*documents, c, cluster);
  std::erase_if(all.associations, [&](const Entry& one) {
    return !has_word(c.users, one.user) || !has_word(c.accounts, one.account);
  });
  std::vector<Entry> entries;
  if (listing.name == "users") entries = users_from(all.associations, c);
  if (listing.name == "associations") entries = all.associations;
  if (listing.name == "qos") entries = all.qos;
  if (listing.name == "accounts") entries = all.accounts;
  if (listing.name == "accounts" || listing.name == "qos")
    std::erase_if(entries, [&](const Entry& one) {
      return !has_word(c.names, one.name) || !has_word(c.accounts, one.name);
    });
  print_entries(options, layout, entries);
  return 0;
}

}  // namespace gantry::cli::slurm
