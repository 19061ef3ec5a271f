// See network.h.
#include "tests/sim/network.h"

#include <algorithm>
#include <utility>

namespace gantry::sim {

bool Network::is_cut(const std::string& peer, Direction direction) const {
  const auto it = links_.find(peer);
  return it != links_.end() &&
         queue_.now() < it->second.cut_until[static_cast<std::size_t>(direction)];
}

void Network::send(const std::string& peer, bool is_node, Direction direction,
                   std::function<void()> deliver) {
  if (is_cut(peer, direction)) return;
  const LinkQuality& q = is_node ? nodes_ : clients_;
  const int copies = random_.chance(q.lose) ? 0 : random_.chance(q.twice) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    const Duration delay = random_.chance(q.late) ? random_.between(q.usual, q.latest)
                                                  : random_.between(microseconds(50), q.usual);
    Instant at = queue_.now() + delay;
    if (calm_) {
      Instant& newest = links_[peer].newest[static_cast<std::size_t>(direction)];
      at = newest = std::max(newest, at);
    }
    queue_.at(at, [this, peer, direction, deliver] {
      if (!is_cut(peer, direction)) deliver();
    });
  }
}

void Network::cut(const std::string& peer, Direction direction, Instant until) {
  Instant& at = links_[peer].cut_until[static_cast<std::size_t>(direction)];
  at = std::max(at, until);
}

void Network::calm() {
  nodes_ = clients_ = LinkQuality{};
  links_.clear();
  calm_ = true;
}

}  // namespace gantry::sim
