// A node: a machine, a daemon around the shipped node core, and its link. The daemon does what
// noded/daemon.cc does: it takes events, carries out actions in their order, then sends messages.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tests/sim/machine.h"
#include "tests/sim/network.h"

namespace gantry::sim {

class Node {
 public:
  Node(Queue& queue, Random& random, Network& network, Truth& truth, Trace& trace,
       const Settings& settings, const NodeConfig& config);

  std::function<void(const std::string& node, node::Report)> to_controller;
  void deliver(node::Order order);  // an order arrives

  void power_on();
  void power_off();
  void start_daemon();
  void kill_daemon();
  // dies at one of its next actions, and starts again after `down`
  void kill_daemon_within_turn(Duration down);
  void calm() { dies_after_.reset(); }  // cancels such a death
  void stop_daemon();                   // stops it in the normal way
  void reconnect();                     // the transport is connected again

  [[nodiscard]] bool powered() const { return powered_; }
  [[nodiscard]] bool daemon_runs() const { return core_ != nullptr; }
  [[nodiscard]] const std::string& name() const { return machine_.config().name; }
  [[nodiscard]] Machine& machine() { return machine_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] std::size_t attempts() const { return core_ ? core_->attempts().size() : 0; }
  bool locked_off = false;  // the machine must not be switched on

 private:
  void step(node::Input input);
  void finish_turn();
  void set_timer(std::optional<Instant> wake);
  void tell_shims();
  void tell_sleep(node::Report& report) const;
  void check_epoch(Epoch told);

  Queue& queue_;
  Random& random_;
  Network& network_;
  Trace& trace_;
  const Settings& settings_;
  Machine machine_;
  bool powered_ = false;
  std::uint32_t boot_ = 0;
  std::uint64_t daemon_ = 0;                 // number of the daemon's starts
  std::unique_ptr<node::Core> core_;         // nullptr if no daemon runs
  node::Memory memory_;                      // what its disk holds
  Epoch told_{};                             // the newest epoch that an order carried
  std::optional<std::uint64_t> dies_after_;  // number of actions
  Duration down_{};                          // how long it is then down
  std::optional<Instant> armed_;
};

}  // namespace gantry::sim
