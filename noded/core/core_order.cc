#include "noded/core/core_order.h"

#include <algorithm>
#include <deque>

namespace gantry::node {
namespace {

// The sockets that still have cores; they take turns.
class Sockets {
 public:
  Sockets(const std::vector<std::uint16_t>& cores,
          const std::map<std::uint16_t, std::uint32_t>& socket_of) {
    std::map<std::uint32_t, std::deque<std::uint16_t>> of;
    for (const std::uint16_t core : cores) {
      const auto it = socket_of.find(core);
      of[it == socket_of.end() ? 0 : it->second].push_back(core);
    }
    for (auto& [socket, list] : of) left_.push_back(std::move(list));
  }

  // Takes `count` cores of the next socket that has so many; if none has, takes what the next ones
  // have.
  void take(std::size_t count, std::vector<std::uint16_t>& out) {
    const auto many = [&](const auto& socket) { return socket.size() >= count; };
    const auto some = [](const auto& socket) { return !socket.empty(); };
    if (std::any_of(left_.begin(), left_.end(), many))
      while (!many(left_.front())) turn();
    while (count > 0 && std::any_of(left_.begin(), left_.end(), some)) {
      auto& socket = left_.front();
      for (; count > 0 && !socket.empty(); --count) {
        out.push_back(socket.front());
        socket.pop_front();
      }
      turn();
    }
  }

 private:
  void turn() { std::rotate(left_.begin(), left_.begin() + 1, left_.end()); }
  std::vector<std::deque<std::uint16_t>> left_;  // the first is the next one to be used
};

}  // namespace

std::vector<std::uint16_t> order_cores(CoreOrder order, std::vector<std::uint16_t> cores,
                                       const std::map<std::uint16_t, std::uint32_t>& socket_of,
                                       std::size_t tasks) {
  if (order == CoreOrder::block || tasks == 0 || cores.size() < tasks) return cores;
  const std::size_t share = order == CoreOrder::fcyclic ? 1 : cores.size() / tasks;
  const std::size_t all = cores.size();
  Sockets sockets(cores, socket_of);
  cores.clear();
  while (cores.size() < all) sockets.take(std::min(share, all - cores.size()), cores);
  return cores;
}

}  // namespace gantry::node
