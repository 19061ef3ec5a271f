// Fuzzes what noded/gpu reads from outside: CDI files, the output of a discovery command, stored
// series, lines of the kernel's log, and the kernel's lists of device numbers. The first byte
// selects one of them.
#include "common/assert.h"
#include "noded/gpu/cdi.h"
#include "noded/gpu/generic.h"
#include "noded/gpu/health/sample.h"
#include "noded/gpu/health/xid.h"

using namespace gantry;
using namespace gantry::gpu;

namespace {

void read_cdi_file(const std::string& text, const std::string& name) {
  const auto spec = parse_cdi(text, name);
  if (!spec) {
    GANTRY_ASSERT(spec.error().message.starts_with(name + ":"), "an error names the file");
    return;
  }
  GANTRY_ASSERT(!spec->devices.empty() && !spec->kind.empty(), "a specification has devices");
  for (const CdiDevice& device : spec->devices)
    for (const CdiMount& mount : fit_for_job(device.edits, CdiNodes::dropped).mounts)
      GANTRY_ASSERT(mount.container.starts_with('/'), "mounts are absolute");
}

void read_resources(const std::string& text) {
  const auto found = parse_discovered(text, "find");
  if (!found) return;
  for (const GenericResource& one : *found) {
    GANTRY_ASSERT(one.count > 0, "a resource is counted");
    GANTRY_ASSERT(complete(one) == one, "what is complete stays as it is");
  }
}

void read_series(const std::string& text) {
  if (text.empty()) return;
  const auto points =
      decode_points(std::string_view(text).substr(1), static_cast<unsigned char>(text.front()));
  if (points)
    GANTRY_ASSERT(decode_points(encode_points(*points),
                                static_cast<std::uint32_t>(points->size())) == *points,
                  "what is written can be read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0: read_cdi_file(text, "f.yaml"); break;
    case 1: read_cdi_file(text, "f.json"); break;
    case 2: read_resources(text); break;
    case 3: read_series(text); break;
    case 4: static_cast<void>(parse_xid_line(text)); break;
    default: static_cast<void>(parse_device_numbers(text, text)); break;
  }
  return 0;
}
