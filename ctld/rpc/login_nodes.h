// Which nodes the controller trusts when they tell who a user is (controller.login_nodes), and how
// far. A node is identified by its key and its machine together: its message has to come over the
// connection that has proved the node's key, from an address of the node. So a stolen key is
// useless on another machine, and the key of another node is useless everywhere.
#pragma once

#include <map>
#include <set>
#include <string>

#include "common/result.h"
#include "config/config.h"

namespace gantry::rpc {

enum class Word : std::uint8_t {
  of_users,     // trusted for ordinary users only
  of_everybody  // trusted for all users: the node is on the controller's own machine
};

class LoginNodes {
 public:
  // Looks up the addresses of the nodes, which may take a while. `problems` gets a sentence for
  // each node whose address is not found; such a node is not trusted.
  static LoginNodes from(const Config& config, std::vector<std::string>& problems);
  LoginNodes() = default;

  void add(const std::string& node, std::set<std::string> addresses) {
    addresses_[node] = std::move(addresses);
  }
  // The error unauthenticated tells why a message of this node from this address is not trusted.
  [[nodiscard]] Result<Word> check(const std::string& node, const std::string& address) const;

 private:
  std::map<std::string, std::set<std::string>, std::less<>> addresses_;
};

}  // namespace gantry::rpc
