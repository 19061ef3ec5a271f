// The changes that sacctmgr makes: accounts and users as parts of the tenants' documents. An
// account below root is a tenant, and an account below a tenant is a project of it. A user's
// association is the tenant's role `user` together with a share in the project.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/slurm/accounts/account_limits.h"
#include "cli/slurm/accounts/sacctmgr_qos.h"
#include "common/proto/tenancy.h"
#include "common/result.h"

namespace gantry::cli::slurm {

// The user of a project that belongs to nobody. Without any user a project would be open to the
// whole tenant.
inline constexpr const char* kNoUser = "nobody";

// The tenants' documents as sacctmgr sees them. Each call changes them or returns what is wrong.
class Accounts {
 public:
  explicit Accounts(const proto::TenancyDocuments& documents);

  struct Settings {      // the keys of Slurm that have a counterpart
    std::string parent;  // "" or "root": the account is a tenant
    std::optional<std::string> description;
    std::optional<std::uint32_t> fairshare;
    std::vector<std::pair<std::string, std::string>> limits = {};  // already checked
    std::optional<NameList> qos = {};
    std::optional<std::string> default_qos = {};  // "" = that of the account above
    std::optional<std::string> organization = {};
    std::string default_account = {};  // for users; "" = not given
    // For users: operator_role, admin, or user for none.
    std::optional<tenancy::Role> admin_level = {};
    bool reset_usage = false;  // RawUsage=0
  };
  // Checks that a new tenant could have the QOS and DefaultQOS of the settings.
  [[nodiscard]] Result<void> check_qos(const Settings& settings) const;
  [[nodiscard]] bool has_account(const std::string& name) { return find(name).has_value(); }
  // True if the user has an association with the account, or with any account if that is "".
  [[nodiscard]] bool has_user(const std::string& user, const std::string& account);
  // The tenant of which an account is a project; "" if it is no project.
  std::string tenant_above(const std::string& account);
  // Returns true if this added something.
  Result<bool> add_account(const std::string& name, const Settings& settings);
  Result<bool> add_user(const std::string& name, const std::string& account,
                        const Settings& settings);
  Result<void> modify_account(const std::string& name, const Settings& settings);
  // `account` may be "": every account in which the user has a share.
  Result<void> modify_user(const std::string& name, const std::string& account,
                           const Settings& settings);
  Result<void> remove_account(const std::string& name);
  Result<void> remove_user(const std::string& name, const std::string& account);

  // The accounts with which the user has an association.
  [[nodiscard]] std::vector<std::string> accounts_of(const std::string& user);
  // Makes an account of the user the one that is charged for jobs that name none.
  Result<void> put_default_account(const std::string& user, const std::string& account);
  // Gives the user a role in the cluster, in the document of a tenant that the user belongs to.
  Result<void> put_admin_level(const std::string& user, tenancy::Role level);
  // A coordinator of an account below root is an admin of the tenant.
  Result<void> put_coordinator(const std::string& account, const std::string& user,
                               bool coordinates);
  // The account that is charged for jobs of the user that name none; "" = not set.
  [[nodiscard]] std::string default_account_of(const std::string& user) const;

  // The text of sacctmgr's dump file: clusters, accounts and users below their parents.
  [[nodiscard]] std::string dump(const std::string& cluster) const;

  // The difference between the documents now and the documents that the constructor got.
  [[nodiscard]] proto::ApplyTenancy changes() const;

 private:
  struct Place {
    tenancy::Tenant* tenant = nullptr;
    tenancy::Project* project = nullptr;  // not set: the account is the tenant
  };
  Result<Place> find(const std::string& account);
  Result<void> put_limits(tenancy::Tenant& tenant, const AccountOfLimit& of,
                          const Settings& settings) const;
  Result<void> put_qos(tenancy::Tenant& tenant, const Settings& settings) const;
  std::vector<Place> places_of(const std::string& user, const std::string& account);

  std::uint64_t revision_ = 0;
  QosBook qos_;
  std::map<std::string, tenancy::Tenant> before_, now_;
};

// Reads "KEY=VALUE" of `add` and `modify ... set`. For lists the keys "qos+" and "qos-" exist too.
// A key without a counterpart in Gantry is an error that says so.
Result<void> read_setting(const std::string& key, const std::string& value,
                          Accounts::Settings& settings);

// Reads a dump. What has no counterpart is listed in `ignored`, one line each.
Result<void> load_dump(const std::string& text, Accounts& accounts,
                       std::vector<std::string>& ignored);

}  // namespace gantry::cli::slurm
