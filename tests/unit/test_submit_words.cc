// Words of submit options that common/job reads: --propagate and --distribution.
#include <doctest/doctest.h>

#include "common/job/distribution.h"
#include "common/job/process_limits.h"
#include "common/job/task_bind.h"

namespace gantry {
namespace {

TEST_CASE("limits are named as --propagate names them") {
  CHECK(parse_limit_names("ALL")->size() == 10);
  CHECK(parse_limit_names("NONE")->empty());
  CHECK(*parse_limit_names("nofile,RLIMIT_STACK,NOFILE") ==
        std::vector{LimitName::open_files, LimitName::stack});
  CHECK(parse_limit_names("NOFILES").error().message ==
        "\"NOFILES\" is not ALL, NONE, AS, CORE, CPU, DATA, FSIZE, MEMLOCK, NOFILE, NPROC, RSS or "
        "STACK");
  const ProcessLimits own = own_limits({LimitName::core, LimitName::open_files});
  REQUIRE(own.soft.size() == 2);
  CHECK(own.umask.has_value());
  CHECK(check_limits(own).has_value());
}

TEST_CASE("limits from elsewhere are checked") {
  CHECK_FALSE(check_limits({01000, {}}).has_value());
  CHECK_FALSE(check_limits({{}, {{LimitName::core, {}}, {LimitName::core, 1}}}).has_value());
}

TEST_CASE("tasks are laid out in planes, or as a list of hosts says") {
  const auto plane = parse_distribution("plane=4:cyclic");
  REQUIRE(plane.has_value());
  CHECK(**plane == Distribution{NodeOrder::plane, CoreOrder::cyclic, 4, {}, false});
  CHECK(distribution_words(**plane) == "plane:cyclic");
  CHECK(format_distribution(**plane) == "plane=4:cyclic");
  CHECK((*parse_distribution("arbitrary"))->nodes == NodeOrder::arbitrary);
  CHECK_FALSE(parse_distribution("plane").has_value());
  CHECK_FALSE(parse_distribution("plane=0").has_value());
  CHECK_FALSE(parse_distribution("ring").has_value());
}

TEST_CASE("a distribution is told as it was asked for, with what * stands for") {
  const auto told = [](std::string_view text) {
    const auto asked = parse_distribution(text);
    return asked ? distribution_words(**asked) : std::string("wrong");
  };
  CHECK(told("block") == "block");
  CHECK(told("block:block:cyclic") == "block:block:cyclic");
  CHECK(told("*") == "block");
  CHECK(told("*:*") == "block:cyclic");
  CHECK(told("*:*:*") == "block:cyclic:cyclic");
  CHECK(told("*:block:*") == "block:block:block");
  CHECK(told("pack") == "pack");
  CHECK(told("*,nopack") == "block,nopack");
  CHECK(told("block:block:block,nopack") == "block:block:block,nopack");
  CHECK((*parse_distribution("cyclic,pack"))->pack);
  CHECK_FALSE((*parse_distribution("nopack"))->pack);
  for (const char* wrong :
       {"**", "*:**", "*:*:**", ",", ",packer", ",pack", "block,packer", "a:b"}) {
    CAPTURE(wrong);
    CHECK(told(wrong) == "wrong");
  }
}

TEST_CASE("--cpu-bind and --mem-bind are read as Slurm writes them") {
  using Sets = std::vector<std::vector<std::uint16_t>>;
  CHECK(*parse_cpu_bind("verbose") == TaskBind{TaskBind::Kind::usual, true, false, {}});
  CHECK(*parse_cpu_bind("v,none") == TaskBind{TaskBind::Kind::none, true, false, {}});
  CHECK(parse_cpu_bind("sockets,quiet")->kind == TaskBind::Kind::socket);
  CHECK(parse_cpu_bind("ldoms")->kind == TaskBind::Kind::numa);
  CHECK(parse_cpu_bind("map_cpu:0,3*2")->sets == Sets{{0}, {3}, {3}});
  CHECK(parse_cpu_bind("verbose,mask_cpu:0x3,C0")->sets == Sets{{0, 1}, {6, 7}});
  CHECK(*parse_mem_bind("prefer,local") == TaskBind{TaskBind::Kind::local, false, true, {}});
  CHECK(parse_mem_bind("map_mem:1")->kind == TaskBind::Kind::map);
  CHECK(parse_cpu_bind("map_cpu:0x0").error().message ==
        "Failed to validate number: 0x0, the offending character is x");
  CHECK(parse_cpu_bind("mask_cpu:NaN").error().message ==
        "Failed to validate number: NaN, the offending character is N");
  for (const char* wrong : {"map_cpu", "map_cpu:", "mask_cpu:0", "map_mem:1", "local", "prefer"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_cpu_bind(wrong).has_value());
  }
  CHECK_FALSE(parse_mem_bind("sockets").has_value());
  CHECK_FALSE(check_task_bind({TaskBind::Kind::map, false, false, {}}).has_value());
  CHECK_FALSE(check_task_bind({TaskBind::Kind::mask, false, false, {{}}}).has_value());
  CHECK_FALSE(check_task_bind({TaskBind::Kind::none, false, false, {{1}}}).has_value());
}

}  // namespace
}  // namespace gantry
