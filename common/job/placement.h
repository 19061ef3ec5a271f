// Whose a job is, and what a node gives to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/resources/gpu.h"
#include "common/resources/gres.h"
#include "common/types.h"

namespace gantry {

// The user whom a job belongs to and runs as. It comes from the authenticated connection, never
// from a request.
struct Owner {
  Uid uid{};
  Gid gid{};
  std::string user;         // login name
  std::vector<Gid> groups;  // supplementary groups
  std::string home;
  std::string shell;
  friend bool operator==(const Owner&, const Owner&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "uid", s.uid);
    v(2, "gid", s.gid);
    v(3, "user", s.user);
    v(4, "groups", s.groups);
    v(5, "home", s.home);
    v(6, "shell", s.shell);
  }
};

// What one node gives to one attempt of a job: concrete CPUs, memory, GPUs and devices.
struct NodePlacement {
  std::string node;                 // name
  std::vector<std::uint16_t> cpus;  // logical CPU numbers, sorted
  std::int64_t memory = 0;          // bytes, the limit
  std::int64_t scratch = 0;         // bytes
  std::uint32_t tasks = 0;          // ranks of a whole-job step here
  std::vector<GpuGrant> gpus;
  std::vector<GresGrant> gres{};
  friend bool operator==(const NodePlacement&, const NodePlacement&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "node", s.node);
    v(2, "cpus", s.cpus);
    v(3, "memory", s.memory);
    v(4, "scratch", s.scratch);
    v(5, "tasks", s.tasks);
    v(6, "gpus", s.gpus);
    v(7, "gres", s.gres);
  }
};

}  // namespace gantry
