// Tests to which CPUs and which memory --cpu-bind and --mem-bind bind the tasks of a step.
#include <doctest/doctest.h>

#include "noded/core/task_places.h"

using namespace gantry;
using node::StepHere;
using node::task_places;

namespace {

using Sets = std::vector<std::vector<std::uint16_t>>;

// Two sockets of two NUMA nodes each, with two CPUs on each; the step has six CPUs and two tasks.
StepHere here() {
  StepHere out{"n1", {0, 1, 2, 3, 4, 5}, true, {4, 5}, {}, {}};
  for (std::uint16_t cpu = 0; cpu < 8; ++cpu) {
    out.sockets[cpu] = cpu / 4;
    out.numa[cpu] = cpu / 2;
  }
  return out;
}

Sets cpus(const char* how) {
  const auto places = task_places(*parse_cpu_bind(how), {}, here());
  REQUIRE(places);
  return places->cpus;
}

Sets mems(const char* how, const char* cpu = "quiet") {
  const auto places = task_places(*parse_cpu_bind(cpu), *parse_mem_bind(how), here());
  REQUIRE(places);
  return places->mems;
}

}  // namespace

TEST_CASE("tasks are bound to the CPUs that --cpu-bind says") {
  CHECK(cpus("cores") == Sets{{0, 1, 2}, {3, 4, 5}});
  CHECK(cpus("none") == Sets{{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}});
  CHECK(cpus("rank") == Sets{{0}, {1}});
  CHECK(cpus("sockets") == Sets{{0, 1, 2, 3}, {0, 1, 2, 3, 4, 5}});
  CHECK(cpus("ldoms") == Sets{{0, 1, 2, 3}, {2, 3, 4, 5}});
  CHECK(cpus("map_cpu:5") == Sets{{5}, {5}});
  CHECK(cpus("mask_cpu:0x3,0x30") == Sets{{0, 1}, {4, 5}});
}

TEST_CASE("tasks use the memory that --mem-bind says") {
  CHECK(mems("none") == Sets{{}, {}});
  CHECK(mems("local") == Sets{{0, 1}, {1, 2}});
  CHECK(mems("local", "rank") == Sets{{0}, {0}});
  CHECK(mems("rank") == Sets{{0}, {1}});
  CHECK(mems("mask_mem:0xc") == Sets{{2, 3}, {2, 3}});
}

TEST_CASE("a task is not bound to what the step does not have") {
  CHECK(task_places(*parse_cpu_bind("map_cpu:0,7"), {}, here()).error().message ==
        "--cpu-bind binds task 5 to CPU 7 of node n1, which the step does not have there");
  CHECK(task_places({}, *parse_mem_bind("map_mem:4"), here()).error().message ==
        "--mem-bind binds task 4 to NUMA node 4 of node n1, which has none of this number");
}

TEST_CASE("a task says in Slurm's words what it is bound to") {
  const auto places =
      task_places(*parse_cpu_bind("verbose,mask_cpu:0x30"), *parse_mem_bind("v,map_mem:1"), here());
  REQUIRE(places);
  CHECK(places->notes[1] ==
        "cpu-bind=MASK - n1, task  5  1 [{pid}]: mask 0x30 set\n"
        "mem-bind=MAP - n1, task  5  1 [{pid}]: mask 0x2 set\n");
}
