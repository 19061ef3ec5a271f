// A node: machine, daemon around the shipped node core, and its link. The daemon does what
// noded/daemon.cc does: events in, actions carried out in their order, then messages.
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
  void kill_daemon_within_turn(Duration down);  // at one of its next actions; then it starts again
  void calm() { dies_after_.reset(); }          // no such death is to come any more
  void stop_daemon();                           // on purpose
  void reconnect();                             // the transport came back

  [[nodiscard]] bool powered() const { return powered_; }
  [[nodiscard]] bool daemon_runs() const { return core_ != nullptr; }
  [[nodiscard]] const std::string& name() const { return machine_.config().name; }
  [[nodiscard]] Machine& machine() { return machine_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] std::size_t attempts() const { return core_ ? core_->attempts().size() : 0; }
  bool locked_off = false;  // somebody sees to it that it is not switched on

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
  std::uint64_t daemon_ = 0;                 // number of the daemon's life
  std::unique_ptr<node::Core> core_;         // null: no daemon
  node::Memory memory_;                      // its disk
  Epoch told_{};                             // the newest that an order carried
  std::optional<std::uint64_t> dies_after_;  // actions
  Duration down_{};                          // and then so long
  std::optional<Instant> armed_;
};

}  // namespace gantry::sim
