// The places of cgroups on this machine. They are found once when noded starts, and passed to every
// shim.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/fields.h"

namespace gantry::runtime {

// One hierarchy: v1 has one for each controller (or for a few together), v2 has one for all.
struct CgroupMount {
  std::string path;                      // the node's own directory: <mount>/<root>/<node>
  std::vector<std::string> controllers;  // controllers of the hierarchy that Gantry uses
  GANTRY_FIELDS(FIELD(1, path), FIELD(2, controllers))
};

struct CgroupLayout {
  std::uint32_t version = 0;        // 0 = none may be written, 1 = v1 or hybrid, 2 = unified
  std::vector<CgroupMount> mounts;  // v2: exactly one
  std::string relative;             // "/gantry/n1", the same in every hierarchy
  bool swap_accounting = false;     // v1: memory.memsw.*, v2: memory.swap.max exist
  // The node's directory in v1 hierarchies that Gantry does not use, but in which the OCI runtime
  // makes directories as well (cpu, name=systemd). Gantry only removes these.
  std::vector<std::string> others;
  // Majors of character devices that only some jobs may open: GPUs. Empty: no job needs rules of
  // its own.
  std::vector<std::uint32_t> device_majors;
  GANTRY_FIELDS(FIELD(1, version), FIELD(2, mounts), FIELD(3, relative), FIELD(4, swap_accounting),
                FIELD(5, others), FIELD(6, device_majors))
  [[nodiscard]] const CgroupMount* with(std::string_view controller) const {
    for (const auto& m : mounts)
      for (const auto& c : m.controllers)
        if (c == controller) return &m;
    return nullptr;
  }
};

}  // namespace gantry::runtime
