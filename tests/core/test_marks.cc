// Tests what is kept in memory only: marks of jobs, and verdicts of classes of jobs.
#include <doctest/doctest.h>

#include "ctld/core/job_marks.h"
#include "ctld/core/verdicts.h"
#include "ctld/sched/change.h"

using namespace gantry;
using namespace gantry::core;

TEST_CASE("a job without a mark has the default mark, also after its mark was forgotten") {
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
  // job 255 has its mark in the same page as job 7, and the page stays
  CHECK(marks.at(JobId(255)).told.startable == 255);
  marks.forget(JobId(255));
  CHECK(marks.at(JobId(255)).told.startable == 0);
  CHECK(marks.edit(JobId(255)).told.startable == 0);  // the page was removed and is made again
  CHECK(marks.at(JobId(256)).told.startable == 256);
}

TEST_CASE("a new class does not inherit the verdict of an earlier class with the same id") {
  ClassTable classes;
  Verdicts verdicts;
  sched::ClassKey key;
  key.partition = PartitionId(1);
  const ClassId first = classes.add(key);
  CHECK(verdicts.of(classes, first).of_head.reason == Reason::none);
  verdicts.set(classes, first,
               {JobId(5), {Reason::resources, 1, 2, "x"}, {Reason::priority, 0, 0, {}}});
  CHECK(classes.add(key) == first);
  classes.drop(first);  // one job of the class is left
  CHECK(verdicts.of(classes, first).head == JobId(5));
  CHECK(verdicts.of(classes, first).of_rest.reason == Reason::priority);
  classes.drop(first);
  // the class has the same key again, but no plan has looked at it yet
  const ClassId second = classes.add(key);
  REQUIRE(second == first);
  CHECK(verdicts.of(classes, second).of_head.reason == Reason::none);
  CHECK(verdicts.of(classes, second).head == JobId{});
}
