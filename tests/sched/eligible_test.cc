// Tests which nodes a class of jobs may use, and in which order its flavors are tried.
#include <doctest/doctest.h>

#include "ctld/sched/nodes/eligible.h"

namespace gantry::sched {
namespace {

struct Cluster {
  Grid grid;
  Eligible eligible;
  std::uint32_t nodes = 0;

  void add(NodeChanged node) {
    node.node = NodeId{nodes};
    node.name = "n" + std::to_string(nodes);
    ++nodes;
    node.available = true;
    node.cpus = {0, 1, 2, 3};
    node.memory = 1 << 20;
    grid.change(node);
    eligible.node_changed(node);
  }
  void partition() {
    PartitionChanged p;
    p.name = "p";
    for (std::uint32_t n = 0; n < nodes; ++n) p.nodes.push_back(NodeId{n});
    eligible.partition_changed(p);
  }
  JobClass cls(const JobShape& shape) {
    JobClass c;
    c.key.shape = shape;
    c.demand = demand_of(shape, *eligible.partition(PartitionId{0}));
    eligible.refresh(c, grid);
    return c;
  }
  // Returns "flavor:nodes" of each choice, and the verdict if there is one.
  std::string text(const JobShape& shape) {
    const JobClass c = cls(shape);
    std::string out;
    for (const NodeChoice& choice : eligible.flavors_of(c)) {
      out += std::to_string(choice.flavor) + ":";
      for (std::uint32_t n = 0; n < nodes; ++n)
        if (eligible.nodes_of(choice).test(n)) out += std::to_string(n);
      out += " ";
    }
    const Verdict& v = c.standing.verdict;
    if (v.reason != Reason::none) out += std::string(enum_name(v.reason)) + " " + v.subject;
    return out;
  }
};

NodeChanged node(std::uint32_t flavor, const char* model, std::vector<std::string> taints = {},
                 bool gpu_jobs_only = false) {
  NodeChanged n;
  n.flavor = flavor;
  n.gpu_model = model;
  n.gpus = *model != '\0' ? 8 : 0;
  n.taints = std::move(taints);
  n.gpu_jobs_only = gpu_jobs_only;
  return n;
}

TEST_CASE("without tenants there is one choice, which is the class's own set of nodes") {
  Cluster c;
  for (int i = 0; i < 3; ++i) c.add(NodeChanged{});
  c.partition();
  CHECK(c.text({}) == "0:012 ");
  const JobClass cls = c.cls({});
  CHECK(c.eligible.flavors_of(cls)[0].node_set == cls.node_set);
}

TEST_CASE("flavors come by preferred GPU model, then by index; models that are not named do not") {
  Cluster c;
  c.add(node(2, "h100"));
  c.add(node(1, "a100"));
  c.add(node(3, "v100"));
  c.add(node(2, "h100"));
  c.add(node(0, ""));
  c.partition();
  JobShape shape;
  CHECK(c.text(shape) == "0:4 1:1 2:03 3:2 ");
  shape.gpus_per_node = 1;
  shape.gpu_models = {"h100", "a100"};
  CHECK(c.text(shape) == "2:03 1:1 ");
  shape.gpu_models = {"a100", "v100", "h100"};
  CHECK(c.text(shape) == "1:1 3:2 2:03 ");
  shape.gpu_models = {"b200"};
  CHECK(c.text(shape) == "BadConstraints ");
}

TEST_CASE("a gang is not spread over flavors, nor over models that it prefers in an order") {
  Cluster c;
  c.add(node(1, "a100"));
  c.add(node(1, "h100"));
  c.add(node(1, "h100"));
  c.partition();
  JobShape shape;
  shape.min_nodes = shape.max_nodes = shape.tasks = 3;
  CHECK(c.text(shape) == "1:012 ");
  shape.gpu_models = {"h100", "a100"};
  CHECK(c.text(shape) == "1:12 1:0 BadConstraints ");
  shape.min_nodes = shape.max_nodes = shape.tasks = 2;
  CHECK(c.text(shape) == "1:12 1:0 ");
}

TEST_CASE("taints keep jobs off that do not tolerate all of them, and the verdict says so") {
  Cluster c;
  c.add(node(0, "", {"infer", "spot"}));
  c.add(node(0, "", {"spot"}));
  c.partition();
  JobShape shape;
  CHECK(c.text(shape) == "Taints infer,spot");
  shape.tolerations = {"infer"};
  CHECK(c.text(shape) == "Taints spot");
  shape.tolerations = {"spot"};
  CHECK(c.text(shape) == "0:1 ");
  shape.tolerations = {"infer", "spot"};
  CHECK(c.text(shape) == "0:01 ");
}

TEST_CASE("pools for GPU jobs do not take other jobs") {
  Cluster c;
  c.add(node(0, "a100", {}, true));
  c.add(node(0, ""));
  c.partition();
  JobShape shape;
  CHECK(c.text(shape) == "0:1 ");
  shape.gpus_per_node = 1;
  CHECK(c.text(shape) == "0:01 ");
}

TEST_CASE("the sets of nodes are updated when a node changes") {
  Cluster c;
  c.add(node(1, "a100"));
  c.add(node(1, "a100"));
  c.partition();
  JobClass cls = c.cls({});
  CHECK(c.eligible.flavors_of(cls).size() == 1);
  NodeChanged other = node(2, "h100");
  other.node = NodeId{1};
  other.name = "n1";
  other.available = true;
  other.cpus = {0};
  c.grid.change(other);
  c.eligible.node_changed(other);
  c.eligible.refresh(cls, c.grid);
  REQUIRE(c.eligible.flavors_of(cls).size() == 2);
  CHECK(c.eligible.nodes_of(c.eligible.flavors_of(cls)[1]).test(1));
  CHECK(!c.eligible.nodes_of(c.eligible.flavors_of(cls)[0]).test(1));
}

}  // namespace
}  // namespace gantry::sched
