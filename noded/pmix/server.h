// libpmix's server side, as far as a step needs it: a namespace of processes over nodes, what each
// node's processes are told about it, and the calls that need other nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gantry::pmix {

struct Layout {
  std::string name;                  // of the namespace
  std::uint32_t self = 0;            // our node
  std::vector<std::string> nodes;    // in the order of ranks
  std::vector<std::uint32_t> tasks;  // of each
  [[nodiscard]] std::uint32_t first_rank(std::uint32_t node) const;
  [[nodiscard]] std::uint32_t size() const {
    return first_rank(static_cast<std::uint32_t>(nodes.size()));
  }
  [[nodiscard]] std::uint32_t node_of(std::uint32_t rank) const;
};

// What goes to the shim. Called on threads of libpmix as well.
struct Out {
  std::function<void(std::uint32_t node, std::string_view bytes)> peer;
  std::function<void(std::uint32_t rank, int status, const std::string& why)> abort;
};

// "" or why it cannot serve. One server a process, as libpmix has it.
std::string start_server(const Layout& layout, const std::string& directory, Out out);
// Variables of the task of this number on our node, "NAME=value".
std::vector<std::string> client_environment(const Layout& layout, std::uint32_t task);
void from_peer(std::uint32_t node, std::string_view bytes);
void stop_server();

}  // namespace gantry::pmix
