// How many credentials of one network are refused before no more of it are looked at for a while.
// To look at one takes the loop's time (munge asks its daemon), and strangers may send as many as
// they like: so those who share a network with an attacker have to ask again, and nobody else.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "common/time/time.h"

namespace gantry::rpc {

inline constexpr std::int64_t kRefusalsPerSecond = 20;  // of one network
inline constexpr std::int64_t kRefusalsAtOnce = 200;

class Refusals {
 public:
  [[nodiscard]] bool may_look(const std::string& network, Instant now);
  void refused(const std::string& network, Instant now);

 private:
  struct Bucket {
    std::int64_t left_us = 0;  // each refusal takes a kRefusalsPerSecond-th of a second
    Instant filled{};
  };
  void fill(Bucket& bucket, Instant now) const;
  std::unordered_map<std::string, Bucket> buckets_;  // without an entry: full
};

}  // namespace gantry::rpc
