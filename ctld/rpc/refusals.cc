#include "ctld/rpc/refusals.h"

#include <algorithm>

namespace gantry::rpc {
namespace {

constexpr std::int64_t kRefusalTime = 1'000'000 / kRefusalsPerSecond;
constexpr std::int64_t kFullBucket = kRefusalsAtOnce * kRefusalTime;
constexpr std::size_t kMostNetworks = 4'096;  // with more entries than this, full ones are removed

}  // namespace

void Refusals::fill(Bucket& bucket, Instant now) const {
  bucket.left_us =
      std::min(kFullBucket, bucket.left_us + std::max<std::int64_t>(0, (now - bucket.filled).us));
  bucket.filled = now;
}

bool Refusals::may_look(const std::string& network, Instant now) {
  const auto it = buckets_.find(network);
  if (it == buckets_.end()) return true;
  fill(it->second, now);
  return it->second.left_us >= kRefusalTime;
}

void Refusals::refused(const std::string& network, Instant now) {
  if (buckets_.size() >= kMostNetworks)
    std::erase_if(buckets_, [&](const auto& entry) {
      return entry.second.left_us + (now - entry.second.filled).us >= kFullBucket;
    });
  // With this many attackers, counting them is useless.
  if (buckets_.size() >= kMostNetworks) buckets_.clear();
  Bucket& bucket = buckets_.try_emplace(network, Bucket{kFullBucket, now}).first->second;
  fill(bucket, now);
  bucket.left_us = std::max<std::int64_t>(0, bucket.left_us - kRefusalTime);
}

}  // namespace gantry::rpc
