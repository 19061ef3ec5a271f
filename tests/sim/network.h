// The links between the controller and all others: messages are lost, doubled, late and out of
// order as the settings say, and links are cut for a while, in one direction or both. After calm()
// a link behaves like a stable connection: nothing is lost, and messages arrive in order, after a
// delay.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "tests/sim/queue.h"
#include "tests/sim/random.h"
#include "tests/sim/settings.h"

namespace gantry::sim {

enum class Direction : std::uint8_t { to_controller, from_controller };

class Network {
 public:
  Network(Queue& queue, Random& random, LinkQuality nodes, LinkQuality clients)
      : queue_(queue), random_(random), nodes_(nodes), clients_(clients) {}

  // `deliver` is called once for each copy that arrives. `peer` is a node's or a client's name.
  void send(const std::string& peer, bool is_node, Direction direction,
            std::function<void()> deliver);
  // Sends over a link that neither loses, doubles nor delays, as for an action that a person
  // repeats until it works.
  void send_safely(std::function<void()> deliver) {
    queue_.after(milliseconds(1), std::move(deliver));
  }
  void cut(const std::string& peer, Direction direction, Instant until);
  void calm();

 private:
  struct Link {
    Instant cut_until[2] = {};
    Instant newest[2] = {};  // arrival of the last message sent since calm()
  };
  [[nodiscard]] bool is_cut(const std::string& peer, Direction direction) const;

  Queue& queue_;
  Random& random_;
  LinkQuality nodes_, clients_;
  std::map<std::string, Link> links_;
  bool calm_ = false;
};

}  // namespace gantry::sim
