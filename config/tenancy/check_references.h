// The facts that checks of single documents share: which documents exist, which one is being
// checked, and how a problem in it is reported. Used inside config/tenancy only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "config/tenancy/check.h"

namespace gantry::tenancy {

using Found = std::optional<Problem>;

class References {
 public:
  explicit References(std::span<const Document> documents) : documents_(documents) {}

  [[nodiscard]] std::span<const Document> documents() const { return documents_; }
  // A problem in the document that is being checked.
  [[nodiscard]] Found problem(std::string path, std::string what) const;
  // Returns a problem unless a document of this kind and name exists; "" refers to none.
  [[nodiscard]] Found refer(std::string_view kind, const std::string& name,
                            const std::string& path) const;

 protected:
  std::span<const Document> documents_;
  const Document* current_ = nullptr;
  std::map<std::string, std::set<std::string>> names_;  // by kind

 private:
  [[nodiscard]] bool exists(std::string_view kind, const std::string& name) const;
};

// check_money.cc: prices, plans, hours and budgets.
Found check_price_book(const References& documents, const PriceBook& book);
Found check_budget(const References& documents, const Budget& budget);

// check_network.cc: profiles of networks, services, and those that a tenant names.
Found check_network_profile(const References& documents, const NetworkProfile& profile);
Found check_network_service(const References& documents, const NetworkService& service);
Found check_tenant_network(const References& documents, const TenantNetwork& network);

// check_rules.cc: who has which role, roles of the site's own, labels of jobs, policies.
inline constexpr std::int32_t kMostPolicyOrder = 1'000'000;
Found check_grants(const References& documents, const std::vector<Grant>& grants);
Found check_label_rules(const References& documents, const std::vector<LabelRule>& rules);
bool is_sandbox(std::string_view name);
std::string no_sandbox(const std::string& name);  // the sentence about a name that is none
Found check_security(const References& documents, const TenantSecurity& security);
Found check_custom_role(const References& documents, const CustomRole& role);
Found check_policy(const References& documents, const Policy& policy);

// check_storage.cc: directories of tenants, datasets.
Found check_tenant_storage(const References& documents, const Tenant& tenant);
Found check_dataset(const References& documents, const Dataset& dataset);

// check_services.cc: replicas behind gantry-gate.
Found check_service(const References& documents, const Service& service);

}  // namespace gantry::tenancy
