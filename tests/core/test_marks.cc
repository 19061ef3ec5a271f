// What is not durable about jobs and classes: marks by job, verdicts by class.
#include <doctest/doctest.h>

#include "ctld/core/job_marks.h"
#include "ctld/core/verdicts.h"

using namespace gantry;
using namespace gantry::core;

TEST_CASE("a job without a mark has the default, and a forgotten one again") {
  JobMarks marks;
  CHECK(marks.at(JobId(1'000'000)).told.startable == 0);
  for (const std::uint64_t id : {7u, 255u, 256u, 70'000u}) {
    marks.edit(JobId(id)).told.startable = static_cast<std::uint32_t>(id);
    marks.edit(JobId(id)).timer = Instant{static_cast<std::int64_t>(id)};
  }
  for (const std::uint64_t id : {7u, 255u, 256u, 70'000u}) {
    CHECK(marks.at(JobId(id)).told.startable == id);
    CHECK(marks.at(JobId(id)).timer == Instant{static_cast<std::int64_t>(id)});
  }
  CHECK(marks.at(JobId(8)).told.startable == 0);
  marks.forget(JobId(7));
  marks.forget(JobId(7));
  marks.forget(JobId(9));
  marks.forget(JobId(500'000));
  CHECK(marks.at(JobId(7)).timer == Instant{});
  CHECK(marks.at(JobId(255)).told.startable == 255);  // of the same page, which stays
  marks.forget(JobId(255));
  CHECK(marks.at(JobId(255)).told.startable == 0);
  CHECK(marks.edit(JobId(255)).told.startable == 0);  // of a page that went and came again
  CHECK(marks.at(JobId(256)).told.startable == 256);
}

TEST_CASE("a class has no verdict of the class that had its id before") {
  ClassTable classes;
  Verdicts verdicts;
  sched::ClassKey key;
  key.partition = PartitionId(1);
  const ClassId first = classes.add(key);
  CHECK(verdicts.of(classes, first).of_head.reason == Reason::none);
  verdicts.set(classes, first,
               {JobId(5), {Reason::resources, 1, 2, "x"}, {Reason::priority, 0, 0, {}}});
  CHECK(classes.add(key) == first);
  classes.drop(first);  // one job of it is left
  CHECK(verdicts.of(classes, first).head == JobId(5));
  CHECK(verdicts.of(classes, first).of_rest.reason == Reason::priority);
  classes.drop(first);
  const ClassId second = classes.add(key);  // the very same key: no plan has looked at it yet
  REQUIRE(second == first);
  CHECK(verdicts.of(classes, second).of_head.reason == Reason::none);
  CHECK(verdicts.of(classes, second).head == JobId{});
}
