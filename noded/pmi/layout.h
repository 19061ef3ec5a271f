// How the tasks of a step lie on its nodes, and how the shim says so to the server beside them.
#pragma once

#include <cstdint>
#include <optional>
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

// Of a server's command line: NAMESPACE NODE NODES TASKS. Nothing: it is no such line.
std::optional<Layout> read_layout(int argc, char** argv);

}  // namespace gantry::pmix
