// Container Device Interface (specification 1.1.0): how a vendor says what a container needs for a
// device. Files in /etc/cdi (by hand) and /var/run/cdi (generated, these win) are read, checked and
// merged; the caller applies the result to a bundle.
//
// The files decide what root mounts and runs for a job, so one that others than root may write is
// refused. Device files are not taken from them for NVIDIA: which ones a job gets is decided in
// devices.h. Neither are sockets and folders that the daemons of several tenants would share.
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
  std::string host;  // "" = the same
  std::string type;  // "" = what the host has: "c", "b", "p"
  std::optional<std::uint32_t> major, minor, mode, uid, gid;
  std::string permissions = "rwm";
  friend bool operator==(const CdiNode&, const CdiNode&) = default;
};

struct CdiEdits {
  std::vector<std::string> env;  // "NAME=VALUE", each name once
  std::vector<CdiNode> nodes;
  std::vector<CdiMount> mounts;  // a parent before what is in it
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
  CdiEdits edits;                   // once, whichever devices are used
  std::vector<CdiDevice> devices;
};

// One file: JSON when `file` ends in .json, else YAML. Unknown fields, a version that is older than
// the fields in it, and what is not supported here (intelRdt, netDevices) are errors.
Result<CdiSpec> parse_cdi(const std::string& text, const std::string& file);

struct CdiRegistry {
  std::vector<CdiSpec> specs;
  std::vector<std::string> problems;  // files that are not used, a sentence each
  struct Place {
    std::size_t spec = 0, device = 0;
  };
  std::map<std::string, Place, std::less<>> devices;        // "nvidia.com/gpu=0"
  std::map<std::string, std::string, std::less<>> doubled;  // name -> two files of one folder
};

inline const std::vector<std::string> kCdiFolders{"/etc/cdi", "/var/run/cdi"};

// Folders of rising weight; one that does not exist is empty.
CdiRegistry read_cdi(std::span<const std::string> folders);

// The edits of these devices together. not_found names what there is of the kind.
Result<CdiEdits> merge_cdi(const CdiRegistry& registry, std::span<const std::string> names);

enum class CdiNodes { dropped, kept };  // dropped: devices.h decides, as for all of NVIDIA's

// Without what would join tenants (MPS pipes, sockets of persistenced and fabric manager) and
// without variables that choose devices.
CdiEdits fit_for_job(CdiEdits edits, CdiNodes nodes);

}  // namespace gantry::gpu
