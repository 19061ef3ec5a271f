// Converts objects of Kubernetes and Kueue into Gantry's documents. They are read as strictly as by
// the API server: an unknown field, a wrong type or a malformed quantity is an error with its
// place. What has no counterpart in Gantry becomes a note, and is never dropped silently.
//
// - Namespace: a Tenant with its labels; `tier: X` makes it one of Tier X where that exists
// - ResourceQuota: quota (requests = guaranteed, limits = burst) and counts of the tenant
// - LimitRange: defaults and per-node maxima of its jobs
// - Role, RoleBinding: roles of users and groups in the tenant; ClusterRoleBinding in every tenant
// - PriorityClass, WorkloadPriorityClass: a PriorityClass
// - ClusterQueue: quota, cohort, weight and reclaim of the tenant whose LocalQueue names it; if
//   several tenants do, a Cohort of that name, which they share
// - Cohort, ResourceFlavor, Topology: a Cohort, a Flavor, the levels of a Topology
// - NetworkPolicy: all of a namespace together are a NetworkProfile, the tenant's default; what
//   cannot be kept is an error, because a policy that is kept in part is worse than none
// - everything else: a note
//
// An object describes only a part of a tenant. Parts that no object describes stay unchanged.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/tenancy/read.h"

namespace gantry::tenancy {

struct Note {  // something that Gantry does not do, or does differently
  Place place;
  std::string object;  // "ResourceQuota fraud/gpus"
  std::string field;   // "spec.hard.services"; "" = all of it
  std::string why;
  friend bool operator==(const Note&, const Note&) = default;
};
std::string to_string(const Note& note);  // "FILE:LINE:COL: OBJECT: FIELD: WHY"

struct Translation;  // k8s_objects.h

class Kubernetes {
 public:
  // `user_domain` is removed from the names of users, where they end in "@DOMAIN"; "" = names stay
  // as they are.
  explicit Kubernetes(std::string user_domain);
  ~Kubernetes();
  Kubernetes(const Kubernetes&) = delete;
  Kubernetes& operator=(const Kubernetes&) = delete;

  Result<void> add(const Value& root);            // one object, or a List of them
  void set_user_domain(std::string user_domain);  // applies to objects that are added from now on

  // Returns the documents. `known` are the documents that exist, and documents of the same call
  // that are not Kubernetes'.
  std::vector<ReadDocument> finish(std::span<const Document> known);
  [[nodiscard]] const std::vector<Note>& notes() const;

 private:
  std::unique_ptr<Translation> parts_;
};

}  // namespace gantry::tenancy
