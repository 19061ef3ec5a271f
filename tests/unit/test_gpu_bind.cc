// The tests check which GPUs each task of a step sees.
#include <doctest/doctest.h>

#include "common/job/gpu_bind.h"

using namespace gantry;

namespace {

// The result lists the GPUs of each task in turn, such as "0,1 2,3", or is the message of the
// error.
std::string seen(const std::string& how, std::size_t tasks, std::size_t gpus) {
  const auto bind = parse_gpu_bind(how);
  if (!bind) return bind.error().message;
  std::string out;
  for (std::size_t task = 0; task < tasks; ++task) {
    const auto own = gpus_of_task(*bind, task, gpus);
    if (!own) return own.error().message;
    out += task > 0 ? " " : "";
    for (std::size_t i = 0; i < own->size(); ++i)
      out += (i > 0 ? "," : "") + std::to_string((*own)[i]);
  }
  return out;
}

}  // namespace

TEST_CASE("tasks see the GPUs that --gpu-bind gives them") {
  CHECK(seen("none", 2, 3) == "0,1,2 0,1,2");
  CHECK(seen("per_task:1", 4, 4) == "0 1 2 3");
  CHECK(seen("per_task:2", 2, 4) == "0,1 2,3");
  CHECK(seen("per_task:2", 2, 3) == "0,1 2,0");  // There are too few GPUs, so tasks share one.
  CHECK(seen("single:1", 3, 2) == "0 1 0");
  CHECK(seen("single:2", 5, 2) == "0 0 1 1 0");
  CHECK(seen("map_gpu:3,1*2,0", 5, 4) == "3 1 1 0 3");
  CHECK(seen("mask_gpu:0x3,C", 3, 4) == "0,1 2,3 0,1");
  CHECK(seen("per_task:1", 2, 0) == " ");  // The node has no GPU.
}

TEST_CASE("a binding is refused if it is malformed or names a GPU that the job does not have") {
  CHECK(seen("map_gpu:2", 1, 2) == "a task is bound to GPU 2, and the job has 2 on the node");
  CHECK(seen("mask_gpu:0x8000000000000000", 1, 2) ==
        "a task is bound to GPU 63, and the job has 2 on the node");
  CHECK(seen("per_task:3", 1, 2) == "a task is to have 3 GPUs, and the job has 2 on the node");
  for (const char* how :
       {"", "single", "single:0", "per_task:", "per_task:x", "map_gpu:", "map_gpu:1,,2",
        "map_gpu:64", "map_gpu:1*0", "map_gpu:1*99999999", "mask_gpu:0", "mask_gpu:0xg",
        "mask_gpu:11112222333344445", "verbose", "verbose,", "closest:1"}) {
    CAPTURE(how);
    CHECK_FALSE(parse_gpu_bind(how));
  }
}

TEST_CASE("a binding may be verbose, and a wrong number is told in Slurm's words") {
  CHECK(parse_gpu_bind("verbose,single:2").value() == GpuBind{GpuBind::Kind::single, 2, {}, true});
  CHECK(parse_gpu_bind("verbose,none")->verbose);
  CHECK(parse_gpu_bind("map_gpu:NaN").error().message ==
        "Failed to validate NaN, offending character is N");
  CHECK(parse_gpu_bind("mask_gpu:0x1,NaN").error().message ==
        "Failed to validate NaN, offending character is N");
}

TEST_CASE("a binding from the wire is refused if no text could have given it") {
  for (const char* how : {"none", "closest", "per_task:2", "single:3", "map_gpu:0,1*2"})
    CHECK(check_gpu_bind(parse_gpu_bind(how).value()));
  const auto why = [](const GpuBind& bind) {
    const auto checked = check_gpu_bind(bind);
    return checked ? std::string() : checked.error().message;
  };
  using Kind = GpuBind::Kind;
  CHECK(why({Kind::map, 1, {}}) ==
        "the binding of tasks to GPUs has sets of GPUs if it is a map, and only then");
  CHECK(why({Kind::single, 0, {}}) ==
        "the binding of tasks to GPUs has a number of 1 to 65536, not 0");
  CHECK(why({Kind::per_task, 65, {}}) ==
        "the binding of tasks to GPUs has a number of 1 to 64, not 65");
  CHECK(why({Kind::map, 1, {1, 0}}) == "the binding of tasks to GPUs has a set without a GPU");
}

TEST_CASE("the closest GPUs have the least distance, and without distances all GPUs count") {
  const GpuBind bind = parse_gpu_bind("closest").value();
  using List = std::vector<std::size_t>;
  const auto near = [&](std::vector<std::uint32_t> distances) {
    return gpus_of_task(bind, 0, 4, distances).value();
  };
  CHECK(near({10, 10, 21, 21}) == List{0, 1});
  CHECK(near({21, 10, 21, 10}) == List{1, 3});
  // No GPU is on the NUMA node of the task, so the nearest GPU elsewhere is taken.
  CHECK(near({21, 31, 31, 31}) == List{0});
  CHECK(near({255, 255, 255, 255}) == List{0, 1, 2, 3});
  CHECK(near({}) == List{0, 1, 2, 3});
  CHECK(gpus_of_task(bind, 3, 0, {}).value().empty());
}
