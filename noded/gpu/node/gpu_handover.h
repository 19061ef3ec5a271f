// Hands a GPU or slice over from one job to the next. Before a job gets it, no other process may
// run there or hold its memory; if another tenant had it, its memory is overwritten
// (gantry-gpu-scrub); and the site's own program may report that the device is broken. The same is
// checked when a job is over, and repeatedly for a device that was found broken, until it works.
//
// It runs on the loop's thread; the driver is called through `look`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/log/log.h"
#include "common/loop/loop.h"
#include "common/resources/gpu.h"
#include "common/result.h"
#include "config/config.h"
#include "noded/gpu/mps.h"
#include "noded/runtime/launch.h"

namespace gantry::node {

// Runs programs for the node daemon without blocking its loop. Each program has a time limit and
// its own process group, which is killed at the limit.
struct CommandEnd {
  ExitStatus status;      // code 127: it could not be started
  bool in_time = true;    // false: it was killed at its time limit
  std::string last_line;  // last line of its output; only the first 64 KiB count
  [[nodiscard]] bool good() const { return in_time && status.code == 0 && status.signal == 0; }
};

class Commands {
 public:
  explicit Commands(loop::Loop& loop);
  ~Commands();  // kills running programs; then no `done` is called any more
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  // argv[0] is a path. The program gets `env` and PATH, and no other variable. `done` is called in
  // a later turn of the loop.
  void run(std::vector<std::string> argv, std::vector<std::string> env, Duration limit,
           std::function<void(const CommandEnd&)> done);

 private:
  struct Running;
  void start(Running& one, std::vector<std::string>& argv, std::vector<std::string>& env);
  void read(std::uint64_t id);
  void ended(std::uint64_t id, ExitStatus status);

  loop::Loop& loop_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Running>> running_;
};

// Faults whose cause has this prefix end only when a handover has succeeded once.
inline constexpr std::string_view kNotIdle = "gpu-not-idle:", kNotScrubbed = "gpu-scrub:",
                                  kProbeFailed = "gpu-probe:";
bool mended_by_handover(const GpuFault& fault);

inline constexpr std::uint32_t kMemorySlices = 16;  // more than any GPU has

struct HandedDevice {
  std::uint32_t gpu = 0;  // GpuDevice::index
  std::string gpu_uuid;
  std::string uuid;                                 // UUID of the slice, or of the GPU
  std::optional<std::uint32_t> gpu_instance;        // number of the GPU instance; set for a slice
  std::uint32_t first = 0, slices = kMemorySlices;  // range of the GPU's memory slices
  bool scrub = false;                               // its memory may hold another tenant's data
};

enum class HandoverWhen : std::uint8_t { before, after, repair };

class GpuHandover {
 public:
  struct Options {
    GpuScrubbing scrubbing = GpuScrubbing::when_possible;
    std::string scrub_program, cuda_library, probe_program;
    Duration patience = seconds(5);  // time that killed processes get to release the device
    Duration pause = milliseconds(200);
    Duration scrub_limit = seconds(15), probe_limit = seconds(15);
  };
  struct Seen {
    std::string left;               // processes that still use the device; "" = none
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
    std::vector<runtime::LaunchGpu> gpus;  // in the order in which the devices were passed
    std::vector<Fault> faults;             // empty: no faults
  };
  // `done` is called in a later turn of the loop. `env` has more variables for the site's program.
  void run(HandoverWhen when, std::vector<HandedDevice> devices, std::vector<std::string> env,
           std::function<void(Outcome&&)> done);
  // Whether a job that will get this GPU must wait. Slices that are being handed over do not delay
  // each other.
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

// The jobs that have each GPU or MIG slice of this node, whole or in part: the node checks the
// controller's orders against this. Either one job has the whole device, or jobs of one tenant have
// parts of it; with MPS these use their tenant's daemon.

using proto::AttemptKey;

class GpuHolders {
 public:
  struct Options {
    GpuSharing sharing = GpuSharing::none;
    std::string mps_control, mps_dir;  // see mps.h
    bool containers = true;            // false: jobs run without containers, so MPS cannot be used
  };
  struct Device {      // a GPU, or a slice
    std::string name;  // "GPU 3", "the slice at 4 of GPU 3"
    std::string uuid;
    ByteCount memory{};
  };
  GpuHolders(const Options& options, const Logger& log);

  // Why parts cannot be used although they are declared, or "".
  [[nodiscard]] const std::string& cannot_share() const { return cannot_share_; }

  // Takes all of a device, or a part. What a part needs besides the device files is added to the
  // request. Error wrong_state: the device has a job that may not share it with this one.
  Result<void> take(const AttemptKey& key, const Device& device, DevicePart part,
                    runtime::LaunchRequest& request);
  // Whether no other job has a part of the device.
  [[nodiscard]] bool alone(const AttemptKey& key, const std::string& uuid) const;
  void recovered(const AttemptKey& key, const std::string& uuid,
                 const runtime::LaunchSharing& sharing);
  // Releases all that the job has. The daemon of a device ends with its last part.
  void released(const AttemptKey& key);
  // Call it when all jobs of earlier daemons are known: it ends MPS daemons that no job needs.
  void settle();

 private:
  struct Holder {
    AttemptKey key;
    std::string uuid, tenant;
    DevicePart part = kWholeDevice;
  };
  const Logger& log_;
  GpuSharing sharing_;
  gpu::Mps mps_;
  std::string cannot_share_;
  std::vector<Holder> holders_;
};

}  // namespace gantry::node
