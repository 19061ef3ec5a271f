// Faults: each kind occurs at random intervals during the time of faults, and ends by itself or is
// repaired after a while. Only faults occur that the design promises to survive: a node is declared
// dead only while its machine is off and stays off until that is known; and under fencing no
// machine sleeps longer than the controller waits after the fence.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tests/sim/clients.h"
#include "tests/sim/node.h"

namespace gantry::sim {

class Faults {
 public:
  static constexpr Duration kDaemonDown = minutes(8);

  Faults(Queue& queue, Random& random, Network& network, Trace& trace, Controller& controller,
         Clients& clients, std::vector<std::unique_ptr<Node>>& nodes, const Settings& settings)
      : queue_(queue),
        random_(random),
        network_(network),
        trace_(trace),
        controller_(controller),
        clients_(clients),
        nodes_(nodes),
        settings_(settings) {}

  void start();
  void stop();  // stops all faults and mends everything

 private:
  void every(Duration mean, void (Faults::*fault)());
  Node& some_node() { return *nodes_[random_.below(nodes_.size())]; }
  void daemon_dies();
  void daemon_stops();
  void machine_dies();
  void shim_dies();
  void link_is_cut();
  void client_is_cut();
  void controller_dies();
  void commit_fails();
  void fold_fails();
  void disk_fills();
  void node_is_declared_dead();
  void declare_dead(Node& node);
  void gpu_breaks();
  void controller_stands_still();
  void machine_sleeps();

  Queue& queue_;
  Random& random_;
  Network& network_;
  Trace& trace_;
  Controller& controller_;
  Clients& clients_;
  std::vector<std::unique_ptr<Node>>& nodes_;
  const Settings& settings_;
  bool stopped_ = false;
};

}  // namespace gantry::sim
