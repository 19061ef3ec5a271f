#include "cli/slurm/accounts/other_listing.h"

#include <algorithm>

#include "cli/slurm/accounts/other_accounts.h"

namespace gantry::cli::slurm {
namespace {

Entry entry_of(const OtherAssociation& one) {
  const auto value = [&](const std::string& key) {
    const auto it = one.values.find(key);
    return it == one.values.end() ? std::string() : it->second;
  };
  Entry out;
  out.cluster = one.cluster;
  out.account = out.name = one.account;
  out.parent = one.parent;
  out.user = one.user;
  out.description = one.description;
  out.organization = one.organization;
  out.default_account = one.default_account;
  out.admin = one.admin;
  out.coordinated = one.coordinated;
  out.shares = value("FairShare");
  if (out.shares.empty()) out.shares = "1";
  out.qos = value("QOS");
  out.default_qos = value("DefaultQOS");
  out.priority = value("Priority");
  out.grp_tres = value("GrpTRES");
  out.grp_jobs = value("GrpJobs");
  out.grp_submit = value("GrpSubmitJobs");
  out.max_submit = value("MaxSubmitJobs");
  out.max_tres = value("MaxTRES");
  out.max_tres_node = value("MaxTRESPerNode");
  out.max_nodes = tres_amount(out.max_tres, "node");
  out.max_wall = value("MaxWall");
  out.limits = one.values;
  out.left = std::to_string(one.left);
  out.right = std::to_string(one.right);
  return out;
}

}  // namespace

std::vector<Entry> other_associations(const proto::TenancyDocuments& documents) {
  const OtherAccounts others(documents);
  std::vector<Entry> out;
  for (const std::string& cluster : others.clusters())
    for (const OtherAssociation& one : others.associations(cluster)) out.push_back(entry_of(one));
  return out;
}

std::vector<Entry> other_account_rows(const std::vector<Entry>& associations,
                                      const std::vector<Entry>& listed) {
  std::vector<Entry> out;
  const auto has = [](const std::vector<Entry>& rows, const std::string& name) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const Entry& row) { return row.name == name; });
  };
  for (const Entry& one : associations)
    if (one.user.empty() && !has(listed, one.name) && !has(out, one.name)) out.push_back(one);
  return out;
}

std::vector<Entry> other_cluster_rows(const proto::TenancyDocuments& documents) {
  const OtherAccounts others(documents);
  std::vector<Entry> out;
  for (const tenancy::Document& document : documents.documents) {
    const auto* other = std::get_if<tenancy::OtherCluster>(&document);
    if (other == nullptr) continue;
    Entry& entry = out.emplace_back(entry_of(others.associations(other->name).front()));
    entry.account.clear();
    entry.name = other->name;
    entry.description = other->description;
    entry.port = entry.rpc = "0";
  }
  return out;
}

}  // namespace gantry::cli::slurm
