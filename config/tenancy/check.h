// The rules that all documents together must follow before any of them is stored. This is one pure
// function over the whole set. gtenant calls it to show places in files, and the controller calls
// it again before it commits.
//
//   names        well formed, each (kind, name) once
//   references   every cohort, tier, class, flavor, pool and tenant that is named exists
//   cohorts      no circle, at most kMostCohortLevels deep
//   classes      exactly one default (the built-in `normal` unless a document says otherwise)
//   quota        each cell once, nothing negative, lending at most nominal
//   tenants      at most kMostGrants, kMostProjects, kMostProjectUsers, kMostTenantClasses
//   nodes        a node belongs to at most one tenant; domains of a level are disjoint, and each is
//                within one domain of the wider level
//   networks     ranges are well formed, and none is of addresses that no job reaches
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
// Limits for what a tenant's own admins may add to it.
inline constexpr std::size_t kMostGrants = 5'000;
inline constexpr std::size_t kMostProjects = 1'000;
inline constexpr std::size_t kMostProjectText = 1'000;  // bytes of a description
// Users named in all projects of a tenant together.
inline constexpr std::size_t kMostProjectUsers = 20'000;
inline constexpr std::size_t kMostTenantClasses = 100;

// The priority classes that exist without a document, the default first. A document of the same
// name replaces one of them.
inline constexpr std::array<std::string_view, 3> kBuiltInClasses{"normal", "production-critical",
                                                                 "best-effort"};

struct Problem {
  std::string kind, name;  // kind and name of the document
  std::string path;        // path in the document: "quota.gpu"; "" = the whole document
  std::string what;        // what is wrong and what is allowed, in a clause
};

// Returns the first problem. `blame` limits the search to problems of documents for which it
// returns true; not set = all documents. It is for callers that may not see every document and ask
// only about their own.
std::optional<Problem> find_problem(std::span<const Document> documents,
                                    const std::function<bool(const Document&)>& blame = {});

// Returns the first problem as an error: "Tenant fraud: cohort: there is no Cohort `ml`".
Result<void> check_documents(std::span<const Document> documents);
std::string to_string(const Problem& problem);

}  // namespace gantry::tenancy
