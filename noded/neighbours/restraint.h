// Whom to hold back, for how long and how far, so that a neighbour gets on: pure, from findings to
// holds and their end.
//
// A culprit whose finding is sure enough is held to a twentieth of what it used, but never below
// what it asked for. The hold ends when its time is over, when the job does not press against it
// any more, or, on a link, when the victim gets no more than before. If the job holds up others
// again soon, the next hold is twice as long.
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
  Duration forgotten = minutes(10);  // after this time without a hold the next is a first one
  // From which on somebody is held back: more than a node reaches that does not count waiting,
  // where nobody could see the harm of a wrong guess.
  double confidence = 0.65;
  // The same for links. No kernel counts waiting for them, so a finding of theirs is never surer
  // than 0.6; in return a hold that does not help the victim ends at once.
  double link_confidence = 0.40;
};

struct Hold {
  proto::AttemptKey key;
  Channel channel;
  std::uint64_t most = 0;  // of a disk or link: bytes per second; of cpu: the weight, of 100
  Instant since{}, until{};
  Duration length{};
  std::uint32_t times = 1;
  std::optional<Instant> undone;
  std::uint32_t idle = 0;  // rows in a row in which it did not press against it
  // Of links: whom it is to help, what that job got before, and the rows since in which it got no
  // more; none once it did.
  std::optional<proto::AttemptKey> victim{};
  double victim_use = 0;
  std::uint32_t in_vain = 0;
};

// What the job has asked for and so always gets, in bytes per second; 0 = nothing.
using Floor = std::function<std::uint64_t(const proto::AttemptKey&, const Channel&)>;

class Restraint {
 public:
  explicit Restraint(HoldRules rules) : rules_(rules) {}

  struct Step {
    std::vector<Hold> set, undo;
  };
  Step step(Instant now, const std::vector<Finding>& findings, const std::map<Channel, Row>& rows,
            const Floor& floor);
  // The kernel did not take it: it is forgotten, and not tried again for the time of the hold.
  void failed(const Hold& hold, Instant now);

  // Those that are in force and the last ones that are over, in the order in which they began.
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
