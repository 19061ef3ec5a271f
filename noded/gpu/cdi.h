// Container Device Interface (specification 1.1.0): vendors describe in files what a container
// needs for a device. Files in /etc/cdi (written by hand) and /var/run/cdi (generated; these have
// priority) are read, checked and merged; the caller applies the result to a bundle.
//
// The files decide what root mounts and runs for a job, so a file that others than root may write
// is refused. For NVIDIA's devices their device files are ignored: devices.h decides which ones a
// job gets. Sockets and folders that several tenants would share are ignored too.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"

namespace gantry::gpu {

struct CdiMount {
  std::string host, container, type;
  std::vector<std::string> options;
  friend bool operator==(const CdiMount&, const CdiMount&) = default;
};

struct CdiHook {
  std::string stage;  // "createContainer"
  std::string path;
  std::vector<std::string> args, env;
  std::optional<std::uint32_t> timeout_s;
  friend bool operator==(const CdiHook&, const CdiHook&) = default;
};

struct CdiNode {
  std::string path;
  std::string host;  // path on the host; "" = the same as in the container
  std::string type;  // "" = the type that the host has: "c", "b", "p"
  std::optional<std::uint32_t> major, minor, mode, uid, gid;
  std::string permissions = "rwm";
  friend bool operator==(const CdiNode&, const CdiNode&) = default;
};

struct CdiEdits {
  std::vector<std::string> env;  // "NAME=VALUE", each name once
  std::vector<CdiNode> nodes;
  std::vector<CdiMount> mounts;  // parent folders come before what is mounted in them
  std::vector<CdiHook> hooks;
  std::vector<std::uint32_t> gids;  // additional; never 0
  friend bool operator==(const CdiEdits&, const CdiEdits&) = default;
};

struct CdiDevice {
  std::string name;
  CdiEdits edits;
};

struct CdiSpec {
  std::string file, version, kind;  // "nvidia.com/gpu"
  CdiEdits edits;                   // apply once, whichever devices are used
  std::vector<CdiDevice> devices;
};

// Parses one file: JSON if `file` ends in .json, otherwise YAML. Unknown fields, a version that is
// older than the fields in it, and fields that are not supported here (intelRdt, netDevices) are
// errors.
Result<CdiSpec> parse_cdi(const std::string& text, const std::string& file);

struct CdiRegistry {
  std::vector<CdiSpec> specs;
  std::vector<std::string> problems;  // one sentence for each file that is not used
  struct Place {
    std::size_t spec = 0, device = 0;
  };
  std::map<std::string, Place, std::less<>> devices;  // "nvidia.com/gpu=0"
  // For each name, the two files of one folder that have it.
  std::map<std::string, std::string, std::less<>> doubled;
};

inline const std::vector<std::string> kCdiFolders{"/etc/cdi", "/var/run/cdi"};

// Reads folders in ascending priority. A folder that does not exist counts as empty.
CdiRegistry read_cdi(std::span<const std::string> folders);

// Merges the edits of these devices. The error not_found lists the existing devices of the kind.
Result<CdiEdits> merge_cdi(const CdiRegistry& registry, std::span<const std::string> names);

// Not used, because devices.h decides about all of NVIDIA's devices.
enum class CdiNodes { dropped, kept };

// Removes what tenants would share (MPS pipes, sockets of persistenced and fabric manager) and
// variables that choose devices.
CdiEdits fit_for_job(CdiEdits edits, CdiNodes nodes);

}  // namespace gantry::gpu
