// What is known of a store's age: the mark beside it, what a node's registration proves, and the
// list of jobs that are newer. The whole is in tests/e2e/old_store_test.py.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "ctld/age/high_water.h"
#include "ctld/age/newer.h"
#include "ctld/age/strangers.h"

using namespace gantry;
using namespace gantry::age;

namespace {

struct Directory {
  Directory() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string path = "/tmp/gantry-age.XXXXXX";
};

proto::NodeRegister registration(std::uint64_t epoch,
                                 std::initializer_list<proto::AttemptKey> attempts = {}) {
  proto::NodeRegister out;
  out.highest_epoch = Epoch(epoch);
  for (const proto::AttemptKey& key : attempts)
    out.attempts.push_back({key, proto::AttemptPhase::running});
  return out;
}

}  // namespace

TEST_CASE("the mark is kept, and a damaged one is said") {
  Directory directory;
  auto none = load_high_water(directory.path);
  REQUIRE(none);
  CHECK_FALSE(none->has_value());
  const HighWater mark{Epoch(7), EventSeq(900), JobId(16'400), Epoch(5), true};
  REQUIRE(save_high_water(directory.path, mark));
  const auto loaded = load_high_water(directory.path);
  REQUIRE(loaded);
  CHECK(*loaded == mark);
  for (const char* damaged : {"", "gantry high-water mark 1\nepoch 7\nevent x\n",
                              "gantry high-water mark 1\nepoch 7\nevents 1\njob 1\naccepted 0\n"}) {
    std::ofstream(high_water_path(directory.path), std::ios::trunc) << damaged;
    const auto read = load_high_water(directory.path);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::malformed);
    CHECK(read.error().message.starts_with(high_water_path(directory.path) + " is damaged: "));
  }
  CHECK(save_high_water("/nowhere", mark).error().code == ErrorCode::io_error);
}

TEST_CASE("a store is behind the mark by its start or by its last event") {
  const HighWater mark{Epoch(7), EventSeq(900), JobId(16'400), Epoch(0), false};
  CHECK(behind(mark, Epoch(7), EventSeq(900)).empty());
  CHECK(behind(mark, Epoch(8), EventSeq(901)).empty());
  CHECK(behind(mark, Epoch(7), EventSeq(899)) ==
        "it ends with event 899, and event 900 has been there");
  CHECK(behind(mark, Epoch(6), EventSeq(950)) ==
        "it is of controller start 6, and start 7 has been there");
  CHECK_FALSE(behind(mark, Epoch(0), EventSeq(0)).empty());  // a new one in its place
}

TEST_CASE("what a node's registration proves") {
  core::State state;
  state.epoch = Epoch(4);
  state.last_job = JobId(20);
  CHECK(newer_than_us(state, registration(3), false).empty());
  CHECK(newer_than_us(state, registration(4), true).empty());
  CHECK(newer_than_us(state, registration(4), false) ==
        "it has heard of controller start 4, and this is start 4 of the store");
  CHECK(newer_than_us(state, registration(5), true) ==
        "it has heard of controller start 5, and this is start 4 of the store");
  // Ids that were given here, of jobs that are forgotten since, prove nothing.
  CHECK(newer_than_us(state, registration(3, {{JobId(20), Attempt(3)}}), false).empty());
  CHECK(newer_than_us(state, registration(3, {{JobId(21), Attempt(1)}}), false) ==
        "it has job 21, and the last job of the store is 20");
  // Nor need the job be there any more.
  proto::NodeRegister told = registration(3);
  told.highest_job = JobId(20);
  CHECK(newer_than_us(state, told, false).empty());
  told.highest_job = JobId(21);
  CHECK(newer_than_us(state, told, false) ==
        "it was once told to start job 21, and the last job of the store is 20");
}

TEST_CASE("strangers are kept until they have ended") {
  Directory directory;
  auto strangers = Strangers::load(directory.path);
  REQUIRE(strangers);
  const proto::AttemptKey a{JobId(12), Attempt(1)};
  const proto::AttemptKey b{JobId(14), Attempt(2)};
  CHECK(*strangers->add("n1", a));
  CHECK_FALSE(*strangers->add("n1", a));
  CHECK(*strangers->add("n1", b));
  CHECK(*strangers->add("n10", a));
  const auto again = Strangers::load(directory.path);
  REQUIRE(again);
  CHECK(again->on("n1") == "12.1 14.2");
  CHECK(again->has("n10", a));
  CHECK_FALSE(again->any_on("n2"));
  CHECK(*strangers->remove("n1", a));
  CHECK_FALSE(*strangers->remove("n1", a));
  CHECK(strangers->any_on("n1"));
  CHECK(*strangers->remove("n1", b));
  CHECK_FALSE(strangers->any_on("n1"));
  std::ofstream(directory.path + "/strangers", std::ios::trunc) << "n1 twelve 1\n";
  CHECK(Strangers::load(directory.path).error().code == ErrorCode::malformed);
}
