// Character devices that only some jobs may open, and how a job gets them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fields.h"
#include "common/quantity.h"
#include "common/resources/gpu_usage.h"

namespace gantry::runtime {

struct DeviceRule {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::string access;  // letters of "r" and "w"
  friend bool operator==(const DeviceRule&, const DeviceRule&) = default;
};

struct LaunchDevice {
  std::string path;    // path in the container, "/dev/nvidia0"
  std::string source;  // path on the node that is bound there
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::string access;  // "rw", "r"
  GANTRY_FIELDS(FIELD(1, path), FIELD(2, source), FIELD(3, major), FIELD(4, minor),
                FIELD(5, access))
};

struct LaunchBind {    // a directory of the node that a job may write
  std::string path;    // in the container
  std::string source;  // on the node
  GANTRY_FIELDS(FIELD(1, path), FIELD(2, source))
};

// The directory where a job with an image finds the driver's libraries, unless a CDI specification
// names another. NVIDIA's images search it by default; others through LD_LIBRARY_PATH.
inline constexpr std::string_view kDriverLibraries = "/usr/local/nvidia/lib64";

struct LaunchMount {  // a file or directory of the driver, for a job with an image
  std::string path;   // in the container
  std::string source;
  std::string type;  // type of the mount; "" = bind
  std::vector<std::string> options;
  GANTRY_FIELDS(FIELD(1, path), FIELD(2, source), FIELD(3, type), FIELD(4, options))
};

struct LaunchHook {   // as in the OCI runtime specification
  std::string stage;  // "createContainer"
  std::string path;
  std::vector<std::string> args, env;
  std::optional<std::uint32_t> timeout_s;
  GANTRY_FIELDS(FIELD(1, stage), FIELD(2, path), FIELD(3, args), FIELD(4, env), FIELD(5, timeout_s))
};

struct LaunchGpu {  // results of the checks of a GPU or slice before the job got it
  std::string uuid;
  std::uint32_t gpu = 0;  // GpuDevice::index
  GpuScrub scrub = GpuScrub::not_needed;
  std::string note;
  GANTRY_FIELDS(FIELD(1, uuid), FIELD(2, gpu), FIELD(3, scrub), FIELD(4, note))
};

struct VisibleGpu {  // a GPU or slice that a job sees
  std::string uuid;
  std::int32_t numa = -1;  // the NUMA node of its GPU; -1 = not known
  std::string shown{};     // its name in CUDA_VISIBLE_DEVICES; "" = the UUID
  // For a whole GPU: LaunchDevice::path of the devices that belong only to it. Steps without the
  // GPU cannot open them.
  std::vector<std::string> files{};
  [[nodiscard]] const std::string& name() const { return shown.empty() ? uuid : shown; }
  friend bool operator==(const VisibleGpu&, const VisibleGpu&) = default;
  GANTRY_FIELDS(FIELD(1, uuid), FIELD(2, numa), FIELD(3, shown), FIELD(4, files))
};

struct LaunchSharing {  // how a GPU or slice is shared with other jobs of the tenant
  std::string tenant;
  DevicePart::in<std::uint32_t> part{};  // part of its one device; 0 = it has all of its devices
  std::vector<LaunchBind> binds;         // directories shared by the jobs
  GANTRY_FIELDS(FIELD(1, tenant), NAMED_FIELD(2, "thousandths", part), FIELD(3, binds))
};

}  // namespace gantry::runtime
