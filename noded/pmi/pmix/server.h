// The server side of libpmix, as far as a step needs it: a namespace of processes over nodes, what
// each node's processes are told about it, and the calls that need other nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "noded/pmi/layout.h"

namespace gantry::pmix {

// How the server talks to the shim. The functions are called on threads of libpmix as well.
struct Out {
  std::function<void(std::uint32_t node, std::string_view bytes)> peer;
  std::function<void(std::uint32_t rank, int status, const std::string& why)> abort;
};

// Returns "" or why it cannot serve. libpmix allows one server in a process.
std::string start_server(const Layout& layout, const std::string& directory, Out out);
// Variables ("NAME=value") for the task with this number on this node.
std::vector<std::string> client_environment(const Layout& layout, std::uint32_t task);
void from_peer(std::uint32_t node, std::string_view bytes);
void stop_server();

}  // namespace gantry::pmix
