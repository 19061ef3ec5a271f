// Lists users, accounts, associations and QOS as Slurm's clients ask for them. They are made from
// the tenants' documents: projects are accounts, grants become associations, and priority classes
// are QOS.
#include "cli/slurm/accounts/sacctmgr_list.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/session.h"
#include "cli/slurm/accounts/entity_changes.h"
#include "cli/slurm/accounts/other_accounts.h"
#include "cli/slurm/accounts/sacctmgr_rows.h"
#include "cli/slurm/format.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/records/history.h"
#include "common/proto/cluster.h"
#include "common/proto/reservation.h"
#include "common/proto/tenancy.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

bool has_word(const std::vector<std::string>& list, const std::string& word) {
  return list.empty() || std::find(list.begin(), list.end(), word) != list.end();
}

std::vector<Entry> users_from(const std::vector<Entry>& associations, const Conditions& c) {
  std::vector<Entry> out;
  std::map<std::string, std::size_t> seen;  // index of each user's row
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
  // The associations of a user are adjacent.
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
    // These listings are always empty: documents are checked before they are applied, wckeys are
    // free text that is not registered, and there are no federations.
    {"federation", 1, "Name%10,Cluster,ID,Flags,State", ""},
    {"problems", 1, "Cluster,Account,User,Problem", ""},
    {"resource", 3, "Name,Server,Type,Count,Allocated,ServerType", ""},
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
    if (listing == "resource" && (key.starts_with("withc") || key.starts_with("server"))) {
      c.with_clusters = c.with_clusters || key.starts_with("withc");
      if (key.starts_with("server")) add(c.servers, value);
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
  const TableStyle style = list_style(options, layout);
  TableWriter table(std::move(layout), style, stdout);
  for (const Entry& entry : entries) add_row<Entry>(table, entry_fields(), entry);
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
  if (listing == "problems" || listing == "wckeys" || listing == "federation")
    return std::vector<Entry>{};
  if (listing == "tres") return tres_entries();
  if (listing == "events") return node_events(call.program(), cluster_name());
  if (listing == "reservations") return reservation_entries(call.program(), cluster_name());
  if (listing == "transactions" || listing == "txn") return transactions(call.program());
  ASSIGN(documents, ask<proto::TenancyDocuments>(call.program(), proto::GetTenancy{}));
  if (listing == "clusters") return clusters_from(*documents, c);
  if (listing == "resource") {
    auto rows = resource_entries(*documents, c.with_clusters || !c.clusters.empty(), c.clusters);
    std::erase_if(rows, [&](const Entry& one) {
      return !has_word(c.names, one.name) || !has_word(c.servers, one.host);
    });
    return rows;
  }
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

// The controller keeps the accounting, so these are its requests.
Result<int> show_stats() {
  ASSIGN(session, Session::open("sacctmgr"));
  ASSIGN(ping, session->call<proto::PingReply>(proto::Ping{}));
  ASSIGN(stats, session->call<proto::ShowStatsReply>(proto::ShowStats{true}));
  const std::string stars(67, '*');
  fmt::print(
      "{0}\nsacctmgr show stats output at {1}\nData since                    {2}\n"
      "All statistics are in microseconds\n{0}\n",
      stars, c_time(ping->now), c_time(stats->since));
  print_calls(*stats, CallOrder::count);
  return 0;
}

}  // namespace

Result<int> list_entities(const Invocation& call, const SacctmgrCall& options,
                          const std::vector<std::string>& words) {
  const std::string asked = words.empty() ? "" : lower_case(words.front());
  if (asked.size() >= 3 && std::string_view("configuration").starts_with(asked))
    return show_accounting_config(cluster_entry(cluster_name()));
  if (asked.size() >= 2 && std::string_view("runawayjobs").starts_with(asked)) {
    // A job ends as soon as its nodes report that or are lost, so no job runs forever.
    fmt::print("Runaway Jobs: No runaway jobs found on cluster {}\n", cluster_name());
    return 0;
  }
  if (!asked.empty() && std::string_view("stats").starts_with(asked)) return show_stats();
  const Listing* found = words.empty() ? nullptr : find_listing(words.front());
  if (found == nullptr) {
    fmt::print(stderr, "No valid entity in list command\nInput line must include one of: ");
    for (const Listing& one : kListings) fmt::print(stderr, "{} ", one.name);
    return refused("\n");
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
  if (!layout) return refused("{}\n", layout.error().message);
  ASSIGN(entries, entries_of(call, listing.name, c));
  print_entries(options, *layout, *entries);
  return 0;
}

// Answers clients of Slurm about the accounting: the keys of `show config` that are true for this
// cluster, whose controller keeps the accounting itself.
int show_accounting_config(const Entry& cluster) {
  const auto config = find_client_config();
  fmt::print("Configuration data as of {}\n", format_time(system_now()));
  const auto line = [](std::string_view key, std::string_view value) {
    fmt::print("{:<22} = {}\n", key, value);
  };
  line("AccountingStorageHost", cluster.host);
  line("AccountingStoragePort", cluster.port);
  line("AccountingStorageType", "accounting_storage/slurmdbd");
  line("AccountingStorageUser", "N/A");
  line("AuthType", "auth/munge");
  line("ClusterName", cluster.cluster);
  line("SLURM_CONF", config ? config->path : "(null)");
  line("SLURM_VERSION", kSlurmVersion.substr(6));
  line("TrackWCKey", "No");
  // The controller also has the role of slurmdbd, and has no separate configuration for that.
  fmt::print("\nSlurmDBD configuration:\n");
  line("AuthType", "auth/munge");
  line("DbdAddr", cluster.host);
  line("DbdHost", cluster.host);
  line("DbdPort", cluster.port);
  line("SLURMDBD_CONF", config ? config->path : "(null)");
  line("SLURMDBD_VERSION", kSlurmVersion.substr(6));
  return 0;
}

Result<std::vector<Entry>> node_events(const std::string& program, const std::string& cluster) {
  ASSIGN(nodes, ask<proto::ListNodesReply>(program, proto::ListNodes{}));
  std::vector<Entry> out;
  for (const proto::NodeRow& node : nodes->nodes) {
    const bool down = node.health != NodeHealth::up;
    if (!down && node.intent == NodeIntent::open) continue;
    Entry& entry = out.emplace_back();
    entry.cluster = cluster;
    entry.nodes = node.name;
    entry.type = "Node";
    entry.start = shown_time(node.since, "Unknown");
    entry.end = "Unknown";
    entry.state = down ? "DOWN" : "DRAIN";
    entry.reason = node.reason;
    entry.user = node.reason_by;
  }
  return out;
}

Result<std::vector<Entry>> reservation_entries(const std::string& program,
                                               const std::string& cluster) {
  ASSIGN(reply, ask<proto::ListReservationsReply>(program, proto::ListReservations{}));
  std::vector<Entry> out;
  for (const proto::ReservationRow& row : reply->reservations) {
    Entry& entry = out.emplace_back();
    entry.cluster = cluster;
    entry.name = row.name;
    entry.nodes = row.node_list;
    entry.tres = fmt::format("node={}", row.nodes);
    entry.start = shown_time(row.start);
    entry.end = shown_time(row.end);
  }
  return out;
}

Result<std::vector<Entry>> transactions(const std::string& program) {
  ASSIGN(reply, ask<proto::TenancyHistoryReply>(program, proto::TenancyHistory{}));
  std::vector<Entry> out;
  for (const proto::TenancyRevision& revision : reply->revisions)
    for (const proto::DocumentChange& change : revision.changes) {
      Entry& entry = out.emplace_back();
      entry.time = shown_time(revision.at);
      entry.actor = revision.author;
      entry.action = fmt::format("{} {}", enum_name(change.action), change.kind);
      entry.where = fmt::format("name='{}'", change.name);
      entry.name = change.name;
      entry.info = revision.comment;
    }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace gantry::cli::slurm
