// Resources that a node declares by name: `gres: [license:4, "fpga:/dev/xfpga[0-3]"]`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/resources/gres.h"
#include "common/result.h"
#include "config/config.h"

namespace gantry {

struct DeclaredGres {
  std::string name;
  std::uint32_t count = 0;  // 1..kMostGresCount
  // One for each resource, in /dev; empty: they are only counted, or are discovered.
  std::vector<std::string> files;
};

// Reads NAME:COUNT, or NAME:FILES with a range. The error is one sentence about what is wrong.
Result<DeclaredGres> parse_declared_gres(std::string_view text);
// The resources of a node that load() has checked; sorted by name.
std::vector<DeclaredGres> declared_gres(const NodeConfig& node);
// Reads one item of a checked `licenses: [matlab:10]`.
Result<GresCount> parse_declared_license(std::string_view text);
std::vector<GresCount> declared_licenses(const Config& config);
// The names that all nodes of a checked configuration declare; sorted, at most kMostGresNames.
std::vector<std::string> gres_names(const Config& config);

}  // namespace gantry
