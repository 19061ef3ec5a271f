// Tests what a submit is told if the job can never start on the nodes that it may use.
#include <doctest/doctest.h>

#include "ctld/sched/queue/geometry.h"

namespace gantry::sched::fits_test {
namespace {

struct Cluster {
  PartitionChanged partition;
  std::vector<NodeChanged> nodes;
  std::vector<TopologyLevel> levels{{"block", {}}, {"rack", {}}};

  NodeChanged& add(std::uint32_t rack, std::uint32_t flavor = 0, const char* model = "") {
    NodeChanged n;
    n.node = NodeId{static_cast<std::uint32_t>(nodes.size())};
    n.name = "n" + std::to_string(nodes.size());
    n.cpus = {0, 1, 2, 3};
    n.memory = 1 << 20;
    n.flavor = flavor;
    n.gpu_model = model;
    n.gpus = *model != '\0' ? 4 : 0;
    n.domains = {rack / 2, rack};
    nodes.push_back(n);
    return nodes.back();
  }
  std::string check(const JobShape& shape) {
    partition.name = "p";
    std::vector<const NodeChanged*> all;
    for (const NodeChanged& n : nodes) all.push_back(&n);
    const auto ok = check_fits(shape, partition, all, levels);
    return ok ? "fits" : ok.error().message;
  }
};

JobShape gang(std::uint32_t nodes) {
  JobShape s;
  s.min_nodes = s.max_nodes = s.tasks = nodes;
  s.memory_per_node = 1;
  return s;
}

TEST_CASE("a submit is told which models, flavors, taints or pools for GPU jobs exclude it") {
  Cluster c;
  c.add(0, 1, "a100");
  c.add(0, 1, "a100");
  c.add(0, 2, "h100").gpu_jobs_only = true;
  c.add(0, 2, "h100").taints = {"infer"};
  JobShape s = gang(1);
  s.gpu_models = {"b200", "v100"};
  CHECK(c.check(s) ==
        "no node of partition p has GPUs of model b200 or v100; 1 more is only for jobs that "
        "tolerate infer (--tolerate)");
  s.gpu_models = {"h100"};
  CHECK(c.check(s) ==
        "the nodes of partition p that would do are only for jobs that tolerate infer");
  s.gpus_per_node = 1;
  CHECK(c.check(s) == "fits");
  s.gpus_per_node = 0;
  s.tolerations = {"infer"};
  CHECK(c.check(s) == "fits");
  s = gang(3);
  s.gpus_per_node = 1;
  CHECK(c.check(s) ==
        "3 nodes asked: the nodes of partition p hold them only together, but a job runs on nodes "
        "of one flavor; 1 more is only for jobs that tolerate infer (--tolerate)");
  s = gang(2);
  CHECK(c.check(s) == "fits");
  Cluster only;
  only.add(0, 0, "a100").gpu_jobs_only = true;
  CHECK(only.check(gang(1)) == "the nodes of partition p are for jobs that ask for GPUs");
}

TEST_CASE("a submit is told about unknown topology levels and about domains without enough room") {
  Cluster c;
  for (const std::uint32_t rack : {0, 0, 0, 1, 1, 2}) c.add(rack);
  JobShape s = gang(4);
  CHECK(c.check(s) == "fits");
  s.topology = TopologyWish::required;
  s.topology_level = "rack";
  CHECK(c.check(s) == "4 nodes asked in one rack, but no rack of partition p has room for them");
  s.topology_level = "block";
  CHECK(c.check(s) == "fits");
  s.topology_level = "leaf";
  CHECK(c.check(s) == "topology level \"leaf\" is not known; there are block, rack, node");
  s.topology_level = "node";
  CHECK(c.check(s) == "4 nodes asked in one node, but no node of partition p has room for them");
  s = gang(4);
  s.topology = TopologyWish::preferred;
  s.topology_level = "rack";
  CHECK(c.check(s) == "fits");
  s.anti_affinity = "app";
  s.anti_affinity_level = "row";
  CHECK(c.check(s) == "topology level \"row\" is not known; there are block, rack, node");
  c.levels.clear();
  CHECK(c.check(s) == "topology level \"rack\" is not known; there is only node");
}

}  // namespace
}  // namespace gantry::sched::fits_test
