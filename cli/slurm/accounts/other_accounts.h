// Accounts and users of other clusters, as sacctmgr keeps them in the documents of those clusters
// (kind Cluster). They have no effect in this cluster: they are only added, changed, listed and
// removed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/slurm/accounts/other_keys.h"
#include "cli/slurm/accounts/sacctmgr_qos.h"
#include "cli/slurm/accounts/sacctmgr_rows.h"
#include "common/proto/tenancy.h"
#include "common/result.h"

namespace gantry::cli::slurm {

// An association as it is listed.
struct OtherAssociation {
  std::string cluster, account, parent, user;
  OtherRow values;                        // includes limits of the accounts above
  std::string default_account, admin;     // of a user
  std::string description, organization;  // of the account
  std::string coordinated;                // the accounts that the user coordinates
  std::size_t left = 0, right = 0;        // numbers of Slurm's nested sets
};

class OtherAccounts {
 public:
  explicit OtherAccounts(const proto::TenancyDocuments& documents);

  [[nodiscard]] bool has_cluster(const std::string& name) const { return now_.contains(name); }
  [[nodiscard]] std::vector<std::string> clusters() const;
  void add_cluster(const std::string& name, const std::string& description);
  Result<void> set_cluster(const std::string& name, const std::vector<RawSetting>& settings);
  void describe_cluster(const std::string& name, const std::string& description);
  void remove_cluster(const std::string& name) { now_.erase(name); }

  // All clusters named here must exist. The Result<bool> is true if something changed.
  [[nodiscard]] bool has_account(const std::string& cluster, const std::string& account) const;
  // `account` may be "": any account.
  [[nodiscard]] bool has_user(const std::string& cluster, const std::string& user,
                              const std::string& account) const;
  Result<bool> add_account(const std::string& cluster, const std::string& account,
                           const std::vector<RawSetting>& settings);
  Result<bool> add_user(const std::string& cluster, const std::string& user,
                        const std::string& account, const std::vector<RawSetting>& settings);
  Result<void> modify_account(const std::string& cluster, const std::string& account,
                              const std::vector<RawSetting>& settings);
  Result<void> modify_user(const std::string& cluster, const std::string& user,
                           const std::string& account, const std::vector<RawSetting>& settings);
  void remove_account(const std::string& cluster, const std::string& account);
  Result<void> remove_user(const std::string& cluster, const std::string& user,
                           const std::string& account);
  // Returns false if no cluster has the account.
  bool put_coordinator(const std::string& account, const std::string& user, bool coordinates);

  // "" = the cluster does not know the user.
  [[nodiscard]] std::string default_account_of(const std::string& cluster,
                                               const std::string& user) const;
  // The account above an account; "" for root.
  [[nodiscard]] std::string parent_of(const std::string& cluster, const std::string& account) const;
  // The accounts with which the user has an association.
  [[nodiscard]] std::vector<std::string> accounts_of(const std::string& cluster,
                                                     const std::string& user) const;

  // The associations of a cluster: each account, then its users, then the accounts below it.
  [[nodiscard]] std::vector<OtherAssociation> associations(const std::string& cluster) const;
  // Adds the differences to the documents that were passed to the constructor.
  void add_changes(proto::ApplyTenancy& out) const;

 private:
  struct Cluster {
    std::string description;
    std::vector<OtherRow> rows;
  };
  OtherRow* find(const std::string& cluster, const std::string& account, const std::string& user);
  [[nodiscard]] const OtherRow* find(const std::string& cluster, const std::string& account,
                                     const std::string& user) const;
  OtherRow& person(const std::string& cluster, const std::string& user);
  Result<void> move(const std::string& cluster, const std::string& account,
                    const std::string& parent);
  [[nodiscard]] std::string coordinated_by(const std::string& user) const;
  void list_below(const std::string& cluster, const OtherRow& account, const OtherRow& above,
                  std::size_t& next, std::vector<OtherAssociation>& out) const;

  QosBook qos_;
  std::map<std::string, tenancy::OtherCluster> before_;
  std::map<std::string, Cluster> now_;
};

// Other clusters, their accounts and users as rows of sacctmgr's listings.

// The associations of all other clusters, cluster by cluster, numbered as Slurm's nested sets.
std::vector<Entry> other_associations(const proto::TenancyDocuments& documents);

// Returns, for a listing of accounts, one row for each account of `associations` that is not yet in
// `listed`.
std::vector<Entry> other_account_rows(const std::vector<Entry>& associations,
                                      const std::vector<Entry>& listed);

// The other clusters themselves, with the limits of their account root.
std::vector<Entry> other_cluster_rows(const proto::TenancyDocuments& documents);

}  // namespace gantry::cli::slurm
