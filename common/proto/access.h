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
  std::vector<std::string> tenants;  // none = all, and the cluster
  std::uint64_t after = 0;           // rows to leave out, as AccessReply::next says; 0 = none
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "tenants", s.tenants);
    v(2, "after", s.after);
  }
};

struct AccessRow {
  std::string tenant;                   // "" = the whole cluster
  std::string user, group;              // one of the two
  std::string role;                     // as documents name it
  std::vector<std::string> rights;      // in the tenant; a role of the cluster has its name only
  std::vector<std::string> gpu_models;  // that its jobs may ask for; none = all
  bool gpus = true;                     // whether its jobs may ask for GPUs
  std::string from;                     // "Tenant fraud", "Tier dev", or "gantry.yaml"
  std::optional<Instant> until;
  // The revision that granted it; unset: it is older than what is kept of the history.
  std::optional<std::uint64_t> revision;
  std::optional<Instant> since;
  std::string by;  // who applied that revision; "" = not known
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "tenant", s.tenant);
    v(2, "user", s.user);
    v(3, "group", s.group);
    v(4, "role", s.role);
    v(5, "rights", s.rights);
    v(6, "gpu_models", s.gpu_models);
    v(7, "gpus", s.gpus);
    v(8, "from", s.from);
    v(9, "until", s.until);
    v(10, "revision", s.revision);
    v(11, "since", s.since);
    v(12, "by", s.by);
  }
};

struct AccessReply {
  std::vector<AccessRow> rows;        // by tenant, the cluster first; then by role and name
  std::optional<std::uint64_t> next;  // `after` of the next page; unset = the last
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "next", s.next);
  }
};

}  // namespace gantry::proto
