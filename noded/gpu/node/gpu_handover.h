// Hands a GPU or slice over from one job to the next. Before a job gets it, no process of anybody
// else may run there or hold its memory; if another tenant had it, its memory is overwritten
// (gantry-gpu-scrub); and the site's own program may say that the device is not well. The same is
// checked when a job is over, and repeatedly for a device that was found unwell, until it is well.
//
// It runs on the loop's thread; the driver is asked through `look`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/loop/loop.h"
#include "common/resources/gpu.h"
#include "config/config.h"
#include "noded/gpu/node/commands.h"
#include "noded/runtime/launch.h"

namespace gantry::node {

// Causes that begin so end only when a handover has succeeded once.
inline constexpr std::string_view kNotIdle = "gpu-not-idle:", kNotScrubbed = "gpu-scrub:",
                                  kProbeFailed = "gpu-probe:";
bool mended_by_handover(const GpuFault& fault);

inline constexpr std::uint32_t kMemorySlices = 16;  // no GPU has more

struct HandedDevice {
  std::uint32_t gpu = 0;  // GpuDevice::index
  std::string gpu_uuid;
  std::string uuid;                                 // UUID of the slice, or of the GPU
  std::optional<std::uint32_t> gpu_instance;        // set for a slice
  std::uint32_t first = 0, slices = kMemorySlices;  // range of the GPU's memory slices
  bool scrub = false;  // its memory may hold data that is not this tenant's
};

enum class HandoverWhen : std::uint8_t { before, after, repair };

class GpuHandover {
 public:
  struct Options {
    GpuScrubbing scrubbing = GpuScrubbing::when_possible;
    std::string scrub_program, cuda_library, probe_program;
    Duration patience = seconds(5);  // killed processes need a moment to let the device go
    Duration pause = milliseconds(200);
    Duration scrub_limit = seconds(15), probe_limit = seconds(15);
  };
  struct Seen {
    std::string left;               // what still uses the device; "" = nothing
    std::optional<GpuFault> fault;  // a fault that a check found
  };
  using Looked = std::function<void(std::vector<Seen>&&)>;  // one Seen for each device
  using Look = std::function<void(const std::vector<HandedDevice>&, Looked)>;
  GpuHandover(Options options, loop::Loop& loop, Look look);
  ~GpuHandover();
  GpuHandover(const GpuHandover&) = delete;
  GpuHandover& operator=(const GpuHandover&) = delete;

  struct Fault {
    std::string gpu_uuid;
    GpuFault fault;
  };
  struct Outcome {
    std::vector<runtime::LaunchGpu> gpus;  // in the order in which the devices were given
    std::vector<Fault> faults;             // empty: all is well
  };
  // `done` comes in a later turn. `env` has more variables for the site's program.
  void run(HandoverWhen when, std::vector<HandedDevice> devices, std::vector<std::string> env,
           std::function<void(Outcome&&)> done);
  // Must a job that is to get this GPU wait? Slices that are being handed over do not delay each
  // other.
  [[nodiscard]] bool busy(std::uint32_t gpu, bool slice) const;

 private:
  struct Case;
  void look(const std::shared_ptr<Case>& one);
  void looked(const std::shared_ptr<Case>& one, std::vector<Seen>&& found);
  void scrub(const std::shared_ptr<Case>& one);
  void scrubbed(Case& one, std::size_t device, const CommandEnd& end);
  void probe(const std::shared_ptr<Case>& one);
  void finish(const std::shared_ptr<Case>& one);
  static void add_fault(Case& one, std::size_t device, std::string cause, FaultDomain domain);

  const Options options_;
  loop::Loop& loop_;
  Look look_;
  Commands commands_;
  std::vector<std::shared_ptr<Case>> cases_;
};

}  // namespace gantry::node
