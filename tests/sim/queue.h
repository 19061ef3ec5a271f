// The virtual clock and the calls still to come, ordered by time; calls of equal time keep the
// order in which they were scheduled. Nothing else moves the clock.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "common/time/time.h"

namespace gantry::sim {

class Queue {
 public:
  explicit Queue(Instant begin) : now_(begin) {}

  [[nodiscard]] Instant now() const { return now_; }
  void at(Instant when, std::function<void()> call) {
    calls_.emplace(std::pair{when < now_ ? now_ : when, next_++}, std::move(call));
  }
  void after(Duration length, std::function<void()> call) { at(now_ + length, std::move(call)); }

  // Runs calls until `end`, or until stop() was called.
  void run_until(Instant end) {
    stopped_ = false;
    while (!stopped_ && !calls_.empty() && calls_.begin()->first.first <= end) {
      auto first = calls_.extract(calls_.begin());
      now_ = first.key().first;
      first.mapped()();
    }
    if (!stopped_) now_ = end;
  }
  void stop() { stopped_ = true; }

 private:
  Instant now_;
  std::uint64_t next_ = 0;
  bool stopped_ = false;
  std::map<std::pair<Instant, std::uint64_t>, std::function<void()>> calls_;
};

}  // namespace gantry::sim
