// A bucket counts time. It holds up to kBurstSeconds and fills as time passes. A request takes one
// period out of it, or a multiple of the loop time that it needed.
#include "ctld/rpc/user_limits.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/assert.h"

namespace gantry::rpc {
namespace {

constexpr std::int64_t kFull = kBurstSeconds * 1'000'000;
constexpr std::size_t kBuckets = 4096;  // with more entries than this, full ones are removed

}  // namespace

std::int64_t UserLimits::period_us() const {
  return std::max<std::int64_t>(1, 1'000'000 / std::int64_t{options_.requests_per_second});
}

Result<void> UserLimits::connected(Uid uid, const std::string& user, bool crowded) {
  const auto it = connections_.find(uid);
  if (crowded && it != connections_.end() && it->second >= kFairConnections) {
    ++refused_;
    return fail(ErrorCode::too_many,
                fmt::format("the controller has too many connections, of which {} has {}: try "
                            "again later",
                            user, it->second));
  }
  if (options_.connections > 0) {
    if (it != connections_.end() && it->second >= options_.connections) {
      ++refused_;
      return fail(ErrorCode::too_many,
                  fmt::format("{} has {} connections to the controller, as many as one user may "
                              "have (controller.max_user_connections): try again later",
                              user, it->second));
    }
  }
  ++connections_[uid];
  return {};
}

void UserLimits::disconnected(Uid uid) {
  const auto it = connections_.find(uid);
  GANTRY_ASSERT(it != connections_.end(), "a connection that was not counted");
  if (--it->second == 0) connections_.erase(it);
}

void UserLimits::forget_full(Instant now) {
  std::erase_if(buckets_, [now](const auto& entry) {
    const Bucket& bucket = entry.second;
    return bucket.left_us + (now - bucket.filled).us >= kFull;
  });
}

Result<void> UserLimits::requested(Uid uid, const std::string& user, Instant now) {
  if (options_.requests_per_second == 0) return {};
  if (buckets_.size() > kBuckets) forget_full(now);
  const auto [it, fresh] = buckets_.try_emplace(uid, Bucket{kFull, now});
  Bucket& bucket = it->second;
  bucket.left_us =
      std::min(kFull, bucket.left_us + std::max<std::int64_t>(0, (now - bucket.filled).us));
  bucket.filled = now;
  if (bucket.left_us == kFull) bucket.costly_us = 0;
  if (bucket.left_us < period_us()) {
    ++refused_;
    if (bucket.costly_us > kFull / 2)
      return fail(ErrorCode::too_many,
                  fmt::format("the requests of {} take more than one part in {} of the "
                              "controller's time (controller.max_user_requests): try again later",
                              user, kLoopShare));
    return fail(ErrorCode::too_many,
                fmt::format("{} asks the controller more than {} times a second "
                            "(controller.max_user_requests): try again later",
                            user, options_.requests_per_second));
  }
  bucket.left_us -= period_us();
  return {};
}

void UserLimits::took(Uid uid, Duration loop_time) {
  const auto it = buckets_.find(uid);
  if (options_.requests_per_second == 0 || it == buckets_.end()) return;
  // The most that is charged, so that left_us >= -kFull.
  const std::int64_t most = 2 * kFull / kLoopShare;
  const std::int64_t extra =
      std::clamp<std::int64_t>(loop_time.us, 0, most) * kLoopShare - period_us();
  if (extra <= 0) return;
  it->second.costly_us += extra;
  it->second.left_us = std::max(-kFull, it->second.left_us - extra);
}

Result<void> UserQuestions::asked(Uid uid, const std::string& user) {
  std::size_t& open = open_[uid];
  if (open >= most_)
    return fail(ErrorCode::too_many,
                fmt::format("{} questions of {} wait for an answer, as many as one user may have: "
                            "try again later",
                            open, user));
  ++open;
  return {};
}

void UserQuestions::answered(Uid uid) {
  const auto it = open_.find(uid);
  GANTRY_ASSERT(it != open_.end(), "a question that was not counted");
  if (--it->second == 0) open_.erase(it);
}

}  // namespace gantry::rpc
