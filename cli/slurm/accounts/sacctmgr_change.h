// What sacctmgr changes: accounts and users as parts of the tenants' documents. An account below
// root is a tenant, one below a tenant is a project of it; a user's association is the tenant's
// role `user` and a share in the project.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/slurm/accounts/sacctmgr_qos.h"
#include "common/proto/tenancy.h"
#include "common/result.h"

namespace gantry::cli::slurm {

// Alone in a project that belongs to none: one that names nobody at all is open to its tenant.
inline constexpr const char* kNoUser = "nobody";

// The tenants' documents as sacctmgr sees them; each call changes them or says what is wrong.
class Accounts {
 public:
  explicit Accounts(const proto::TenancyDocuments& documents);

  struct Settings {      // of Slurm's keys, those that have a counterpart
    std::string parent;  // "" or "root": a tenant
    std::optional<std::string> description;
    std::optional<std::uint32_t> fairshare;
    std::vector<std::pair<std::string, std::string>> limits = {};  // a tenant's; checked
    std::optional<NameList> qos = {};                              // a tenant's
    std::optional<std::string> default_qos = {};                   // "" = the cluster's again
  };
  // Whether a new tenant could have the QOS and DefaultQOS of the settings.
  [[nodiscard]] Result<void> check_qos(const Settings& settings) const;
  // The tenant that an account is a project of; "" = it is none.
  std::string tenant_above(const std::string& account);
  // True if there is something new.
  Result<bool> add_account(const std::string& name, const Settings& settings);
  Result<bool> add_user(const std::string& name, const std::string& account,
                        const Settings& settings);
  Result<void> modify_account(const std::string& name, const Settings& settings);
  // `account` "" = every one in which the user has a share.
  Result<void> modify_user(const std::string& name, const std::string& account,
                           const Settings& settings);
  Result<void> remove_account(const std::string& name);
  Result<void> remove_user(const std::string& name, const std::string& account);

  // sacctmgr's file: clusters, accounts and users below their parents.
  [[nodiscard]] std::string dump(const std::string& cluster) const;

  // What differs from what was given.
  [[nodiscard]] proto::ApplyTenancy changes() const;

 private:
  struct Place {
    tenancy::Tenant* tenant = nullptr;
    tenancy::Project* project = nullptr;  // unset: the account is the tenant
  };
  Result<Place> find(const std::string& account);
  Result<void> put_qos(tenancy::Tenant& tenant, const Settings& settings) const;
  std::vector<Place> places_of(const std::string& user, const std::string& account);

  std::uint64_t revision_ = 0;
  QosBook qos_;
  std::map<std::string, tenancy::Tenant> before_, now_;
};

// "KEY=VALUE" of `add` and `modify ... set`, also "qos+" and "qos-" as keys of lists; what has no
// counterpart is an error that says so.
Result<void> read_setting(const std::string& key, const std::string& value,
                          Accounts::Settings& settings);

// Reads a dump; what has no counterpart is listed in `ignored`, a line each.
Result<void> load_dump(const std::string& text, Accounts& accounts,
                       std::vector<std::string>& ignored);

}  // namespace gantry::cli::slurm
