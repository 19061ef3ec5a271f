// When an attempt began and ended, in cluster time. A report may be minutes old when it arrives,
// because the controller was stopped, the node slept or the link was down. So the node's own
// measurement counts, within what the controller knows: an attempt did not begin before it was
// placed, and did not end after the report of its end arrived.
//
// - The node says how long the attempt ran (proto::ExitReport::ran). It measures this with a clock
//   that nobody sets and that stands still while the machine sleeps.
// - The start of the attempt says where that length lies in cluster time. NodeClock translates
//   times of the node's clock. If start plus length is in the future, the start was reported too
//   late, and it is moved back.
#pragma once

#include <algorithm>
#include <optional>

#include "common/time/time.h"

namespace gantry::core {

// How far the node's clock is behind ours. The smallest difference seen lately counts: a message
// that was long on its way makes the difference look larger, and nothing makes it look smaller.
class NodeClock {
 public:
  void heard(Instant sent, Instant now) {
    if (!sane(sent)) return;  // an older daemon does not send the time
    const Duration behind = now - sent;
    if (!last_ || now - since_ > kWindow) {
      before_ = last_;
      last_ = behind;
      since_ = now;
    } else {
      last_ = std::min(*last_, behind);
    }
  }
  // Translates to our clock. Nothing if `theirs` was not given, or if the node's clock is not known
  // yet.
  [[nodiscard]] std::optional<Instant> ours(Instant theirs) const {
    if (!last_ || !sane(theirs)) return std::nullopt;
    return theirs + std::min(*last_, before_.value_or(*last_));
  }

 private:
  static constexpr Duration kWindow = minutes(5);
  static constexpr Instant kMost{std::int64_t{1} << 60};
  static bool sane(Instant t) { return t > Instant{} && t < kMost; }
  std::optional<Duration> last_,
      before_;  // smallest difference in this window, and in the window before
  Instant since_{};
};

}  // namespace gantry::core
