// Tenancy documents: what a platform team declares about tenants; the controller stores them. There
// is one struct per kind. The cluster's `gantry.yaml` lists the machines, and these documents
// define who may use them.
//
// A quota line is about one resource in one flavor, or in all flavors together (flavor ""); if both
// are given, both are checked. A tenant with lines for some flavors of a resource and none for ""
// may not use other flavors of it. Without any line for a resource it may use that resource without
// limit. Amounts are in the units of common/resources/resources.h (thousandths of a core and of a
// GPU, bytes). The formulas are Kueue's (nominal, borrowing limit, lending limit, cohorts); see
// ctld/sched/tenant/quota.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/fields.h"
#include "common/resources/resources.h"
#include "common/special_members.h"
#include "common/tenancy/tenancy_parts.h"
#include "common/tenancy/tenancy_rules.h"
#include "common/time/time.h"

namespace gantry {

// A number on the wire, a name in JSON.
GANTRY_NAMES(Resource, {cpu, "cpu"}, {memory, "mem"}, {gpu, "gpu"}, {scratch, "scratch"},
             {io, "io"}, {net, "net"})
static_assert(enum_names(Resource{}).size() == kResourceCount);

}  // namespace gantry

namespace gantry::tenancy {

struct QuotaLine {
  std::string flavor;  // "" = all flavors together
  Resource resource = Resource::gpu;
  std::int64_t nominal = 0;            // guaranteed amount
  std::optional<std::int64_t> borrow;  // most beyond nominal; not set = only the cohort limits it
  std::optional<std::int64_t> lend;  // most of nominal that is lent while idle; not set = all of it
  friend bool operator==(const QuotaLine&, const QuotaLine&) = default;
  GANTRY_FIELDS(FIELD(1, flavor), FIELD(2, resource), FIELD(3, nominal), FIELD(4, borrow),
                FIELD(5, lend))
};

enum class Role : std::uint8_t {
  auditor =
      0,  // of the cluster, as operator and admin: sees all and the audit log, changes nothing
  viewer = 1,
  user = 2,
  tenant_admin = 3,
  operator_role = 4,
  admin = 5
};
GANTRY_NAMES(Role, {auditor, "auditor"}, {viewer, "viewer"}, {user, "user"},
             {tenant_admin, "tenant-admin"}, {operator_role, "operator"}, {admin, "admin"})

// Roles that reach beyond the tenant whose document grants them.
constexpr bool of_cluster(Role role) {
  return role == Role::auditor || role >= Role::operator_role;
}

struct Grant {  // a role in a tenant for a user or a group; exactly one of the two is set
  Role role = Role::user;
  std::string user;                // login name
  std::string group;               // a group of the operating system
  std::optional<Instant> until{};  // when it ends; not set = it does not
  std::string custom{};            // a CustomRole, whose base is `role`; "" = none
  friend bool operator==(const Grant&, const Grant&) = default;
  GANTRY_FIELDS(FIELD(1, role), FIELD(2, user), FIELD(3, group), FIELD(4, until), FIELD(5, custom))
};

struct UserShare {
  std::string user;
  std::uint32_t shares = 1;  // 0..1,000,000; 0 = served last
  friend bool operator==(const UserShare&, const UserShare&) = default;
  GANTRY_FIELDS(FIELD(1, user), FIELD(2, shares))
};

struct Project {  // an account in Slurm's words
  std::string name;
  std::uint32_t shares = 1;
  std::vector<UserShare> users;               // users that are not named have one share each
  std::string description{}, organization{};  // for people
  // Another project of the tenant, whose limits of use its jobs keep too; "" = none. It takes no
  // part in the fair share.
  std::string parent{};
  friend bool operator==(const Project&, const Project&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, shares), FIELD(3, users), FIELD(4, description),
                FIELD(5, organization), FIELD(6, parent))
};

// The projects above the one of this name, the nearest first; none if it is no project, or below
// none. A cycle, which the check of documents refuses, ends the list.
std::vector<std::string> projects_above(const std::vector<Project>& projects,
                                        const std::string& name);

enum class Reclaim : std::uint8_t { any = 0, lower = 1, never = 2 };
GANTRY_NAMES(Reclaim, {any, "any"}, {lower, "lower-class"}, {never, "never"})

enum class VictimMode : std::uint8_t { requeue = 0, suspend = 1, cancel = 2 };
GANTRY_NAMES(VictimMode, {requeue, "requeue"}, {suspend, "suspend"}, {cancel, "cancel"})

// Orders jobs only inside the tenant: its value is added to the job's priority.
struct TenantClass {
  std::string name;
  std::int32_t value = 0;
  friend bool operator==(const TenantClass&, const TenantClass&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, value))
};

// A tenant. Empty lists and values that are not set are taken from the tier.
struct Tenant {
  GANTRY_SPECIAL_MEMBERS(Tenant)
  static constexpr std::string_view kName = "Tenant";
  static constexpr int kKind = 1;
  std::string name;                     // also the name of its partition
  std::string cohort;                   // "" = none: it neither borrows nor lends
  std::string tier;                     // "" = none
  std::optional<std::uint32_t> weight;  // thousandths, 1000 = 1; its weight when tenants borrow
  std::vector<QuotaLine> quota;
  JobLimits jobs;
  CountLimits counts;
  std::vector<Project> projects;  // none = one project, named like the tenant
  std::vector<Grant> grants;
  std::vector<TenantClass> classes;
  std::string default_class;                 // a PriorityClass; "" = the cluster's default
  std::vector<std::string> allowed_classes;  // PriorityClasses; empty = all that preempt no jobs
  std::vector<std::string> node_pools;       // none = all pools that belong to no tenant
  // From which borrowers it may take back its nominal quota; not set = from all.
  std::optional<Reclaim> reclaim;
  std::map<std::string, std::string> labels;  // "cost-center", "team", ...
  std::string description;
  IdleGpuLimits idle_gpus;
  // Whether it has its own queue; not set = yes. Without one, its jobs go to the partitions, like
  // those of a Slurm account.
  std::optional<bool> own_queue;
  std::string organization;  // for people
  // By user: the project (or the tenant, by its name) that is charged for jobs that name none.
  std::map<std::string, std::string> default_accounts;
  // Limits of use (use_limits.h), "KEY=VALUE|KEY=VALUE" by "ACCOUNT" or "ACCOUNT/USER"; an account
  // is the tenant or a project of it.
  std::map<std::string, std::string> associations;
  TenantNetwork network;
  std::vector<LabelRule> label_rules;  // for the labels of its jobs
  TenantSecurity security;
  TenantStorage storage;
  friend bool operator==(const Tenant&, const Tenant&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, cohort), FIELD(3, tier), FIELD(4, weight), FIELD(5, quota),
                FIELD(6, jobs), FIELD(7, counts), FIELD(8, projects), FIELD(9, grants),
                FIELD(10, classes), FIELD(11, default_class), FIELD(12, allowed_classes),
                FIELD(13, node_pools), FIELD(14, reclaim), FIELD(15, labels),
                FIELD(16, description), FIELD(17, idle_gpus), FIELD(32, own_queue),
                FIELD(49, organization), FIELD(50, default_accounts), FIELD(51, associations),
                FIELD(67, network), FIELD(68, label_rules), FIELD(69, security), FIELD(78, storage))
};

}  // namespace gantry::tenancy
