// Clients ask ctld with these messages who may do what, since when and by whom; see
// ctld/core/access.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/time/time.h"

namespace gantry::proto {

// Asks for the grants of tenants and of the cluster; answered by AccessReply. Operators,
// administrators and auditors see all; who may edit the roles of a tenant, those of the tenant; and
// everybody their own.
struct ListAccess {
  std::vector<std::string> tenants;  // empty = all, and the cluster
  std::uint64_t after = 0;           // rows to skip, from AccessReply::next; 0 = none
  GANTRY_FIELDS(FIELD(1, tenants), FIELD(2, after))
};

struct AccessRow {
  std::string tenant;               // "" = the whole cluster
  std::string user, group;          // exactly one of the two is set
  std::string role;                 // name of the role in documents
  std::vector<std::string> rights;  // rights in the tenant; a role of the cluster has only its name
  std::vector<std::string> gpu_models;  // GPU models that its jobs may ask for; empty = all
  bool gpus = true;                     // whether its jobs may ask for GPUs
  std::string from;                     // "Tenant fraud", "Tier dev", or "gantry.yaml"
  std::optional<Instant> until;
  // The revision that granted it; unset if it is older than the kept history.
  std::optional<std::uint64_t> revision;
  std::optional<Instant> since;
  std::string by;  // who applied that revision; "" = not known
  GANTRY_FIELDS(FIELD(1, tenant), FIELD(2, user), FIELD(3, group), FIELD(4, role), FIELD(5, rights),
                FIELD(6, gpu_models), FIELD(7, gpus), FIELD(8, from), FIELD(9, until),
                FIELD(10, revision), FIELD(11, since), FIELD(12, by))
};

struct AccessReply {
  std::vector<AccessRow> rows;        // by tenant, the cluster first; then by role and name
  std::optional<std::uint64_t> next;  // `after` of the next page; unset = the last
  GANTRY_FIELDS(FIELD(1, rows), FIELD(2, next))
};

}  // namespace gantry::proto
