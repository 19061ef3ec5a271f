// What documents must be together, before any of them is kept: one pure function over the whole
// set, which gtenant asks for places in files and the controller again before it commits.
//
//   names        well formed, each (kind, name) once
//   references   every cohort, tier, class, flavor, pool and tenant that is named exists
//   cohorts      no circle, at most kMostCohortLevels deep
//   classes      exactly one default (the built-in `normal` unless a document says otherwise)
//   quota        each cell once, nothing negative, lending at most nominal
//   tenants      at most kMostGrants, kMostProjects, kMostProjectUsers, kMostTenantClasses
//   nodes        a node is one tenant's own at most; domains of a level are disjoint, and each is
//                within one domain of the wider level
//   prices       price books agree on currency and time zones, each has a date of its own
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "common/result.h"
#include "common/tenancy/tenancy_cluster.h"

namespace gantry::tenancy {

inline constexpr std::size_t kMostCohortLevels = 8;
// Of one tenant: what its own admins may add to.
inline constexpr std::size_t kMostGrants = 5'000;
inline constexpr std::size_t kMostProjects = 1'000;
inline constexpr std::size_t kMostProjectUsers = 20'000;  // named in all its projects together
inline constexpr std::size_t kMostTenantClasses = 100;

// Priority classes that exist without a document, the default first; a document of the same name
// takes its place.
inline constexpr std::array<std::string_view, 3> kBuiltInClasses{"normal", "production-critical",
                                                                 "best-effort"};

struct Problem {
  std::string kind, name;  // of the document
  std::string path;        // in it: "quota.gpu"; "" = as a whole
  std::string what;        // and what is allowed, in a clause
};

// `blame`: only problems of documents for which it says yes; unset = of all. Who may not see every
// document asks about their own.
std::optional<Problem> find_problem(std::span<const Document> documents,
                                    const std::function<bool(const Document&)>& blame = {});

// The problem as an error, "Tenant fraud: cohort: there is no Cohort `ml`".
Result<void> check_documents(std::span<const Document> documents);
std::string to_string(const Problem& problem);

}  // namespace gantry::tenancy
