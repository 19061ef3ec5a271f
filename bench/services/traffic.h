// Requests of many services, made from a seed, and the queue of one service: arrivals wait for the
// first replica that is free.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace gantry::bench {

enum class Shape : std::uint8_t { steady, daily, spikes };

struct Demand {
  std::string name;
  double target = 0;   // seconds
  double service = 0;  // mean seconds of one request in a replica
  double rate = 0;     // requests a second, on average of a calm time
  Shape shape = Shape::steady;
  double day = 86'400;  // seconds
  double phase = 0;     // of the day, 0..1
  std::uint64_t seed = 0;
  [[nodiscard]] double rate_at(std::int64_t second) const;
};

struct Request {
  double at = 0;     // seconds
  double needs = 0;  // seconds in a replica
};

// The requests of one second, always the same for the same service and second.
std::vector<Request> requests_of(const Demand& demand, std::int64_t second);

// 100 services of three classes (10, 100 and 500 ms) and three shapes of traffic.
std::vector<Demand> make_demands(std::uint32_t count, std::uint64_t seed, double day);

struct SecondResult {
  std::uint64_t requests = 0, kept = 0;
  double response = 0;               // the sum of response times, seconds
  double busy = 0;                   // seconds that replicas worked on these requests
  std::vector<std::uint64_t> times;  // by proto::kLatencyBuckets
  std::uint64_t waiting = 0;         // at its end no replica had taken them
};

// A queue in front of replicas that take one request each.
class Queue {
 public:
  // From now on there are so many replicas. Those that leave finish what they have.
  void resize(std::size_t replicas, double now);
  [[nodiscard]] std::size_t size() const { return free_.size() + blocked_; }
  SecondResult run(const std::vector<Request>& requests, std::int64_t second, double target);
  [[nodiscard]] double backlog(double now) const;  // seconds until the first replica is free

 private:
  std::vector<double> free_;  // a heap: when each replica is free again
  std::size_t blocked_ = 0;
  std::vector<double> waiting_;  // when each waiting request will be taken
};

// Response times within the target, of 100, that make a minute a good one.
inline constexpr double kPercentile = 0.95;

}  // namespace gantry::bench
