#include "noded/pmi/layout.h"

#include <cstdlib>

namespace gantry::pmix {
namespace {

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> out(1);
  for (const char c : list) {
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

}  // namespace

std::uint32_t Layout::first_rank(std::uint32_t node) const {
  std::uint32_t rank = 0;
  for (std::uint32_t n = 0; n < node; ++n) rank += tasks[n];
  return rank;
}

std::uint32_t Layout::node_of(std::uint32_t rank) const {
  std::uint32_t node = 0;
  for (std::uint32_t first = 0; node + 1 < nodes.size(); ++node) {
    first += tasks[node];
    if (rank < first) break;
  }
  return node;
}

std::optional<Layout> read_layout(int argc, char** argv) {
  if (argc != 5) return std::nullopt;
  Layout layout;
  layout.name = argv[1];
  layout.self = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  layout.nodes = words_of(argv[3]);
  for (const auto& word : words_of(argv[4]))
    layout.tasks.push_back(static_cast<std::uint32_t>(std::strtoul(word.c_str(), nullptr, 10)));
  if (layout.tasks.size() != layout.nodes.size() || layout.self >= layout.nodes.size())
    return std::nullopt;
  return layout;
}

}  // namespace gantry::pmix
