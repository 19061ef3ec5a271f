// Limits how many credentials of one network are refused before credentials of that network are not
// checked any more for a while. Checking one takes time of the loop (munge asks its daemon), and
// strangers may send any number of them. Users in the same network as an attacker may have to ask
// again; nobody else is affected.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "common/time/time.h"

namespace gantry::rpc {

inline constexpr std::int64_t kRefusalsPerSecond = 20;  // refusals of one network
inline constexpr std::int64_t kRefusalsAtOnce = 200;

class Refusals {
 public:
  [[nodiscard]] bool may_look(const std::string& network, Instant now);
  void refused(const std::string& network, Instant now);

 private:
  struct Bucket {
    std::int64_t left_us = 0;  // each refusal takes one second / kRefusalsPerSecond
    Instant filled{};
  };
  void fill(Bucket& bucket, Instant now) const;
  std::unordered_map<std::string, Bucket> buckets_;  // a network without an entry has a full bucket
};

}  // namespace gantry::rpc
