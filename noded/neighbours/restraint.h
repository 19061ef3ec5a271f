// Which jobs to throttle, for how long and how far, so that other jobs can proceed: pure, from
// findings to holds and their end.
//
// A culprit whose finding is certain enough is limited to a twentieth of what it used, but never
// below what it asked for. The hold ends after its time, when the job stays below its limit, or, on
// a link, when the victim gains nothing. If the job slows down others again soon, the next hold is
// twice as long.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "noded/neighbours/detector.h"

namespace gantry::neighbours {

struct HoldRules {
  Duration first = seconds(60), longest = minutes(16);
  Duration forgotten =
      minutes(10);  // after this time without a hold, the next one is a first one again
  // Confidence from which a job is throttled: more than a node reaches that does not count waiting,
  // where the harm of a wrong guess could not be seen.
  double confidence = 0.65;
  // The same for links. Kernels do not count waiting for links, so the confidence of such a finding
  // is at most 0.6; therefore a hold that does not help the victim ends at once.
  double link_confidence = 0.40;
};

struct Hold {
  proto::AttemptKey key;
  Channel channel;
  std::uint64_t most = 0;  // bytes per second of a disk or link; for cpu the weight, of 100
  Instant since{}, until{};
  Duration length{};
  std::uint32_t times = 1;
  std::optional<Instant> undone;
  std::uint32_t idle = 0;  // consecutive rows in which the job stayed below it
  // For links: the victim, what it got before, and the number of rows since in which it gained
  // nothing; unset once it gained.
  std::optional<proto::AttemptKey> victim{};
  double victim_use = 0;
  std::uint32_t in_vain = 0;
};

// The rate that the job has asked for and so always gets, in bytes per second; 0 = none.
using Floor = std::function<std::uint64_t(const proto::AttemptKey&, const Channel&)>;

class Restraint {
 public:
  explicit Restraint(HoldRules rules) : rules_(rules) {}

  struct Step {
    std::vector<Hold> set, undo;
  };
  Step step(Instant now, const std::vector<Finding>& findings, const std::map<Channel, Row>& rows,
            const Floor& floor);
  // The kernel refused it: the hold is dropped, and not tried again for its time.
  void failed(const Hold& hold, Instant now);

  // Holds in force and the last ones that ended, in the order in which they began.
  [[nodiscard]] const std::vector<Hold>& holds() const { return holds_; }

  static constexpr std::size_t kMostHolds = 64;

 private:
  using Whom = std::pair<proto::AttemptKey, Channel>;
  struct Past {
    Duration length{};
    std::uint32_t times = 0;
    Instant ended{};
    std::optional<Instant> not_before;
  };
  void end(Hold& hold, Instant now, Step& out);
  [[nodiscard]] static bool helps(Hold& hold, const Row* row);
  void consider(Instant now, const Finding& f, const Row& row, const Floor& floor, Step& out);

  HoldRules rules_;
  std::vector<Hold> holds_;
  std::map<Whom, Past> past_;
};

}  // namespace gantry::neighbours
