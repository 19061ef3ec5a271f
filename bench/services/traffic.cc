#include "traffic.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "common/proto/gate.h"

namespace gantry::bench {
namespace {

constexpr double kSpread = 0.3;  // deviation of service times, of their mean
constexpr double kSpike = 10;    // times the calm rate
constexpr std::int64_t kSpikeEvery = 7200, kSpikeLasts = 300;  // seconds

std::size_t bucket_of(double seconds) {
  const auto us = static_cast<std::uint64_t>(seconds * 1e6);
  return static_cast<std::size_t>(
      std::lower_bound(proto::kLatencyBuckets.begin(), proto::kLatencyBuckets.end(), us) -
      proto::kLatencyBuckets.begin());
}

}  // namespace

double Demand::rate_at(std::int64_t second) const {
  switch (shape) {
    case Shape::steady: return rate;
    case Shape::daily: {
      const double angle = 2 * std::numbers::pi * (static_cast<double>(second) / day + phase);
      return rate * (1 + 0.8 * std::sin(angle));
    }
    case Shape::spikes: {
      // There is one spike in each window, at a place that only the seed knows.
      const std::int64_t window = second / kSpikeEvery;
      std::mt19937_64 random(seed * 1'000'003 + static_cast<std::uint64_t>(window));
      const auto begins = static_cast<std::int64_t>(
          random() % static_cast<std::uint64_t>(kSpikeEvery - kSpikeLasts));
      const std::int64_t at = second % kSpikeEvery;
      return at >= begins && at < begins + kSpikeLasts ? rate * kSpike : rate;
    }
  }
  return rate;
}

std::vector<Request> requests_of(const Demand& demand, std::int64_t second) {
  std::mt19937_64 random(demand.seed * 0x9e3779b97f4a7c15ULL +
                         static_cast<std::uint64_t>(second) * 2654435761ULL);
  std::poisson_distribution<int> count(demand.rate_at(second));
  std::uniform_real_distribution<double> when(0, 1);
  // A gamma distribution with the wanted mean and deviation: service times are never negative.
  const double shape = 1 / (kSpread * kSpread);
  std::gamma_distribution<double> needs(shape, demand.service / shape);
  std::vector<Request> out(static_cast<std::size_t>(count(random)));
  for (Request& r : out) {
    r.at = static_cast<double>(second) + when(random);
    r.needs = needs(random);
  }
  std::sort(out.begin(), out.end(), [](const Request& a, const Request& b) { return a.at < b.at; });
  return out;
}

std::vector<Demand> make_demands(std::uint32_t count, std::uint64_t seed, double day) {
  struct Class {
    const char* name;
    double target, service, busy;  // busy: replicas that are busy on average in a calm time
  };
  constexpr Class kClasses[] = {
      {"tight", 0.010, 0.003, 3}, {"usual", 0.100, 0.030, 8}, {"loose", 0.500, 0.150, 8}};
  constexpr Shape kShapes[] = {Shape::steady, Shape::daily, Shape::spikes};
  std::mt19937_64 random(seed);
  std::vector<Demand> out;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Class& c = kClasses[i % 3];
    Demand d;
    d.name = std::string(c.name) + std::to_string(i);
    d.target = c.target;
    d.service = c.service;
    d.shape = kShapes[i / 3 % 3];
    const double size = 0.5 + static_cast<double>(random() % 1000) / 1000;  // 0.5..1.5
    d.rate = c.busy * size / c.service;
    if (d.shape == Shape::spikes) d.rate /= 3;
    d.day = day;
    d.phase = static_cast<double>(random() % 1000) / 1000;
    d.seed = random() % 1'000'000'007;
    out.push_back(std::move(d));
  }
  return out;
}

void Queue::resize(std::size_t replicas, double now) {
  const auto later = std::greater<>();
  while (free_.size() < replicas) {
    free_.push_back(now);
    std::push_heap(free_.begin(), free_.end(), later);
  }
  while (free_.size() > replicas) {
    std::pop_heap(free_.begin(), free_.end(), later);
    free_.pop_back();
  }
}

SecondResult Queue::run(const std::vector<Request>& requests, std::int64_t second, double target) {
  const auto later = std::greater<>();
  SecondResult out;
  out.times.resize(proto::kLatencyBuckets.size() + 1);
  const double end = static_cast<double>(second) + 1;
  std::erase_if(waiting_, [&](double taken) { return taken <= static_cast<double>(second); });
  for (const Request& r : requests) {
    ++out.requests;
    if (free_.empty()) {  // nobody is there to take it: it counts as late
      out.times.back() += 1;
      ++out.waiting;
      continue;
    }
    std::pop_heap(free_.begin(), free_.end(), later);
    const double begins = std::max(free_.back(), r.at);
    free_.back() = begins + r.needs;
    std::push_heap(free_.begin(), free_.end(), later);
    const double response = begins + r.needs - r.at;
    out.response += response;
    out.busy += r.needs;
    out.kept += response <= target ? 1 : 0;
    ++out.times[bucket_of(response)];
    if (begins > end) waiting_.push_back(begins);
  }
  out.waiting += static_cast<std::uint64_t>(
      std::count_if(waiting_.begin(), waiting_.end(), [&](double taken) { return taken > end; }));
  return out;
}

double Queue::backlog(double now) const {
  return free_.empty() ? 0 : std::max(0.0, free_.front() - now);
}

}  // namespace gantry::bench
