// config.json of the OCI runtime. It is made from the order; from the image come only the
// environment, the working directory and the default command.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "noded/runtime/launch.h"

namespace gantry::runtime {

// A range of container ids, host ids and their count. The owner's own ids map to themselves, all
// others to a range that no account of the host has.
struct IdRange {
  std::uint32_t inside, outside, count;
};

struct OciInput {
  std::string root;  // prepared root directory
  bool read_only = true;
  std::string cwd;
  std::vector<std::string> args;  // arguments of gantry-init, without its own name
  std::vector<std::string> env;   // "NAME=value"
  std::string seccomp_bpf;        // base64, for crun
  std::string seccomp_json;       // OCI form, for runc
  std::string cgroups_path;       // runc only
  // Path of a namespace with these mappings; "" = the runtime makes one.
  std::string user_namespace;
  bool has_limits = false;  // the runtime is started with job_limits() and sets none itself
};

// Whether the container has a kernel other than the node's. Then its processes cannot be entered,
// and its runtime supports fewer kinds of mounts, namespaces and filters.
constexpr bool has_own_kernel(Sandbox level) {
  return level == Sandbox::gvisor || level == Sandbox::vm;
}

inline constexpr std::uint64_t kJobFiles =
    65536;  // files that a job may have open unless it asks for more
inline constexpr const char* kInitInside = "/dev/gantry-init";
inline constexpr const char* kScript = "/run/gantry/script";

// A limit with which a job starts, never above what this process may set.
struct JobLimit {
  std::string_view name;
  int resource;  // RLIMIT_*
  std::uint64_t soft, hard;
};
// The node's own limits, with the soft limits that the job requests.
std::vector<JobLimit> job_limits(const ProcessLimits& asked, Sandbox level);

std::string write_oci_config(const NodeSetup& setup, const LaunchRequest& request,
                             const OciInput& input);

std::vector<IdRange> keep_mapping(std::vector<std::uint32_t> own, std::uint32_t base);
// Mappings for a container started by root: they preserve its owner and the owner's groups.
struct IdMappings {
  std::vector<IdRange> uids, gids;
};
IdMappings mappings_of(const NodeSetup& setup, const LaunchRequest& request);

}  // namespace gantry::runtime
