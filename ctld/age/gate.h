// The gate between nodes and the core: what a node says is let through only while it does not prove
// that the store is older than what the node has been told.
//
// One node that claims to know more is left alone: nothing is ordered there, and its jobs run on.
// Two (or the only one) are believed, and the controller stops: a stolen node key alone cannot do
// that. After an old store was accepted (accept.h), what runs on nodes and is newer is left to its
// end (strangers.h), and no id that a node has been told is given again.
//
// Deterministic but for what it keeps: the mark through `save`, the strangers in their own file.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "ctld/age/high_water.h"
#include "ctld/age/strangers.h"
#include "ctld/core/core.h"

namespace gantry::age {

class Gate {
 public:
  struct Doors {
    std::function<Result<void>(const HighWater&)> save;  // durable when it returns
    std::function<void(core::ClientRequest)> order;      // to the core, at once; from nobody
    std::function<void(LogLevel, const std::string&)> say;
  };
  // `nodes`: how many there are. `place`: what the store is called in sentences.
  Gate(HighWater mark, Strangers strangers, std::size_t nodes, std::string place, Doors doors)
      : mark_(mark),
        strangers_(std::move(strangers)),
        nodes_(nodes),
        place_(std::move(place)),
        doors_(std::move(doors)) {}

  // "" or why the store with this epoch and last event cannot be started with.
  static Result<void> check(const HighWater& mark, Epoch epoch, EventSeq last,
                            const std::string& place);

  // After an old store was accepted: what waits may have run since, so it is held.
  void hold_waiting(const core::State& state);
  Result<void> started(const core::State& state, EventSeq last, Instant now);
  // Before ids above the mark leave.
  Result<void> keep_ahead(JobId last);
  Result<void> note_events(EventSeq last, Instant now);

  // False: this message is not for the core, which may have been given orders instead. malformed:
  // the store is too old, and the controller has to stop.
  Result<bool> admit(const core::State& state, const std::string& node, core::NodeMessage& message);

  [[nodiscard]] const HighWater& mark() const { return mark_; }
  [[nodiscard]] std::size_t claims() const { return claims_.size(); }
  [[nodiscard]] const Strangers& strangers() const { return strangers_; }

 private:
  Result<bool> admit_registration(const core::State& state, const std::string& node,
                                  proto::NodeRegister& message);
  Result<bool> set_strangers_aside(const core::State& state, const std::string& node,
                                   proto::NodeRegister& message);
  Result<void> note_claim(const core::State& state, const std::string& node,
                          const proto::NodeRegister& message, const std::string& why);
  Result<void> stranger_ended(const core::State& state, const std::string& node,
                              const proto::AttemptKey& key);

  HighWater mark_;  // as it is kept
  Strangers strangers_;
  std::size_t nodes_;
  std::string place_;
  Doors doors_;
  Instant noted_{};                            // when events were noted
  std::set<std::string> heard_us_;             // nodes that may have been told our epoch
  std::map<std::string, std::string> claims_;  // by node: what it knows and the store does not
  std::vector<proto::AttemptStatus> ended_;    // strangers of a registration that have
};

}  // namespace gantry::age
