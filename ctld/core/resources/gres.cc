#include "ctld/core/resources/gres.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/assert.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

bool is_taken(const Node& node, const std::string& name, std::uint16_t place) {
  const auto marks = node.gres_taken.find(name);
  return marks != node.gres_taken.end() && place < marks->second.size() && marks->second[place];
}

void mark(Node& node, const sched::NodeGrant& grant, bool taken) {
  for (const GresGrant& g : grant.gres)
    for (const std::uint16_t place : g.devices) {
      GANTRY_ASSERT(is_taken(node, g.name, place) != taken,
                    "a resource is given to one job at a time");
      std::vector<bool>& marks = node.gres_taken[g.name];
      if (marks.size() <= place) marks.resize(place + 1u);
      marks[place] = taken;
    }
}

}  // namespace

std::optional<std::string> gres_objection(const Node& node, const sched::NodeGrant& grant,
                                          const JobShape& shape) {
  if (grant.gres.size() != shape.gres.size()) return "other resources than asked";
  for (std::size_t i = 0; i < grant.gres.size(); ++i) {
    const GresGrant& g = grant.gres[i];
    if (g.name != shape.gres[i].name || g.devices.size() != shape.gres[i].count)
      return fmt::format("other than {} {} asked", shape.gres[i].count, shape.gres[i].name);
    const auto has = std::find_if(node.gres.begin(), node.gres.end(),
                                  [&](const GresCount& c) { return c.name == g.name; });
    for (std::size_t k = 0; k < g.devices.size(); ++k) {
      if (has == node.gres.end() || g.devices[k] >= has->count)
        return fmt::format("{} has no {} {}", node.name, g.name, g.devices[k]);
      if (k > 0 && g.devices[k] <= g.devices[k - 1]) return fmt::format("{} out of order", g.name);
      if (is_taken(node, g.name, g.devices[k]))
        return fmt::format("{} {} of {} is taken", g.name, g.devices[k], node.name);
    }
  }
  return std::nullopt;
}

void take_gres(Node& node, const sched::NodeGrant& grant) {
  mark(node, grant, true);
}

void give_gres(Node& node, const sched::NodeGrant& grant) {
  mark(node, grant, false);
}

std::size_t gres_held(const Node& node) {
  std::size_t sum = 0;
  for (const auto& [name, marks] : node.gres_taken)
    sum += static_cast<std::size_t>(std::count(marks.begin(), marks.end(), true));
  return sum;
}

GresAmounts gres_amounts(const State& state, const std::vector<GresGrant>& gres) {
  GresAmounts out{};
  for (std::size_t i = 0; i < state.gres_names.size(); ++i)
    for (const GresGrant& g : gres)
      if (g.name == state.gres_names[i]) out[i] = static_cast<std::int16_t>(g.devices.size());
  return out;
}

GresAmounts gres_amounts_taken(const State& state, const Node& node) {
  GresAmounts out{};
  for (std::size_t i = 0; i < state.gres_names.size(); ++i)
    if (const auto at = node.gres_taken.find(state.gres_names[i]); at != node.gres_taken.end())
      out[i] = static_cast<std::int16_t>(std::count(at->second.begin(), at->second.end(), true));
  return out;
}

}  // namespace gantry::core
