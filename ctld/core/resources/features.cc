#include "ctld/core/resources/features.h"

#include <algorithm>

#include "ctld/sched/queue/constraint.h"

namespace gantry::core {

std::vector<std::string> matched_features(const Node& node) {
  std::vector<std::string> out = node.declared->features;
  if (node.facts.boot_id.empty()) {
    for (const auto& row : enum_names(Sandbox{}))
      if (row.first != Sandbox::standard) out.push_back(sched::sandbox_feature(row.first));
  } else {
    for (const SandboxFact& fact : node.facts.sandboxes)
      if (fact.why_not.empty()) out.push_back(sched::sandbox_feature(fact.level));
  }
  // Before a node has registered, its abilities are not known.
  for (const auto& [ability, name] : enum_names(NodeAbility{}))
    if (node.facts.boot_id.empty() || (node.facts.abilities & bit_of(ability)) != 0)
      out.push_back(sched::ability_feature(ability));
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace gantry::core
