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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "path", s.path);
    v(2, "objects", s.objects);
    v(3, "project", s.project);
    v(4, "size", s.size);
    v(5, "files", s.files);
  }
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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "description", s.description);
    v(3, "tenant", s.tenant);
    v(4, "path", s.path);
    v(5, "read", s.read);
    v(6, "write", s.write);
  }
};

}  // namespace gantry::tenancy
