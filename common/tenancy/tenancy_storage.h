// Storage in documents: the directory of a tenant, and datasets that tenants share. Both lie on the
// nodes below the directories of `noded.storage`, which no job sees but for what these grant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fields.h"
#include "common/job/job_access.h"

namespace gantry::tenancy {

struct TenantStorage {
  // A directory that each job of the tenant sees at this path, and may write to as far as its
  // user's rights go; "" = none.
  std::string path;
  ObjectStore objects;  // its part of an object store, for --stage-in and --stage-out
  // The nodes' file systems count what lies in the directory under this number, and refuse more
  // than the next two say.
  std::optional<std::uint32_t> project;
  std::optional<std::int64_t> size;  // bytes
  std::optional<std::int64_t> files;
  friend bool operator==(const TenantStorage&, const TenantStorage&) = default;
  GANTRY_FIELDS(FIELD(1, path), FIELD(2, objects), FIELD(3, project), FIELD(4, size),
                FIELD(5, files))
};

// A directory that jobs ask for by name. The owner's jobs may read and write it, those of other
// tenants as it says.
struct Dataset {
  static constexpr std::string_view kName = "Dataset";
  static constexpr int kKind = 42;
  std::string name;
  std::string description;
  std::string tenant;              // the owner
  std::string path;                // on the nodes, and in jobs
  std::vector<std::string> read;   // tenants whose jobs may read it
  std::vector<std::string> write;  // tenants whose jobs may write to it as well
  friend bool operator==(const Dataset&, const Dataset&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, description), FIELD(3, tenant), FIELD(4, path),
                FIELD(5, read), FIELD(6, write))
};

}  // namespace gantry::tenancy
