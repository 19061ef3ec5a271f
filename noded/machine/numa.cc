#include "noded/machine/numa.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "noded/machine/files.h"

namespace gantry::runtime {

std::vector<std::uint16_t> parse_cpu_list(std::string_view text) {
  std::vector<std::uint16_t> ids;
  for (const auto& part : split(trim(text), ',')) {
    const auto dash = part.find('-');
    unsigned first = 0, last = 0;
    const char* end = part.data() + part.size();
    if (std::from_chars(part.data(), end, first).ec != std::errc{}) continue;
    last = first;
    if (dash != std::string::npos &&
        std::from_chars(part.data() + dash + 1, end, last).ec != std::errc{})
      continue;
    for (unsigned i = first; i <= last && i < 65536; ++i)
      ids.push_back(static_cast<std::uint16_t>(i));
  }
  return ids;
}

NumaMap NumaMap::read(const std::string& base) {
  NumaMap out;
  std::set<int> nodes;
  for (const std::string& name : list_dir(base)) {
    int id = -1;
    if (!name.starts_with("node")) continue;
    const char* end = name.data() + name.size();
    if (const auto at = std::from_chars(name.data() + 4, end, id);
        at.ec == std::errc{} && at.ptr == end)
      nodes.insert(id);
  }
  for (const int node : nodes) {
    const std::string dir = base + "/node" + std::to_string(node);
    for (const std::uint16_t cpu : parse_cpu_list(read_file(dir + "/cpulist").value_or("")))
      out.node_of_[cpu] = node;
    // The file has one number for each node that exists, in their order.
    auto to = nodes.begin();
    for (const std::string& word : split(trim(read_file(dir + "/distance").value_or("")), ' ')) {
      std::uint32_t distance = 0;
      if (word.empty()) continue;
      if (to == nodes.end()) break;
      const auto at = std::from_chars(word.data(), word.data() + word.size(), distance);
      if (at.ec == std::errc{}) out.distance_[node][*to] = distance;
      ++to;
    }
  }
  return out;
}

std::uint32_t NumaMap::distance(std::span<const std::uint16_t> cpus, int node) const {
  if (node < 0) return kNumaOwn;
  std::uint32_t least = kNumaUnknown;
  for (const std::uint16_t cpu : cpus) {
    const auto from = node_of_.find(cpu);
    if (from == node_of_.end()) continue;
    const auto row = distance_.find(from->second);
    if (row == distance_.end()) continue;
    if (const auto at = row->second.find(node); at != row->second.end())
      least = std::min(least, at->second);
  }
  return least;
}

}  // namespace gantry::runtime
