// When an attempt began and ended, in cluster time. A report may be minutes old when it is heard:
// the controller was stopped, the node slept, the link was down. So what counts is what the node
// measured, within what the controller knows: nothing began before it was placed, and nothing ended
// after it is heard that it has.
//
// - How long it ran is the node's word (proto::ExitReport::ran): a clock that nobody sets and that
//   stands still while the machine sleeps.
// - Where that lies in cluster time is said by its start. Times of the node's clock are translated
//   by NodeClock. Where start and length together would end in the future, the start was heard too
//   late, and it is moved back.
#pragma once

#include <algorithm>
#include <optional>

#include "common/time/time.h"

namespace gantry::core {

// How far the node's clock is behind ours: the least that was seen lately, because a message that
// was long on its way makes it look larger, and nothing makes it look smaller.
class NodeClock {
 public:
  void heard(Instant sent, Instant now) {
    if (!sane(sent)) return;  // an older daemon does not say
    const Duration behind = now - sent;
    if (!last_ || now - since_ > kWindow) {
      before_ = last_;
      last_ = behind;
      since_ = now;
    } else {
      last_ = std::min(*last_, behind);
    }
  }
  // Nothing: the time is not said, or the clock is not known.
  [[nodiscard]] std::optional<Instant> ours(Instant theirs) const {
    if (!last_ || !sane(theirs)) return std::nullopt;
    return theirs + std::min(*last_, before_.value_or(*last_));
  }

 private:
  static constexpr Duration kWindow = minutes(5);
  static constexpr Instant kMost{std::int64_t{1} << 60};
  static bool sane(Instant t) { return t > Instant{} && t < kMost; }
  std::optional<Duration> last_, before_;  // of this window, and of the one before
  Instant since_{};
};

}  // namespace gantry::core
