// Partitions in scenarios; see world.h.
//
//   > part down main [accepts=no]                        the state, for operators
//   > part create night nodes=n[1-2] max_time=1h [by=alice]  all else, for administrators
//   > part update night max_time=2h default=yes
//   > part delete night
//   > part reset night
//   > parts                                              a line for each partition
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"
#include "world.h"

namespace gantry::core::test {

void World::partition_command(const Words& w) {
  const std::string& what = w.plain.at(1);
  const std::string by = w.find("by") ? *w.find("by") : "admin";
  if (what == "up" || what == "down") {
    proto::UpdatePartition m{w.plain.at(2), what == "up"};
    if (w.find("accepts")) m.accepts_jobs = *w.find("accepts") == "yes";
    return ask(by, std::move(m));
  }
  proto::ChangePartition m;
  m.name = w.plain.at(2);
  for (const auto& [value, name] : enum_names(m.action))
    if (name == what) m.action = value;
  m.values = w.named;
  for (const auto& [key, value] : w.named) w.asked.insert(key);
  m.values.erase("by");
  ask(by, std::move(m));
}

void World::list_partitions() {
  const State& state = core_->state();
  for (const PartitionId id : state.partition_order) {
    const Partition& p = state.partition(id);
    const PartitionConfig& c = *p.declared;
    std::vector<std::string> nodes;
    for (const NodeId node : p.nodes) nodes.push_back(state.node(node).name);
    std::string text =
        fmt::format("{}{} {} {}", p.name, state.default_partition == id ? "*" : "",
                    p.up() ? "up" : "down", nodes.empty() ? "no nodes" : compress_hostlist(nodes));
    if (!p.accepts_jobs()) text += " accepts none";
    if (c.max_time) text += " max_time=" + format_duration(*c.max_time);
    if (c.default_time) text += " default_time=" + format_duration(*c.default_time);
    if (c.max_nodes) text += fmt::format(" max_nodes={}", *c.max_nodes);
    if (c.priority > 0) text += fmt::format(" priority={}", c.priority);
    if (!c.allow_accounts.empty())
      text += fmt::format(" allow_accounts={}", fmt::join(c.allow_accounts, ","));
    if (p.origin == PartitionOrigin::command) text += " made by a command";
    if (!p.values.empty()) {
      std::vector<std::string_view> names;
      for (const auto& [name, value] : p.values) names.push_back(name);
      text += fmt::format(" (set by {}: {})", p.changed_by, fmt::join(names, ", "));
    }
    line(text);
  }
}

}  // namespace gantry::core::test
