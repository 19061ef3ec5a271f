// Counts the requests through the gate, from HAProxy's log lines; pure. The response time is from
// the end of the request's head until the first octet of the answer, with all waiting in the gate.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/proto/gate.h"
#include "gate/plan/layout.h"

namespace gantry::gate {

// A request, as config_text.cc has it written.
struct RequestLine {
  std::string backend, server;  // server "" = none
  std::string service;          // "" = none was found
  int status = 0;
  std::int64_t queued_ms = -1, connect_ms = -1, answer_ms = -1, whole_ms = 0;
  std::string end;  // how it ended: the first two letters of HAProxy's termination state
  std::uint64_t bytes_in = 0, bytes_out = 0;
};
std::optional<RequestLine> read_request(std::string_view line);

// The place in a sample's `times`, from 0 to kLatencyBuckets.size().
std::size_t bucket_of(Duration time);

// The response times of one replica, in the last seconds.
struct ReplicaTimes {
  double mean_us = 0;       // 0 = none yet
  std::uint64_t count = 0;  // since the last look
  Instant last{};
};

class Samples {
 public:
  void add(const RequestLine& request, Instant now);

  // Takes what was counted since the call before. `seen` are all processes, one after the other;
  // `held` are the requests that wait for a first replica, by service.
  std::vector<proto::GateSample> take(Instant now, const std::vector<Seen>& seen,
                                      const std::map<std::string, std::uint32_t>& held);
  // Puts back what could not be sent.
  void put_back(std::vector<proto::GateSample>&& samples);

  [[nodiscard]] const std::map<std::string, ReplicaTimes>& replicas() const { return replicas_; }
  void forget_replica(const std::string& server) { replicas_.erase(server); }

 private:
  struct Counted {
    proto::GateSample sample;
    std::int64_t whole_us = 0;  // of ended requests: their time within the span
    std::uint64_t ended = 0, began_before = 0;
    std::uint32_t last_running = 0;  // at the start of the span, including waiting ones
  };
  Counted& of(const std::string& service, const std::string& version);

  Instant since_{};
  std::map<std::string, Counted> counted_;  // by TENANT:NAME:VERSION
  std::map<std::string, ReplicaTimes> replicas_;
};

inline constexpr std::uint32_t kLeastWeight = 8;  // a slow replica is still tried now and then

// The weights of the replicas of one version: the fastest has kFullWeight, one that takes twice the
// time half of it. In each step a weight changes at most by a factor of two, and not at all for
// less than a tenth. The weight of a replica without an answer in the last seconds moves towards
// the full weight, because its speed is not known any more.
std::map<std::string, std::uint32_t> weights_of(
    const std::map<std::string, std::uint32_t>& now_have,
    const std::map<std::string, ReplicaTimes>& times, Instant now);

}  // namespace gantry::gate
