#include "ctld/scale/erlang.h"

#include <algorithm>
#include <cmath>

namespace gantry::scale {
namespace {

// Erlang B by its recursion, adding one server at each step.
class Blocking {
 public:
  explicit Blocking(double load) : load_(load) {}
  void add_server() {
    ++servers_;
    blocked_ = load_ * blocked_ / (servers_ + load_ * blocked_);
  }
  [[nodiscard]] double waiting() const {  // probability of waiting: Erlang C
    if (load_ <= 0) return 0;
    if (servers_ <= load_) return 1;
    return blocked_ / (1 - load_ / servers_ * (1 - blocked_));
  }
  [[nodiscard]] double servers() const { return servers_; }

 private:
  double load_, servers_ = 0, blocked_ = 1;
};

}  // namespace

double erlang_c(std::uint32_t servers, double load) {
  Blocking queue(load);
  for (std::uint32_t i = 0; i < servers; ++i) queue.add_server();
  return queue.waiting();
}

std::uint32_t fewest_groups(const WaitPromise& promise, std::uint32_t group, std::uint32_t most) {
  if (promise.rate <= 0) return 0;
  const double load = promise.rate * promise.service;
  Blocking queue(load);
  for (std::uint32_t n = 1; n < most; ++n) {
    for (std::uint32_t i = 0; i < group; ++i) queue.add_server();
    if (queue.servers() <= load) continue;
    const double free = queue.servers() - load;  // servers that are idle on average
    const double late = queue.waiting() * std::exp(-free * promise.budget / promise.service);
    if (late <= 1 - promise.share) return n;
  }
  return most;
}

}  // namespace gantry::scale
