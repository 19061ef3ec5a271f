#include "noded/network/resolvers.h"

#include <fstream>
#include <sstream>

namespace gantry::network {
namespace {

std::string text_of_file(const char* path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

bool of_this_machine(const NetworkRange& server) {
  for (const char* own : {"127.0.0.0/8", "::1/128", "fe80::/10", "0.0.0.0/32", "::/128"})
    if (parse_network_range(own)->holds(server)) return true;
  return false;
}

}  // namespace

std::vector<NetworkRange> resolvers_of(std::string_view resolv_conf) {
  std::vector<NetworkRange> out;
  std::istringstream lines{std::string(resolv_conf)};
  for (std::string line; std::getline(lines, line) && out.size() < kMostResolvers;) {
    std::istringstream words(line);
    std::string key, server;
    words >> key >> server;
    if (key != "nameserver" || server.find('/') != std::string::npos) continue;
    const auto range = parse_network_range(server);
    if (range && !of_this_machine(*range)) out.push_back(*range);
  }
  return out;
}

std::vector<NetworkRange> resolvers_here(const std::vector<std::string>& configured) {
  std::vector<NetworkRange> out;
  for (const std::string& server : configured)
    if (const auto range = parse_network_range(server)) out.push_back(*range);
  if (out.empty()) out = resolvers_of(text_of_file("/etc/resolv.conf"));
  if (out.empty()) out = resolvers_of(text_of_file("/run/systemd/resolve/resolv.conf"));
  return out;
}

}  // namespace gantry::network
