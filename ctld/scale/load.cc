#include "ctld/scale/load.h"

#include <algorithm>

namespace gantry::scale {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kMinutesOfDay = 24 * 60;
constexpr std::int64_t kMinutesOfSpan = kHistorySpan.us / (60 * kSecond);
static_assert(ServiceLoad::kMinutes == kMinutesOfSpan * std::int64_t{kHistory});

std::int64_t second_of(Instant t) {
  return t.us / kSecond;
}

}  // namespace

void TimeCounts::add(const std::vector<std::uint64_t>& times) {
  for (std::size_t i = 0; i < std::min(times.size(), kTimeBuckets); ++i) of[i] += times[i];
}

void TimeCounts::add(const TimeCounts& other) {
  for (std::size_t i = 0; i < kTimeBuckets; ++i) of[i] += other.of[i];
}

std::uint64_t TimeCounts::sum() const {
  std::uint64_t all = 0;
  for (const std::uint64_t n : of) all += n;
  return all;
}

std::optional<Duration> TimeCounts::percentile(std::uint32_t percent) const {
  const std::uint64_t all = sum();
  if (all == 0) return std::nullopt;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < kTimeBuckets; ++i) {
    below += of[i];
    if (below * 100 >= all * percent)
      return microseconds(static_cast<std::int64_t>(
          proto::kLatencyBuckets[std::min(i, proto::kLatencyBuckets.size() - 1)]));
  }
  return std::nullopt;
}

double TimeCounts::within(Duration target) const {
  double count = 0;
  double from = 0;
  const auto end = static_cast<double>(target.us);
  for (std::size_t i = 0; i < proto::kLatencyBuckets.size(); ++i) {
    const auto until = static_cast<double>(proto::kLatencyBuckets[i]);
    if (until <= end)
      count += static_cast<double>(of[i]);
    else if (from < end)
      count += static_cast<double>(of[i]) * (end - from) / (until - from);
    from = until;
  }
  return count;
}

ServiceLoad::Second& ServiceLoad::second(std::int64_t at) {
  Second& one = seconds_[static_cast<std::size_t>(at % kSeconds)];
  if (one.at != at) {
    one = Second{};
    one.at = at;
  }
  return one;
}

void ServiceLoad::note_minute(std::int64_t at, std::uint64_t requests) {
  if (rates_.empty()) rates_.resize(kMinutes);
  if (first_minute_ < 0) first_minute_ = newest_minute_ = at;
  for (; newest_minute_ < at; ++newest_minute_)
    rates_[static_cast<std::size_t>((newest_minute_ + 1) % kMinutes)] = 0;
  auto& rate = rates_[static_cast<std::size_t>(at % kMinutes)];
  rate = static_cast<std::uint32_t>(std::min<std::uint64_t>(rate + requests, UINT32_MAX));
}

void ServiceLoad::add_to_totals(const proto::GateSample& sample) {
  totals_.requests += sample.requests;
  totals_.errors += sample.errors;
  totals_.refused += sample.refused;
  totals_.bytes_in += sample.bytes_in;
  totals_.bytes_out += sample.bytes_out;
  totals_.times.add(sample.times);
  for (std::size_t i = 0; i < std::min(sample.times.size(), kTimeBuckets); ++i)
    totals_.microseconds +=
        sample.times[i] * proto::kLatencyBuckets[std::min(i, proto::kLatencyBuckets.size() - 1)];
}

void ServiceLoad::add(const proto::GateSample& sample, Instant now) {
  add_to_totals(sample);
  const std::int64_t at = second_of(now);
  if (first_second_ < 0) first_second_ = at;
  Second& one = second(at);
  const std::uint64_t came = sample.requests + sample.refused;
  one.requests += came;
  one.errors += sample.errors;
  one.refused += sample.refused;
  one.concurrency += static_cast<double>(sample.concurrency) / 1000 *
                     static_cast<double>(sample.span.us) / kSecond;
  if (!sample.times.empty()) {
    one.times.resize(kTimeBuckets);
    for (std::size_t i = 0; i < std::min(sample.times.size(), kTimeBuckets); ++i)
      one.times[i] += sample.times[i];
    minute_times_.add(sample.times);
  }
  minute_refused_ += sample.refused;
  note_minute(at / 60, came);
  if (came > 0 || sample.waiting > 0 || sample.running > 0) last_request_ = now;
}

LoadSum ServiceLoad::last(std::int64_t seconds, Instant now) const {
  LoadSum out;
  if (first_second_ < 0) return out;
  const std::int64_t end = second_of(now);
  std::int64_t begin = std::max(end - std::min(seconds, kSeconds - 1), first_second_);
  if (begin == end) begin = end - 1;  // the very first second counts although it has not ended
  for (std::int64_t at = begin; at < end; ++at) {
    const Second& one = seconds_[static_cast<std::size_t>(at % kSeconds)];
    if (one.at != at) continue;
    out.requests += one.requests;
    out.errors += one.errors;
    out.refused += one.refused;
    out.concurrency += one.concurrency;
  }
  out.seconds = static_cast<double>(end - begin);
  out.concurrency /= out.seconds;
  return out;
}

TimeCounts ServiceLoad::times(std::int64_t seconds, Instant now) const {
  TimeCounts out;
  const std::int64_t end = second_of(now);
  for (const Second& one : seconds_)
    if (one.at >= end - seconds && one.at < end) out.add(one.times);
  return out;
}

std::optional<double> ServiceLoad::same_minutes(std::int64_t from, std::int64_t until,
                                                Instant now) const {
  if (first_minute_ < 0) return std::nullopt;
  std::optional<double> most;
  const std::int64_t minute = second_of(now) / 60;
  const std::int64_t oldest = std::max(first_minute_ + 1, newest_minute_ - kMinutes + 1);
  for (std::int64_t day = 1; day <= kMinutes / kMinutesOfDay; ++day)
    for (std::int64_t m = from; m <= until; ++m) {
      const std::int64_t then = minute + m - day * kMinutesOfDay;
      if (then < oldest || then > newest_minute_) continue;
      const double rate = rates_[static_cast<std::size_t>(then % kMinutes)] / 60.0;
      most = std::max(most.value_or(0), rate);
    }
  return most;
}

std::optional<std::uint32_t> ServiceLoad::most_of_span(std::uint64_t span) const {
  const std::int64_t begin = static_cast<std::int64_t>(span) * kMinutesOfSpan;
  if (first_minute_ < 0 || begin + kMinutesOfSpan <= first_minute_ || begin > newest_minute_)
    return std::nullopt;
  std::uint32_t most = 0;
  for (std::int64_t m = std::max(begin, newest_minute_ - kMinutes + 1);
       m < begin + kMinutesOfSpan && m <= newest_minute_; ++m)
    most = std::max(most, rates_[static_cast<std::size_t>(m % kMinutes)]);
  return most;
}

void ServiceLoad::remember(const std::vector<std::uint32_t>& history, std::uint64_t newest) {
  if (history.size() != kHistory || newest + 1 < kHistory) return;
  if (rates_.empty()) rates_.resize(kMinutes);
  const std::int64_t begin = static_cast<std::int64_t>(newest + 1 - kHistory) * kMinutesOfSpan;
  const std::int64_t end = begin + kMinutes;
  const std::int64_t oldest = newest_minute_ - kMinutes + 1;
  for (std::int64_t m = std::max(begin, oldest); m < end; ++m) {
    if (first_minute_ >= 0 && m >= first_minute_)
      break;  // from here on its own counts are newer than the history
    rates_[static_cast<std::size_t>(m % kMinutes)] =
        history[static_cast<std::size_t>(m / kMinutesOfSpan) % kHistory];
  }
  if (first_minute_ < 0) newest_minute_ = end - 1;
  first_minute_ = first_minute_ < 0 ? begin : std::min(first_minute_, begin);
}

void ServiceLoad::judge(Duration target, std::uint32_t percentile, Instant now) {
  const std::int64_t minute = second_of(now) / 60;
  if (judged_ == minute) return;
  const std::uint64_t all = minute_times_.sum() + minute_refused_;
  if (judged_ >= 0 && all > 0) {
    ++minutes_;
    if (minute_times_.within(target) * 100 >= static_cast<double>(all) * percentile) ++kept_;
  }
  judged_ = minute;
  minute_times_ = {};
  minute_refused_ = 0;
}

}  // namespace gantry::scale
