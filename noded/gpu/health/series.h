// The activity of one GPU or slice during a job: a series of fixed length, however long the job
// runs. When it is full, each two neighbours become one point and the interval doubles: a job of 20
// minutes has a point every 5 s, one of a day every 11 minutes. The job's record keeps it in about
// a kilobyte.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/resources/gpu_usage.h"
#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::gpu {

inline constexpr std::size_t kSeriesPoints = 256;

struct Reading {                      // one look at a GPU or slice
  std::optional<std::uint32_t> busy;  // percent; unset: the driver does not tell
  std::uint64_t memory = 0;           // bytes in use
  // Milliwatts; a slice has its part of the GPU's power by compute slices.
  std::optional<std::uint32_t> power_mw;
};

struct SeriesPoint {                     // over one interval
  std::optional<std::uint32_t> busy;     // percent, mean
  std::uint32_t memory_mib = 0;          // most
  std::optional<std::uint32_t> power_w;  // mean
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

}  // namespace gantry::gpu
