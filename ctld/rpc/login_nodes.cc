#include "ctld/rpc/login_nodes.h"

#include <fmt/core.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>

#include "common/proto/meeting_point.h"

namespace gantry::rpc {
namespace {

std::set<std::string> addresses_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  std::set<std::string> out;
  for (const addrinfo* a = all.get(); a != nullptr; a = a->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(a->ai_addr, a->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0)
      out.insert(text.data());
  }
  return out;
}

bool is_this_machine(const std::string& address) {
  return address == "::1" || address.starts_with("127.");
}

}  // namespace

LoginNodes LoginNodes::from(const Config& config, std::vector<std::string>& problems) {
  LoginNodes out;
  for (const std::string& name : config.controller.login_nodes) {
    const auto node = std::find_if(config.nodes.begin(), config.nodes.end(),
                                   [&](const NodeConfig& n) { return n.name == name; });
    if (node == config.nodes.end()) continue;  // excluded by load_config()
    const std::string host = host_of(node->address);
    std::set<std::string> addresses = addresses_of(host);
    if (addresses.empty())
      problems.push_back(
          fmt::format("login node {} is not believed: {} has no address", name, host));
    else
      out.add(name, std::move(addresses));
  }
  return out;
}

Result<Word> LoginNodes::check(const std::string& node, const std::string& address) const {
  const auto known = addresses_.find(node);
  if (known == addresses_.end())
    return fail(ErrorCode::unauthenticated,
                fmt::format("node {} does not say who a user is (controller.login_nodes): prove it "
                            "yourself",
                            node));
  if (!known->second.contains(address))
    return fail(
        ErrorCode::unauthenticated,
        fmt::format("{} shows the key of login node {} but is not its address", address, node));
  return is_this_machine(address) ? Word::of_everybody : Word::of_users;
}

}  // namespace gantry::rpc
