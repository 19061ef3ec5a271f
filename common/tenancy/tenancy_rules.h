// Rules of documents about jobs and people: labels, the strength of walls, roles that a site makes,
// and policies.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/job/job_access.h"
#include "common/special_members.h"

namespace gantry::tenancy {

struct LabelRule {  // a label that jobs of the tenant must have
  std::string key;
  std::vector<std::string> values;  // allowed values; empty = any
  std::string value;  // default for jobs without the label; "" = such jobs are refused
  friend bool operator==(const LabelRule&, const LabelRule&) = default;
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, values), FIELD(3, value))
};

// How much a job may ask of the host; the names and their meaning are those of Kubernetes' Pod
// Security Standards.
enum class SecurityProfile : std::uint8_t { privileged = 1, baseline = 2, restricted = 3 };
GANTRY_NAMES(SecurityProfile, {privileged, "privileged"}, {baseline, "baseline"},
             {restricted, "restricted"})

// Values that are not set are those of the tier, and then the defaults that are named here.
struct TenantSecurity {
  // A job that breaks `enforce` is refused; one that breaks `audit` is noted in the controller's
  // log, and one that breaks `warn` is named to its submitter. Without `enforce` a tenant whose
  // jobs may use the host's network has privileged, all others restricted.
  std::optional<SecurityProfile> enforce, audit, warn;
  std::vector<std::string> registries;   // images may come from these only; none = from all
  std::optional<bool> images_by_digest;  // images must be named by digest; no
  // The sandbox of jobs that name none, and the weakest that a job may name; standard.
  std::optional<Sandbox> sandbox{};
  std::vector<std::string>
      sandboxes{};  // sandboxes that jobs may name; empty = all from `sandbox` on
  friend bool operator==(const TenantSecurity&, const TenantSecurity&) = default;
  GANTRY_FIELDS(FIELD(1, enforce), FIELD(2, audit), FIELD(3, warn), FIELD(6, registries),
                FIELD(7, images_by_digest), FIELD(12, sandbox), FIELD(13, sandboxes))
};

// What somebody may do in a tenant. Every right of a role is one of these.
enum class TenantRight : std::uint8_t {
  see = 1,            // jobs, nodes, queue, budgets and costs, in listings
  submit = 2,         // submit jobs to it, and extend own jobs
  change_jobs = 3,    // cancel, hold and update jobs of others, and start steps in them
  read_output = 4,    // scripts and output of jobs of others
  edit_projects = 5,  // change its projects and classes
  edit_roles = 6,     // change who has a role in it, up to tenant-admin
  edit_policies = 7,  // rules about its jobs
  edit_secrets = 8,   // make, replace and remove its secrets
  ask_increase = 9,   // ask for more quota or budget
};
GANTRY_NAMES(TenantRight, {see, "see"}, {submit, "submit"}, {change_jobs, "change-jobs"},
             {read_output, "read-output"}, {edit_projects, "edit-projects"},
             {edit_roles, "edit-roles"}, {edit_policies, "edit-policies"},
             {edit_secrets, "edit-secrets"}, {ask_increase, "ask-increase"})

// A role of the site's own: one of the built-in roles of tenants, without some of its rights.
struct CustomRole {
  static constexpr std::string_view kName = "Role";
  static constexpr int kKind = 40;
  std::string name;
  std::string description;
  std::string base = "user";            // viewer, user or tenant-admin
  std::vector<std::string> without;     // rights of the base that it does not give
  std::optional<bool> gpus;             // whether its jobs may ask for GPUs; not set = yes
  std::vector<std::string> gpu_models;  // GPU models that its jobs may ask for; empty = all
  friend bool operator==(const CustomRole&, const CustomRole&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, description), FIELD(3, base), FIELD(4, without),
                FIELD(5, gpus), FIELD(6, gpu_models))
};

enum class PolicyAction : std::uint8_t { deny = 1, warn = 2, set = 3, allow = 4 };
GANTRY_NAMES(PolicyAction, {deny, "deny"}, {warn, "warn"}, {set, "default"}, {allow, "allow"})

enum class PolicyMode : std::uint8_t { enforce = 1, audit = 2 };
GANTRY_NAMES(PolicyMode, {enforce, "enforce"}, {audit, "audit"})

// A rule about jobs at submit and update. `match` and `unless` are patterns by field of the job.
struct Policy {
  GANTRY_SPECIAL_MEMBERS(Policy)
  static constexpr std::string_view kName = "Policy";
  static constexpr int kKind = 41;
  std::string name;
  std::string description;
  std::string tenant;      // tenant to whose jobs it applies; "" = all jobs of the cluster
  std::int32_t order = 0;  // lower ones are applied first; then by name
  PolicyMode mode = PolicyMode::enforce;
  PolicyAction action = PolicyAction::deny;
  std::map<std::string, std::string> match;   // all of these patterns must match
  std::map<std::string, std::string> unless;  // and not all of these
  std::map<std::string, std::string>
      values;           // for `set`: values for fields that the job leaves open
  std::string message;  // to the submitter
  friend bool operator==(const Policy&, const Policy&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, description), FIELD(3, tenant), FIELD(4, order),
                FIELD(5, mode), FIELD(6, action), FIELD(7, match), FIELD(8, unless),
                FIELD(9, values), FIELD(10, message))
};

}  // namespace gantry::tenancy
