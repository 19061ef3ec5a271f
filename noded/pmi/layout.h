// How the tasks of a step are spread over its nodes, and how the shim tells it to the server beside
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gantry::pmix {

struct Layout {
  std::string name;                  // name of the namespace
  std::uint32_t self = 0;            // index of this node
  std::vector<std::string> nodes;    // in the order of ranks
  std::vector<std::uint32_t> tasks;  // number of tasks of each node
  [[nodiscard]] std::uint32_t first_rank(std::uint32_t node) const;
  [[nodiscard]] std::uint32_t size() const {
    return first_rank(static_cast<std::uint32_t>(nodes.size()));
  }
  [[nodiscard]] std::uint32_t node_of(std::uint32_t rank) const;
};

// Reads a server's command line: NAMESPACE NODE NODES TASKS. Returns nothing if the line is wrong.
std::optional<Layout> read_layout(int argc, char** argv);

}  // namespace gantry::pmix
