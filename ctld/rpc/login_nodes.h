// Which nodes the controller believes when they say who a user is (controller.login_nodes), and how
// far. A node is its key and its machine together: its message has to come over the connection that
// has proved the node's key, from an address of the node. So a stolen key is of no use on another
// machine, and the key of another node is of no use anywhere.
#pragma once

#include <map>
#include <set>
#include <string>

#include "common/result.h"
#include "config/config.h"

namespace gantry::rpc {

enum class Word : std::uint8_t {
  of_users,     // for ordinary users only
  of_everybody  // the node is on the controller's own machine
};

class LoginNodes {
 public:
  // Looks up the addresses of the nodes, which may take a while. `problems` receives a sentence for
  // each node whose address is not found; such a node is not believed.
  static LoginNodes from(const Config& config, std::vector<std::string>& problems);
  LoginNodes() = default;

  void add(const std::string& node, std::set<std::string> addresses) {
    addresses_[node] = std::move(addresses);
  }
  // The error unauthenticated says why a message of this node from this address is not believed.
  [[nodiscard]] Result<Word> check(const std::string& node, const std::string& address) const;

 private:
  std::map<std::string, std::set<std::string>, std::less<>> addresses_;
};

}  // namespace gantry::rpc
