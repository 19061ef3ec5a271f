// Limits how many requests one user may send to the controller: connections at a time, and requests
// per second over all of them and from all jobs. So a program that asks in a loop does not keep
// other users waiting.
//
// Requests are counted by a token bucket for each uid, which holds kBurstSeconds' worth of
// requests. A request that takes the controller's loop long costs more than one: in the long run a
// user gets at most 1 / kLoopShare of the loop's time. A refused request (too_many) may be sent
// again later, and the commands do so. The caller passes the time.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::rpc {

inline constexpr std::int64_t kBurstSeconds = 10;
inline constexpr std::int64_t kLoopShare = 4;
inline constexpr std::uint32_t kFairConnections = 16;

struct UserLimitOptions {
  std::uint32_t connections = 0;          // at a time; 0 = no limit
  std::uint32_t requests_per_second = 0;  // 0 = no limit
};

class UserLimits {
 public:
  explicit UserLimits(UserLimitOptions options) : options_(options) {}

  // Counts one more connection of this user. The error too_many means that it is not counted.
  // `crowded` means that all users together have so many connections that each gets only
  // kFairConnections.
  Result<void> connected(Uid uid, const std::string& user, bool crowded = false);
  void disconnected(Uid uid);  // for a connection that connected() counted
  // Counts one more request. The error too_many means that it is not counted.
  Result<void> requested(Uid uid, const std::string& user, Instant now);
  // Charges a counted request with the time that it took the loop. However long that was, the user
  // may ask again after kBurstSeconds.
  void took(Uid uid, Duration loop_time);
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

 private:
  struct Bucket {
    // The time left for requests. Each costs period_us(), or kLoopShare times the loop time that it
    // took if that is more. Below 0: requests took more than was left.
    std::int64_t left_us = 0;
    Instant filled{};
    // What requests cost beyond one period each, since the bucket was last full.
    std::int64_t costly_us = 0;
  };
  [[nodiscard]] std::int64_t period_us() const;
  void forget_full(Instant now);

  UserLimitOptions options_;
  std::unordered_map<Uid, std::uint32_t> connections_;
  std::unordered_map<Uid, Bucket> buckets_;
  std::uint64_t refused_ = 0;
};

// Limits how many queries of one user other threads have at a time, so that one user takes only a
// few places in shared queues.
class UserQuestions {
 public:
  explicit UserQuestions(std::size_t most) : most_(most) {}

  // Counts one more query. The error too_many means that it is not counted.
  Result<void> asked(Uid uid, const std::string& user);
  void answered(Uid uid);  // for a query that was counted

 private:
  std::size_t most_;
  std::unordered_map<Uid, std::size_t> open_;
};

}  // namespace gantry::rpc
