#include "cli/slurm/accounts/other_accounts.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "common/text/split.h"

namespace gantry::cli::slurm {
namespace {

constexpr const char* kRoot = "root";

std::string row_value(const OtherRow& row, const std::string& key) {
  const auto it = row.find(key);
  return it == row.end() ? std::string() : it->second;
}

OtherRow read_row(std::string_view text) {
  OtherRow row;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find('|'));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    if (equals != std::string_view::npos)
      row.emplace(item.substr(0, equals), item.substr(equals + 1));
  }
  return row;
}

std::string written(const OtherRow& row) {
  std::string out;
  for (const auto& [key, value] : row)
    out += fmt::format("{}{}={}", out.empty() ? "" : "|", key, value);
  return out;
}

// The accounts, their users and the people, in a fixed order.
std::vector<std::string> written(std::vector<OtherRow> rows) {
  std::vector<std::string> out;
  for (const OtherRow& row : rows) out.push_back(written(row));
  std::sort(out.begin(), out.end());
  return out;
}

Error no_account_on(const std::string& account, const std::string& cluster) {
  return {ErrorCode::not_found, fmt::format(" This account '{}' doesn't exist on cluster {}.\n"
                                            "        Contact your admin to add this account.",
                                            account, cluster)};
}

bool is_user_key(const RawSetting& setting) {
  return setting.key.starts_with("ad") || setting.key.starts_with("defaulta");
}

}  // namespace

OtherAccounts::OtherAccounts(const proto::TenancyDocuments& documents) : qos_(documents) {
  for (const tenancy::Document& document : documents.documents) {
    const auto* other = std::get_if<tenancy::OtherCluster>(&document);
    if (other == nullptr) continue;
    before_[other->name] = *other;
    Cluster& cluster = now_[other->name];
    cluster.description = other->description;
    for (const std::string& row : other->accounting) cluster.rows.push_back(read_row(row));
  }
}

std::vector<std::string> OtherAccounts::clusters() const {
  std::vector<std::string> out;
  for (const auto& [name, cluster] : now_) out.push_back(name);
  return out;
}

void OtherAccounts::add_cluster(const std::string& name, const std::string& description) {
  Cluster& cluster = now_[name];
  cluster.description = description;
  cluster.rows.push_back({{"account", kRoot},
                          {"Description", "default root account"},
                          {"Organization", "root"},
                          {"QOS", "normal"}});
  cluster.rows.push_back({{"account", kRoot}, {"user", "root"}});
  cluster.rows.push_back(
      {{"user", "root"}, {"AdminLevel", "Administrator"}, {"DefaultAccount", kRoot}});
}

Result<void> OtherAccounts::set_cluster(const std::string& name,
                                        const std::vector<RawSetting>& settings) {
  return modify_account(name, kRoot, settings);
}

void OtherAccounts::describe_cluster(const std::string& name, const std::string& description) {
  now_.at(name).description = description;
}

OtherRow* OtherAccounts::find(const std::string& cluster, const std::string& account,
                              const std::string& user) {
  for (OtherRow& row : now_.at(cluster).rows)
    if (row_value(row, "account") == account && row_value(row, "user") == user) return &row;
  return nullptr;
}

const OtherRow* OtherAccounts::find(const std::string& cluster, const std::string& account,
                                    const std::string& user) const {
  for (const OtherRow& row : now_.at(cluster).rows)
    if (row_value(row, "account") == account && row_value(row, "user") == user) return &row;
  return nullptr;
}

// The facts about a user that do not belong to an association.
OtherRow& OtherAccounts::person(const std::string& cluster, const std::string& user) {
  if (OtherRow* row = find(cluster, "", user)) return *row;
  return now_.at(cluster).rows.emplace_back(OtherRow{{"user", user}, {"AdminLevel", "None"}});
}

bool OtherAccounts::has_account(const std::string& cluster, const std::string& account) const {
  return find(cluster, account, "") != nullptr;
}

bool OtherAccounts::has_user(const std::string& cluster, const std::string& user,
                             const std::string& account) const {
  if (!account.empty()) return find(cluster, account, user) != nullptr;
  return !accounts_of(cluster, user).empty();
}

std::string OtherAccounts::default_account_of(const std::string& cluster,
                                              const std::string& user) const {
  const OtherRow* who = find(cluster, "", user);
  return who == nullptr ? std::string() : row_value(*who, "DefaultAccount");
}

std::string OtherAccounts::parent_of(const std::string& cluster, const std::string& account) const {
  const OtherRow* row = find(cluster, account, "");
  return row == nullptr ? std::string() : row_value(*row, "parent");
}

std::vector<std::string> OtherAccounts::accounts_of(const std::string& cluster,
                                                    const std::string& user) const {
  std::vector<std::string> out;
  for (const OtherRow& row : now_.at(cluster).rows)
    if (row_value(row, "user") == user && row.contains("account"))
      out.push_back(row_value(row, "account"));
  return out;
}

Result<bool> OtherAccounts::add_account(const std::string& cluster, const std::string& account,
                                        const std::vector<RawSetting>& settings) {
  if (has_account(cluster, account)) return false;
  OtherRow row{
      {"account", account}, {"parent", kRoot}, {"Description", account}, {"Organization", account}};
  for (const RawSetting& setting : settings) TRY(put_setting(row, setting, qos_));
  if (const std::string parent = row_value(row, "parent"); !has_account(cluster, parent))
    return tl::unexpected(no_account_on(parent, cluster));
  now_.at(cluster).rows.push_back(std::move(row));
  return true;
}

Result<bool> OtherAccounts::add_user(const std::string& cluster, const std::string& user,
                                     const std::string& account,
                                     const std::vector<RawSetting>& settings) {
  if (!has_account(cluster, account)) return tl::unexpected(no_account_on(account, cluster));
  const bool fresh = !has_user(cluster, user, account);
  OtherRow row{{"account", account}, {"user", user}};
  OtherRow& who = person(cluster, user);
  for (const RawSetting& setting : settings)
    TRY(put_setting(is_user_key(setting) ? who : row, setting, qos_));
  if (!who.contains("DefaultAccount")) who["DefaultAccount"] = account;
  if (fresh) now_.at(cluster).rows.push_back(std::move(row));
  return fresh;
}

// An account that is moved below one of its own descendants swaps places with it: first that one is
// moved below the present parent.
Result<void> OtherAccounts::move(const std::string& cluster, const std::string& account,
                                 const std::string& parent) {
  if (account == kRoot || account == parent || !has_account(cluster, parent))
    return tl::unexpected(no_account_on(parent, cluster));
  for (std::string above = parent; !above.empty(); above = parent_of(cluster, above))
    if (parent_of(cluster, above) == account) {
      (*find(cluster, above, ""))["parent"] = parent_of(cluster, account);
      break;
    }
  (*find(cluster, account, ""))["parent"] = parent;
  return {};
}

Result<void> OtherAccounts::modify_account(const std::string& cluster, const std::string& account,
                                           const std::vector<RawSetting>& settings) {
  OtherRow* row = find(cluster, account, "");
  if (row == nullptr && account == kRoot)  // a document that was written without this row
    row = &now_.at(cluster).rows.emplace_back(OtherRow{{"account", kRoot}, {"QOS", "normal"}});
  if (row == nullptr) return tl::unexpected(no_account_on(account, cluster));
  OtherRow changed = *row;
  for (const RawSetting& setting : settings) TRY(put_setting(changed, setting, qos_));
  std::string parent = row_value(changed, "parent");
  std::swap(changed["parent"], (*row)["parent"]);  // moved below, with a check
  *row = changed;
  if (row->at("parent").empty()) row->erase("parent");
  if (parent == row_value(*row, "parent")) return {};
  return move(cluster, account, parent);
}

Result<void> OtherAccounts::modify_user(const std::string& cluster, const std::string& user,
                                        const std::string& account,
                                        const std::vector<RawSetting>& settings) {
  for (const RawSetting& setting : settings) {
    if (is_user_key(setting)) {
      OtherRow& who = person(cluster, user);
      TRY(put_setting(who, setting, qos_));
      if (!has_user(cluster, user, row_value(who, "DefaultAccount")))
        return fail(ErrorCode::not_found,
                    fmt::format(" Can't modify because these users aren't associated with new "
                                "default account '{}'...\n  U = {:<9} C = {:<10}",
                                setting.value, user, cluster));
      continue;
    }
    for (const std::string& one : accounts_of(cluster, user)) {
      if (!account.empty() && one != account) continue;
      TRY(put_setting(*find(cluster, one, user), setting, qos_));
    }
  }
  return {};
}

// Removing an account also removes the accounts below it and all their users; a user without any
// other association is removed.
void OtherAccounts::remove_account(const std::string& cluster, const std::string& account) {
  std::set<std::string> gone{account};
  std::vector<OtherRow>& rows = now_.at(cluster).rows;
  for (std::size_t before = 0; before != gone.size();) {
    before = gone.size();
    for (const OtherRow& row : rows)
      if (gone.contains(row_value(row, "parent"))) gone.insert(row_value(row, "account"));
  }
  std::erase_if(rows,
                [&](const OtherRow& row) { return gone.contains(row_value(row, "account")); });
  std::erase_if(rows, [&](const OtherRow& row) {
    return !row.contains("account") && accounts_of(cluster, row_value(row, "user")).empty();
  });
  for (OtherRow& row : rows)
    if (gone.contains(row_value(row, "DefaultAccount")))
      row["DefaultAccount"] = accounts_of(cluster, row_value(row, "user")).front();
}

Result<void> OtherAccounts::remove_user(const std::string& cluster, const std::string& user,
                                        const std::string& account) {
  const std::vector<std::string> all = accounts_of(cluster, user);
  if (!account.empty() && all.size() > 1 &&
      row_value(person(cluster, user), "DefaultAccount") == account)
    return fail(ErrorCode::wrong_state,
                fmt::format(" Error with request: You can not remove the default account of a "
                            "user\n  C = {:<10} A = {:<10} U = {:<9}",
                            cluster, account, user));
  const bool whole = account.empty() || all.size() == 1;
  std::erase_if(now_.at(cluster).rows, [&](const OtherRow& row) {
    return row_value(row, "user") == user && (whole || row_value(row, "account") == account);
  });
  return {};
}

bool OtherAccounts::put_coordinator(const std::string& account, const std::string& user,
                                    bool coordinates) {
  bool found = false;
  for (auto& [name, cluster] : now_) {
    OtherRow* row = find(name, account, "");
    if (row == nullptr) continue;
    found = true;
    std::vector<std::string> names = split_list(row_value(*row, "Coordinators"));
    std::erase(names, user);
    if (coordinates) names.push_back(user);
    if (names.empty())
      row->erase("Coordinators");
    else
      (*row)["Coordinators"] = fmt::format("{}", fmt::join(names, ","));
  }
  return found;
}

std::string OtherAccounts::coordinated_by(const std::string& user) const {
  std::set<std::string> out;
  for (const auto& [name, cluster] : now_)
    for (const OtherRow& row : cluster.rows) {
      const auto names = split_list(row_value(row, "Coordinators"));
      if (std::find(names.begin(), names.end(), user) != names.end())
        out.insert(row_value(row, "account"));
    }
  return fmt::format("{}", fmt::join(out, ","));
}

void OtherAccounts::list_below(const std::string& cluster, const OtherRow& account,
                               const OtherRow& above, std::size_t& next,
                               std::vector<OtherAssociation>& out) const {
  OtherAssociation one;
  one.cluster = cluster;
  one.account = row_value(account, "account");
  one.parent = row_value(account, "parent");
  one.description = row_value(account, "Description");
  one.organization = row_value(account, "Organization");
  one.values = inherited(account, above, qos_);
  one.left = next++;
  const std::size_t place = out.size();
  out.push_back(one);
  std::map<std::string, const OtherRow*> users, accounts;
  for (const OtherRow& row : now_.at(cluster).rows) {
    if (row.contains("user") && row_value(row, "account") == one.account)
      users[row_value(row, "user")] = &row;
    if (!row.contains("user") && row_value(row, "parent") == one.account)
      accounts[row_value(row, "account")] = &row;
  }
  for (const auto& [name, row] : users) {
    OtherAssociation user = one;
    user.user = name;
    user.values = inherited(*row, one.values, qos_);
    if (const OtherRow* who = find(cluster, "", name)) {
      user.admin = row_value(*who, "AdminLevel");
      user.default_account = row_value(*who, "DefaultAccount");
    }
    user.coordinated = coordinated_by(name);
    user.left = next++;
    user.right = next++;
    out.push_back(std::move(user));
  }
  for (const auto& [name, row] : accounts) list_below(cluster, *row, one.values, next, out);
  out[place].right = next++;
}

std::vector<OtherAssociation> OtherAccounts::associations(const std::string& cluster) const {
  std::vector<OtherAssociation> out;
  std::size_t next = 1;
  const OtherRow* root = find(cluster, kRoot, "");
  list_below(cluster, root == nullptr ? OtherRow{{"account", kRoot}} : *root, {}, next, out);
  return out;
}

void OtherAccounts::add_changes(proto::ApplyTenancy& out) const {
  for (const auto& [name, cluster] : now_) {
    const auto old = before_.find(name);
    tenancy::OtherCluster document{name, cluster.description, written(cluster.rows)};
    if (old == before_.end() || !(old->second == document))
      out.documents.emplace_back(std::move(document));
  }
  for (const auto& [name, document] : before_)
    if (!now_.contains(name))
      out.removals.push_back({std::string(tenancy::OtherCluster::kName), name});
}

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
