// Requests of one service as gates report them, counted per second. It is not durable: after a
// restart the gates continue to report. For services with a forecast, the controller stores the
// rates of earlier days, and restores them here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/proto/gate.h"
#include "common/time/time.h"

namespace gantry::scale {

inline constexpr std::size_t kTimeBuckets = proto::kLatencyBuckets.size() + 1;

// The durable history has the greatest rate of each span of this length, for this many spans.
inline constexpr Duration kHistorySpan = minutes(10);
inline constexpr std::size_t kHistory = 8 * 24 * 6;

// Response times, counted by proto::kLatencyBuckets.
struct TimeCounts {
  std::array<std::uint64_t, kTimeBuckets> of{};
  void add(const std::vector<std::uint64_t>& times);
  void add(const TimeCounts& other);
  [[nodiscard]] std::uint64_t sum() const;
  // The upper end of the bucket that contains this percentile; unset without requests.
  [[nodiscard]] std::optional<Duration> percentile(std::uint32_t percent) const;
  // How many were answered within the target; those in the target's own bucket count in proportion.
  [[nodiscard]] double within(Duration target) const;
};

struct LoadSum {
  std::uint64_t requests = 0;  // received requests, including refused ones
  std::uint64_t errors = 0;
  std::uint64_t refused = 0;
  double seconds = 0;      // length of the sample
  double concurrency = 0;  // requests in progress at one time, on average
  [[nodiscard]] double rate() const { return seconds > 0 ? double(requests) / seconds : 0; }
};

class ServiceLoad {
 public:
  static constexpr std::int64_t kSeconds = 120;          // seconds that are kept
  static constexpr std::int64_t kMinutes = 8 * 24 * 60;  // minutes of rates that are kept

  // Adds a sample that came now. Samples of several gates and versions are summed up.
  void add(const proto::GateSample& sample, Instant now);
  // The sum over the last complete seconds before now, at most kSeconds of them.
  [[nodiscard]] LoadSum last(std::int64_t seconds, Instant now) const;
  [[nodiscard]] TimeCounts times(std::int64_t seconds, Instant now) const;
  // The greatest rate on earlier days at the same time of day, from `from` to `until` minutes from
  // now; unset if no earlier day is known.
  [[nodiscard]] std::optional<double> same_minutes(std::int64_t from, std::int64_t until,
                                                   Instant now) const;
  [[nodiscard]] std::optional<Instant> last_request() const { return last_request_; }

  // The most requests of one minute in this span of kHistorySpan, counted from 1970; unset if
  // unknown.
  [[nodiscard]] std::optional<std::uint32_t> most_of_span(std::uint64_t span) const;
  // Takes rates of earlier days from a history: a ring of kHistory spans, the newest of which is
  // given.
  void remember(const std::vector<std::uint32_t>& history, std::uint64_t newest);

  // Totals since the controller started.
  struct Totals {
    std::uint64_t requests = 0, errors = 0, refused = 0, bytes_in = 0, bytes_out = 0;
    std::uint64_t microseconds = 0;  // sum of the response times, estimated from their buckets
    TimeCounts times;
  };
  [[nodiscard]] const Totals& totals() const { return totals_; }

  // Minutes with requests, and those of them in which the objective was met: the promised
  // percentage was answered within the target, where a refused request counts as too late.
  void judge(Duration target, std::uint32_t percentile, Instant now);
  [[nodiscard]] std::uint64_t minutes() const { return minutes_; }
  [[nodiscard]] std::uint64_t minutes_kept() const { return kept_; }

 private:
  struct Second {
    std::int64_t at = -1;
    std::uint64_t requests = 0, errors = 0, refused = 0;
    double concurrency = 0;  // requests in progress, times seconds
    std::vector<std::uint64_t> times;
  };
  Second& second(std::int64_t at);
  void note_minute(std::int64_t at, std::uint64_t requests);
  void add_to_totals(const proto::GateSample& sample);

  std::array<Second, kSeconds> seconds_;
  std::vector<std::uint32_t> rates_;  // requests of each minute, a ring buffer
  std::int64_t first_minute_ = -1, newest_minute_ = -1;
  std::int64_t first_second_ = -1;
  std::optional<Instant> last_request_;
  std::int64_t judged_ = -1;  // the minute that is being counted
  TimeCounts minute_times_;
  std::uint64_t minute_refused_ = 0, minutes_ = 0, kept_ = 0;
  Totals totals_;
};

}  // namespace gantry::scale
