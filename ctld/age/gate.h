// Checks messages of nodes before the core gets them. A message passes unless it proves that the
// store is older than what the node has been told.
//
// A single node that knows more than the store is left alone: no orders are sent to it, and its
// jobs continue; jobs among them that wait in the store are held, so that they do not start
// elsewhere. If two nodes (or the only node) know more, the controller stops: so one stolen node
// key cannot stop it. After an old store was accepted (accept.h), attempts on nodes that are newer
// may run to their end (strangers.h), and no id that a node has been told is used again.
//
// It is deterministic, except for what it stores: the mark is passed to `save`, and the strangers
// go to their own file.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "common/proto/attempt.h"
#include "common/proto/node_report.h"
#include "ctld/age/high_water.h"
#include "ctld/age/strangers.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"

namespace gantry::age {

class Gate {
 public:
  struct Doors {
    std::function<Result<void>(const HighWater&)> save;  // durable when it returns
    // Hands an order to the core at once, as an input without a sender.
    std::function<void(core::ClientRequest)> order;
    std::function<void(LogLevel, const std::string&)> say;
  };
  // `nodes` is the number of nodes. `place` is the name of the store in messages.
  Gate(HighWater mark, Strangers strangers, std::size_t nodes, std::string place, Doors doors)
      : mark_(mark),
        strangers_(std::move(strangers)),
        nodes_(nodes),
        place_(std::move(place)),
        doors_(std::move(doors)) {}

  // An error is the reason why the controller cannot start with a store at this epoch and last
  // event.
  static Result<void> check(const HighWater& mark, Epoch epoch, EventSeq last,
                            const std::string& place);

  // Holds the waiting jobs after an old store was accepted, because they may have run since.
  void hold_waiting(const core::State& state);
  Result<void> started(const core::State& state, EventSeq last, Instant now);
  // Must be called after each turn of the core, before its orders and replies are sent: saves a
  // higher mark before ids above it are sent to anybody, and holds jobs that returned to the queue
  // although a node has reported a newer attempt of them.
  Result<void> turn_taken(const core::State& state);
  Result<void> note_events(EventSeq last, Instant now);

  // Returns false if the core must not get this message; the core may have been given orders
  // instead. The error malformed means that the store is too old, and that the controller has to
  // stop.
  Result<bool> admit(const core::State& state, const std::string& node, core::NodeMessage& message);

  [[nodiscard]] const HighWater& mark() const { return mark_; }
  [[nodiscard]] std::size_t claims() const { return claims_.size(); }
  [[nodiscard]] const Strangers& strangers() const { return strangers_; }

 private:
  Result<bool> admit_registration(const core::State& state, const std::string& node,
                                  proto::NodeRegister& message);
  Result<bool> set_strangers_aside(const core::State& state, const std::string& node,
                                   proto::NodeRegister& message);
  [[nodiscard]] proto::NodeRegister proving(const proto::NodeRegister& message) const;
  void hold_listed(const core::State& state, const std::string& node,
                   const proto::NodeRegister& message);
  void hold_returned(const core::State& state);
  Result<void> note_claim(const core::State& state, const std::string& node,
                          const proto::NodeRegister& message, const std::string& why);
  Result<void> stranger_ended(const core::State& state, const std::string& node,
                              const proto::AttemptKey& key);

  HighWater mark_;  // the mark as it is saved
  Strangers strangers_;
  std::size_t nodes_;
  std::string place_;
  Doors doors_;
  Instant noted_{};                 // when events were last noted
  std::set<std::string> heard_us_;  // nodes that may have been told this controller's epoch
  std::map<std::string, std::string> claims_;  // by node: what it knows that the store does not
  // By node: jobs of which it reports a newer attempt, and which are held or are in `placed_`.
  std::map<std::string, std::set<JobId>> held_for_;
  // Jobs of which a node reports this attempt, and whose older attempt is still placed here.
  std::map<JobId, Attempt> placed_;
  // Strangers that the node's present registration lists as ended.
  std::vector<proto::AttemptStatus> ended_;
};

}  // namespace gantry::age
