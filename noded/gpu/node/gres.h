// Resources of this node that its configuration declares by name: which device files and variables
// a job gets with them. Files are declared one by one, or a discovery command names them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "common/resources/gres.h"
#include "config/config.h"
#include "noded/gpu/generic.h"
#include "noded/runtime/launch.h"

namespace gantry::node {

class Gres {
 public:
  // Runs the discovery command, for at most 30 s. A declared resource that was not found is logged,
  // and is missing in counts(); a resource that is not declared is ignored.
  Gres(const NodedConfig& config, const NodeConfig& node, const Logger& log);

  [[nodiscard]] std::vector<GresCount> counts() const;  // sorted by name
  // Majors of the resources' files; only jobs that were given such a resource may open these.
  [[nodiscard]] std::vector<std::uint32_t> majors() const;

  // Adds device files and variables for a job that was given these. Error unavailable: one of them
  // does not exist.
  Result<void> prepare(const std::vector<GresGrant>& grants, runtime::LaunchRequest& request) const;

 private:
  struct Device {
    gpu::GenericDevice declared;
    std::vector<gpu::DeviceFile> files;
  };
  struct Resource {
    std::uint32_t count = 0;
    std::vector<Device> devices;  // empty: the resource is only counted
  };
  void add(const std::string& name, const gpu::GenericResource& resource, std::uint32_t most,
           const Logger& log);

  gpu::Roots roots_;
  std::map<std::string, Resource> resources_;
};

}  // namespace gantry::node
