// Devices that are not NVIDIA's (FPGAs, capture cards, other vendors' accelerators), and resources
// that are only counted (licences of a node). They are declared in the configuration, or a command
// prints them as JSON:
//
//   { "resources": [ { "name": "fpga", "type": "u250",
//                      "devices": [ { "id": "0", "files": ["/dev/xfpga0"], "numa": 1,
//                                     "env": { "FPGA_SLOT": "0" } } ] },
//                    { "name": "sim-license", "count": 4 } ] }
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/result.h"
#include "noded/gpu/devices.h"

namespace gantry::gpu {

inline constexpr std::size_t kMostGenericDevices = 1024;  // devices of one resource on one node
inline constexpr std::size_t kMostGenericResources = 64;

struct GenericDevice {
  std::string id;                          // unique in its resource; "" = its place in the list
  std::vector<std::string> files;          // "/dev/xfpga0"; "/dev/xfpga[0-3]" are four files
  std::map<std::string, std::string> env;  // variables for jobs that have the device
  std::int32_t numa = -1;                  // -1 = not known
  GANTRY_FIELDS(FIELD(1, id), FIELD(2, files), FIELD(3, env), FIELD(4, numa))
  friend bool operator==(const GenericDevice&, const GenericDevice&) = default;
};

struct GenericResource {
  std::string name;                    // --gres=NAME
  std::string type;                    // --gres=NAME:TYPE; "" = all devices are alike
  std::uint32_t count = 0;             // how many there are, if no devices are listed
  std::vector<GenericDevice> devices;  // one entry per device; empty = only counted
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, type), FIELD(3, count), FIELD(4, devices))
  friend bool operator==(const GenericResource&, const GenericResource&) = default;
};

struct GenericResources {
  std::vector<GenericResource> resources;
  GANTRY_FIELDS(FIELD(1, resources))
};

// Checks the resource, fills in ids and counts, and expands file patterns. An error begins with
// "fpga:u250: device 0: ...".
Result<GenericResource> complete(GenericResource resource);

// Parses the output of a discovery command; `command` is its name in errors.
Result<std::vector<GenericResource>> parse_discovered(std::string_view json,
                                                      std::string_view command);

// Joins declared and discovered resources; a name with a type may come from only one of the two.
Result<std::vector<GenericResource>> combine(std::vector<GenericResource> declared,
                                             std::vector<GenericResource> discovered);

// Reads the device numbers of the device's files in `roots.dev`. Only character devices are
// accepted, and never the machine's memory or ports.
Result<std::vector<DeviceFile>> device_files(const GenericDevice& device, const Roots& roots);

}  // namespace gantry::gpu
