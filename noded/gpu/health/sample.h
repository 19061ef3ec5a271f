// Samples the GPUs and slices that jobs have every few seconds, and keeps a series for each. One
// step reads the power of a GPU once, and utilisation and memory of each GPU or slice once, however
// many jobs share it.
//
// Utilisation of a slice comes from GPM, which Hopper and later GPUs have; on older ones it stays
// unknown. No driver reports the power of a slice: it is computed as the GPU's, divided by compute
// slices.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/resources/gpu_usage.h"
#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"
#include "noded/gpu/nvml/discover.h"

namespace gantry::gpu {

// The activity of one GPU or slice during a job: a series of fixed length, however long the job
// runs. When it is full, each pair of neighbours becomes one point and the interval doubles: a job
// of 20 minutes has a point every 5 s, one of a day every 11 minutes. The job's record keeps it in
// about a kilobyte.

inline constexpr std::size_t kSeriesPoints = 256;

struct Reading {                      // one sample of a GPU or slice
  std::optional<std::uint32_t> busy;  // percent; unset: the driver does not report it
  std::uint64_t memory = 0;           // bytes in use
  // Milliwatts; for a slice, the GPU's power times the slice's part of the compute slices.
  std::optional<std::uint32_t> power_mw;
};

struct SeriesPoint {                     // over one interval
  std::optional<std::uint32_t> busy;     // percent, mean over the interval
  std::uint32_t memory_mib = 0;          // the most in the interval
  std::optional<std::uint32_t> power_w;  // mean over the interval
  friend bool operator==(const SeriesPoint&, const SeriesPoint&) = default;
};

class UsageSeries {
 public:
  UsageSeries(Instant start, Duration interval) : start_(start), interval_(interval) {}

  // `now` never goes back; a time before `start` counts as the start.
  void add(Instant now, const Reading& reading);
  void saw_process(Instant now) { last_process_ = now; }

  [[nodiscard]] Duration interval() const { return interval_; }
  [[nodiscard]] std::optional<Instant> last_busy() const { return last_busy_; }
  [[nodiscard]] std::optional<Instant> last_process() const { return last_process_; }
  // A point without samples (because the GPU did not answer) is unset.
  [[nodiscard]] std::vector<std::optional<SeriesPoint>> points() const;
  [[nodiscard]] GpuUsage stored(std::string uuid, std::string name) const;

 private:
  struct Sums {
    std::uint32_t samples = 0, busy_samples = 0, power_samples = 0;
    std::uint32_t memory_mib = 0;
    std::uint64_t busy = 0, power_mw = 0;
    void merge(const Sums& other);
    [[nodiscard]] std::optional<SeriesPoint> point() const;
  };
  void halve();

  Instant start_;
  Duration interval_;
  std::vector<Sums> ring_;
  Sums total_;
  std::uint64_t energy_mj_ = 0;
  std::optional<Instant> last_sample_, last_busy_, last_process_;
};

// Stores differences as variable-length integers: a point of an idle GPU takes 3 bytes.
Bytes encode_points(const std::vector<std::optional<SeriesPoint>>& points);
Result<std::vector<std::optional<SeriesPoint>>> decode_points(std::string_view data,
                                                              std::uint32_t points);

class GpuSampler {
 public:
  // `found` must outlive this object. `interval` is roughly the time between steps.
  GpuSampler(const Nvml& nvml, const Discovery& found, Duration interval);
  ~GpuSampler() {
    for (auto& [uuid, source] : sources_) drop(source);
  }
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

  using Track = std::uint64_t;  // one job's use of one GPU or slice

  // `gpu` is GpuDevice::index. Error not_found: there is no such GPU, or its slice is gone.
  Result<Track> begin(std::uint32_t gpu, const MigSlice* slice, Instant now);
  std::optional<GpuUsage> end(Track track);

  void step(Instant now);

  // The result of the last step: for `gctl top`, and for finding devices that are allocated and
  // idle.
  struct Activity {
    Track track = 0;
    Instant since{};                      // when the track began
    std::optional<Reading> reading;       // unset: the device did not answer
    std::optional<Instant> last_busy;     // unset: it was never busy
    std::optional<Instant> last_process;  // unset: it never had a process
    std::string name;                     // as in GpuUsage::name
    bool has_process = false;             // it had a process when processes were last listed
  };
  [[nodiscard]] std::vector<Activity> activity() const;
  [[nodiscard]] std::optional<GpuUsage> so_far(Track track) const;

 private:
  struct Source {  // a GPU or slice that is sampled
    std::uint32_t gpu = 0;
    nvml::Device device = nullptr;  // handle of the slice, or of the GPU
    std::optional<std::uint32_t> gpu_instance;
    std::uint32_t compute_slices = 0, of_slices = 1;
    std::string uuid, name;
    nvml::GpmSample before = nullptr, after = nullptr;
    bool has_before = false;
    std::uint32_t users = 0;
    std::optional<Reading> reading;
    bool has_process = false;
  };
  struct Tracked {
    std::string source;  // uuid
    Instant since;
    UsageSeries series;
  };
  Result<Source> find(std::uint32_t gpu, const MigSlice* slice) const;
  void look(Source& source, std::optional<std::uint32_t> gpu_power, bool at_processes);
  std::optional<std::uint32_t> busy_of(Source& source);
  void drop(Source& source);

  const Nvml& nvml_;
  const Discovery& found_;
  Duration interval_;
  std::map<std::string, Source> sources_;  // by uuid
  std::map<Track, Tracked> tracks_;
  Track last_track_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace gantry::gpu
