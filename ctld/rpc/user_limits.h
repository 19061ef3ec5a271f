// How much one user may ask of the controller: connections at a time, and requests per second over
// all of them and out of all jobs. So one user's loop does not keep the others waiting.
//
// Requests are counted by a token bucket for each uid, which holds kBurstSeconds' worth. A request
// that takes the controller's loop long costs more than one: in the long run a user has one part in
// kLoopShare of the loop's time. What is refused may be asked again later (too_many), and the
// commands do. Time comes from the caller.
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

  // One more connection of this user; too_many, and not counted. `crowded`: all users together have
  // so many that each gets kFairConnections only.
  Result<void> connected(Uid uid, const std::string& user, bool crowded = false);
  void disconnected(Uid uid);  // of one that was counted
  // One more request; too_many, and not counted.
  Result<void> requested(Uid uid, const std::string& user, Instant now);
  // What a request that was counted has cost the loop. However long that was, the user may ask
  // again after kBurstSeconds.
  void took(Uid uid, Duration loop_time);
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

 private:
  struct Bucket {
    // Of requests, each of which costs period_us(), or kLoopShare times what it took if that is
    // more. Below 0: it took more than was left.
    std::int64_t left_us = 0;
    Instant filled{};
    std::int64_t costly_us = 0;  // of what is gone since it was full: beyond a period a request
  };
  [[nodiscard]] std::int64_t period_us() const;
  void forget_full(Instant now);

  UserLimitOptions options_;
  std::unordered_map<Uid, std::uint32_t> connections_;
  std::unordered_map<Uid, Bucket> buckets_;
  std::uint64_t refused_ = 0;
};

// How many questions of one user other threads have at a time: of a queue that all share, one user
// holds a few places.
class UserQuestions {
 public:
  explicit UserQuestions(std::size_t most) : most_(most) {}

  // One more; too_many, and not counted.
  Result<void> asked(Uid uid, const std::string& user);
  void answered(Uid uid);  // one that was counted

 private:
  std::size_t most_;
  std::unordered_map<Uid, std::size_t> open_;
};

}  // namespace gantry::rpc
