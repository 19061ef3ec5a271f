// scontrol: flags of reservations, as Slurm has them.
#include <doctest/doctest.h>

#include <cstdlib>

#include "common/proto/reservation.h"
#include "tests/cli/fake_controller.h"
#include "tests/cli/samples.h"

using namespace gantry;
using namespace gantry::test;
using proto::NodeReplacement;

namespace {

proto::ReservationRow row_of_course() {
  proto::ReservationRow row;
  row.name = "course";
  row.node_list = "n[1-2]";
  row.nodes = 2;
  row.start = Instant{9'000'000'000'000'000};
  row.end = row.start + hours(2);
  row.users = {"alice"};
  row.every = Recurrence::daily;
  row.zone = "CET-1CEST,M3.5.0,M10.5.0/3";
  row.by_count = true;
  row.replacement = NodeReplacement::down;
  row.purge_after = minutes(10);
  row.partition = "debug";
  row.constraint = "ib";
  return row;
}

struct CourseFixture {
  FakeController fake;
  CourseFixture() {
    proto::ListReservationsReply reply;
    reply.reservations = {row_of_course()};
    fake.answer<proto::ListReservations>(reply);
    fake.answer<proto::MakeReservation>(reply);
  }
  Run scontrol(std::vector<std::string> words) {
    words.insert(words.begin(), "slurm/scontrol");
    return fake.run(words);
  }
  proto::MakeReservation made(const std::string& flags) {
    const Run run = scontrol({"create", "reservation", "StartTime=now", "Duration=60", "NodeCnt=2",
                              "Users=alice", "Flags=" + flags});
    CAPTURE(run.err);
    CHECK(run.status == 0);
    return fake.last<proto::MakeReservation>();
  }
  proto::MakeReservation updated(const std::string& word) {
    const Run run = scontrol({"update", "ReservationName=course", word});
    CAPTURE(run.err);
    CHECK(run.status == 0);
    return fake.last<proto::MakeReservation>();
  }
  std::string refused(const std::string& word) {
    const Run run = scontrol({"create", "reservation", "StartTime=now", "Duration=60", "NodeCnt=2",
                              "Users=alice", word});
    CHECK(run.status == 1);
    return run.err;
  }
};

}  // namespace

TEST_CASE_FIXTURE(CourseFixture,
                  "flags of a new reservation say when it comes again, and what is replaced") {
  proto::MakeReservation m = made("WEEKDAY,REPLACE");
  CHECK(m.every == Recurrence::weekdays);
  CHECK(m.zone == "UTC0");  // the time zone of the tests
  CHECK(m.replacement == NodeReplacement::used);
  CHECK_FALSE(m.purge_after);
  m = made("hourly,replace_down,purge_comp");
  CHECK(m.every == Recurrence::hourly);
  CHECK(m.replacement == NodeReplacement::down);
  CHECK(m.purge_after == minutes(5));
  CHECK(made("PURGE_COMP=1:30:00").purge_after == minutes(90));
  CHECK(made("WEEKEND").every == Recurrence::weekends);
  CHECK(made("WEEKLY,MAINT").every == Recurrence::weekly);
  CHECK(made("DAILY,IGNORE_JOBS").ignore_jobs);
}

TEST_CASE_FIXTURE(CourseFixture, "an update keeps the flags that it does not name") {
  proto::MakeReservation m = updated("Users+=bob");
  CHECK(m.every == Recurrence::daily);
  CHECK(m.zone == "CET-1CEST,M3.5.0,M10.5.0/3");
  CHECK(m.replacement == NodeReplacement::down);
  CHECK(m.purge_after == minutes(10));
  CHECK_FALSE(m.skip);
  m = updated("Flags+=SKIP");
  CHECK(m.skip);
  CHECK(m.every == Recurrence::daily);
  m = updated("Flags-=DAILY,PURGE_COMP");
  CHECK(m.every == Recurrence::once);
  CHECK_FALSE(m.purge_after);
  CHECK(m.replacement == NodeReplacement::down);
  m = updated("Flags=WEEKLY");
  CHECK(m.every == Recurrence::weekly);
  CHECK(m.replacement == NodeReplacement::none);
  CHECK_FALSE(m.purge_after);
  CHECK(updated("Flags+=STATIC_ALLOC").replacement == NodeReplacement::none);
}

TEST_CASE_FIXTURE(CourseFixture,
                  "flags and keys that reservations do not have are refused by name") {
  CHECK(refused("Flags=FLEX").find("there is no flag FLEX here") != std::string::npos);
  CHECK(refused("Flags=ANY_NODES").find("ANY_NODES") != std::string::npos);
  CHECK(refused("Flags=SKIP").find("there is no flag SKIP here") != std::string::npos);
  CHECK(refused("Flags=DAILY,WEEKLY").find("comes again by one of") != std::string::npos);
  CHECK(refused("Flags=PURGE_COMP=never").find("never") != std::string::npos);
  CHECK(refused("CoreCnt=4").find("nodes are reserved whole here") != std::string::npos);
}

TEST_CASE_FIXTURE(CourseFixture, "show has the flags in Slurm's order") {
  const Run run = scontrol({"show", "-o", "reservation", "course"});
  CHECK(run.out.find("Features=ib PartitionName=debug "
                     "Flags=DAILY,REPLACE_DOWN,PURGE_COMP=00:10:00 ") != std::string::npos);
}
