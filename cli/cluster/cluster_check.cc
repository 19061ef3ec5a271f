#include "cli/cluster/cluster_check.h"

#include <fmt/core.h>

#include <map>

#include "cli/columns/gpu_layout.h"
#include "common/text/hostlist.h"

namespace gantry::cli {

std::vector<std::string> check_cluster(const std::vector<proto::NodeRow>& nodes) {
  const std::vector<Drift> drift = drift_of(nodes);
  std::vector<std::string> out;
  for (const proto::NodeRow& node : nodes) {
    const auto say = [&](const std::string& what) { out.push_back(node.name + ": " + what); };
    const std::string why = node.reason.empty() ? "" : ": " + node.reason;
    if (node.health != NodeHealth::up) say(fmt::format("{}{}", enum_name(node.health), why));
    if (node.intent != NodeIntent::open) say(fmt::format("{}{}", enum_name(node.intent), why));
    for (const Drift& d : drift) {
      const bool idle = d.wanted == "-";  // an idle slice that waits for its next job
      if (d.node != node.name || idle) continue;
      if (d.gpu.empty() && d.found.starts_with("none: "))
        say(fmt::format("no GPUs, {} declared: {}", d.wanted, d.found.substr(6)));
      else if (d.gpu.empty())
        say(fmt::format("{} wanted, {} found", d.wanted, d.found));
      else
        say(fmt::format("GPU {}: {} wanted, found {}", d.gpu, d.wanted, d.found));
    }
  }
  return out;
}

std::vector<std::string> layers_that_are_off(const std::vector<proto::NodeRow>& nodes) {
  std::map<std::string, std::vector<std::string>> where;
  for (const proto::NodeRow& node : nodes)
    for (const std::string& layer : node.layers_off) where[layer].push_back(node.name);
  std::vector<std::string> out;
  for (const auto& [layer, names] : where)
    out.push_back(fmt::format("{}: {}", compress_hostlist(names), layer));
  return out;
}

}  // namespace gantry::cli
