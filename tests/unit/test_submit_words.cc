// Words of submit options that common/job reads: --propagate and --distribution.
#include <doctest/doctest.h>

#include "common/job/distribution.h"
#include "common/job/process_limits.h"

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
  CHECK(**plane == Distribution{NodeOrder::plane, CoreOrder::cyclic, 4});
  CHECK(format_distribution(**plane) == "plane=4:cyclic");
  CHECK((*parse_distribution("arbitrary"))->nodes == NodeOrder::arbitrary);
  CHECK_FALSE(parse_distribution("plane").has_value());
  CHECK_FALSE(parse_distribution("plane=0").has_value());
  CHECK_FALSE(parse_distribution("ring").has_value());
}

}  // namespace
}  // namespace gantry
