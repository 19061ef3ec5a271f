#include "cli/slurm/records/node_json.h"

#include <algorithm>
#include <map>

#include "cli/columns/node_members.h"
#include "cli/slurm/frame.h"
#include "cli/slurm/records/node_fields.h"

namespace gantry::cli::slurm {

Tree node_tree(const proto::NodeRow& node) {
  Tree tree = Tree::object();
  tree.add("name", node.name).add("hostname", node.name);
  tree.add("address", node.address.substr(0, node.address.rfind(':')));
  tree.add("architecture", "").add("state", Tree::words(state_words(node)));
  const std::int64_t cpus = node.total[Resource::cpu] / kCoreUnit;
  const std::int64_t used = node.allocated[Resource::cpu] / kCoreUnit;
  tree.add("cpus", cpus).add("effective_cpus", cpus).add("alloc_cpus", used);
  tree.add("alloc_idle_cpus", cpus - used)
      .add("cpu_load", static_cast<std::int64_t>(node.load * 100));
  tree.add("sockets", std::int64_t{node.sockets}).add("cores", std::int64_t{node.cores_per_socket});
  tree.add("threads", std::int64_t{node.threads_per_core});
  tree.add("real_memory", node.total[Resource::memory] >> 20);
  tree.add("alloc_memory", node.allocated[Resource::memory] >> 20);
  tree.add_set("free_mem", node.free_memory >> 20);
  tree.add("temporary_disk", node.total[Resource::scratch] >> 20).add("weight", std::int64_t{1});
  tree.add("features", Tree::words(node.features))
      .add("active_features", Tree::words(node.features));
  tree.add("gres", gres_text(node) == "(null)" ? "" : gres_text(node));
  tree.add("gres_used", gres_used_text(node) == "(null)" ? "" : gres_used_text(node));
  tree.add("partitions", Tree::words(node.partitions));
  tree.add("tres", tres_of(node.total, true)).add("tres_used", tres_of(node.allocated, false));
  tree.add("reason", node.reason).add("reason_set_by_user", node.reason_by);
  tree.add_set("reason_changed_at", node.since ? node.since->us / 1'000'000 : 0);
  tree.add_set("boot_time", node.booted ? node.booted->us / 1'000'000 : 0);
  tree.add("reservation", node.reservation).add("version", kSlurmVersion.substr(6));
  return tree;
}

Tree sinfo_tree(const std::vector<proto::PartitionRow>& partitions,
                const std::vector<proto::NodeRow>& nodes, const std::string& cluster) {
  Tree list = Tree::list();
  NodeMembers in(nodes);
  for (const proto::PartitionRow& partition : partitions) {
    std::map<std::vector<std::string>, std::vector<const proto::NodeRow*>> groups;
    for (const proto::NodeRow* node : in.of(partition)) groups[state_words(*node)].push_back(node);
    for (const auto& [state, members] : groups) {
      std::int64_t total = 0;
      std::int64_t used = 0;
      std::vector<std::string> names;
      for (const proto::NodeRow* node : members) {
        total += node->total[Resource::cpu] / kCoreUnit;
        used += node->allocated[Resource::cpu] / kCoreUnit;
        names.push_back(node->name);
      }
      Tree cpus = Tree::object();
      cpus.add("allocated", used).add("idle", total - used).add("other", std::int64_t{0});
      cpus.add("total", total);
      Tree group = Tree::object();
      const auto count = static_cast<std::int64_t>(members.size());
      Tree counts = Tree::object();
      counts.add("total", count).add("nodes", Tree::words(names));
      Tree node = Tree::object();
      group.add("node", node.add("state", Tree::words(state))).add("nodes", std::move(counts));
      group.add("cpus", std::move(cpus)).add("cluster", cluster);
      Tree about = Tree::object();
      group.add("partition", about.add("name", partition.name));
      list.add("", std::move(group));
    }
  }
  return list;
}

}  // namespace gantry::cli::slurm
