// Sessions, limits of users, and which tokens may be made: what the controller decides about those
// who talk to it, before anything reaches its core.
#include <doctest/doctest.h>

#include "ctld/rpc/refusals.h"
#include "ctld/rpc/sessions.h"
#include "ctld/rpc/token_rules.h"
#include "ctld/rpc/user_limits.h"

namespace gantry::rpc {
namespace {

constexpr Instant kStart{1'000'000'000'000};

TEST_CASE("sessions: one a connection, found by either name, idle ones make room") {
  SessionTable table(100, 2);
  std::optional<core::ConnectionId> dropped;
  const net::PublicKey key = net::generate_key_pair().public_key;
  const auto first = table.of_peer(net::PeerId{1}, key, dropped).id;
  CHECK(first.value() == 100);
  const auto second = table.of_peer(net::PeerId{2}, key, dropped).id;
  CHECK(first != second);
  table.find(first)->identity = core::Identity{};
  CHECK_FALSE(table.find(second)->identity);  // the same key, and another connection
  CHECK(table.of_peer(net::PeerId{1}, key, dropped).id == first);
  CHECK_FALSE(dropped);
  (void)table.of_peer(net::PeerId{3}, key, dropped);
  REQUIRE(dropped == second);
  table.drop(*dropped);
  CHECK(table.find_peer(net::PeerId{2}) == nullptr);
  table.drop(first);
  CHECK(table.find(first) == nullptr);
  CHECK(table.of_peer(net::PeerId{1}, key, dropped).id.value() == 103);  // a new one, of nobody
}

TEST_CASE("limits: ten seconds' worth at once, then as many as a second has") {
  UserLimits limits({.connections = 2, .requests_per_second = 5});
  const Uid alice{1000};
  int taken = 0;
  while (limits.requested(alice, "alice", kStart)) ++taken;
  CHECK(taken == 50);
  const auto refused = limits.requested(alice, "alice", kStart);
  CHECK(refused.error().code == ErrorCode::too_many);
  CHECK(may_retry(refused.error().code));
  CHECK(limits.requested(Uid{1001}, "bob", kStart));  // has a bucket of his own
  taken = 0;
  while (limits.requested(alice, "alice", kStart + seconds(2))) ++taken;
  CHECK(taken == 10);
  CHECK_FALSE(limits.requested(alice, "alice", kStart));  // a clock that goes back gives nothing
  CHECK(limits.connected(alice, "alice"));
  CHECK(limits.connected(alice, "alice"));
  CHECK(limits.connected(alice, "alice").error().code == ErrorCode::too_many);
  limits.disconnected(alice);
  CHECK(limits.connected(alice, "alice"));
}

TEST_CASE("limits: nobody's bucket is kept for ever, and 0 is no limit") {
  UserLimits limits({.connections = 0, .requests_per_second = 1});
  for (std::uint32_t round = 0; round < 3; ++round)
    for (std::uint32_t i = 0; i < 5'000; ++i)
      CHECK(limits.requested(Uid{i}, "u", kStart + hours(round)));
  UserLimits none({});
  for (int i = 0; i < 5'000; ++i) {
    CHECK(none.requested(Uid{1}, "u", kStart));
    CHECK(none.connected(Uid{1}, "u"));
  }
}

TEST_CASE("limits: a request costs what it takes the loop, and no more than ten seconds") {
  // Each takes 10 ms of the loop, so that 100 per second would be all of it.
  const auto served_in = [](UserLimits& limits, Duration each, Duration span) {
    std::int64_t served = 0;
    for (Instant now = kStart; now < kStart + span; now = now + milliseconds(1)) {
      if (!limits.requested(Uid{1000}, "alice", now)) continue;
      limits.took(Uid{1000}, each);
      ++served;
    }
    return served;
  };
  UserLimits limits({.connections = 0, .requests_per_second = 1'000});
  const std::int64_t served = served_in(limits, milliseconds(10), minutes(10));
  CHECK(served >= 600 * 100 / kLoopShare);        // its share of the time
  CHECK(served <= 600 * 100 / kLoopShare + 260);  // and ten seconds' worth at once
  const auto refused = limits.requested(Uid{1000}, "alice", kStart + minutes(10));
  REQUIRE_FALSE(refused);
  CHECK(may_retry(refused.error().code));
  CHECK(refused.error().message ==
        "the requests of alice take more than one part in 4 of the controller's time "
        "(controller.max_user_requests): try again later");
  CHECK(limits.requested(Uid{1001}, "bob", kStart + minutes(10)));

  // Cheap ones are counted, as ever: a tenth of a millisecond each, all of 1,000 a second.
  UserLimits cheap({.connections = 0, .requests_per_second = 1'000});
  CHECK(served_in(cheap, microseconds(100), minutes(1)) == 60'000);

  // However long one took.
  UserLimits long_one({.connections = 0, .requests_per_second = 1'000});
  REQUIRE(long_one.requested(Uid{1000}, "alice", kStart));
  long_one.took(Uid{1000}, hours(1));
  CHECK_FALSE(long_one.requested(Uid{1000}, "alice", kStart + seconds(kBurstSeconds)));
  CHECK(long_one.requested(Uid{1000}, "alice", kStart + seconds(kBurstSeconds) + milliseconds(1)));
}

TEST_CASE("limits: where there are too many connections, users who have few get theirs") {
  UserLimits limits({.connections = 1'024, .requests_per_second = 0});
  for (std::uint32_t i = 0; i < kFairConnections; ++i)
    CHECK(limits.connected(Uid{1000}, "alice", true));
  CHECK(limits.connected(Uid{1000}, "alice", true).error().code == ErrorCode::too_many);
  CHECK(limits.connected(Uid{1000}, "alice", false));
  CHECK(limits.connected(Uid{1001}, "bob", true));
}

TEST_CASE("refusals: of a network that sends wrong credentials for ever few are looked at") {
  Refusals refusals;
  int looked = 0;
  for (int i = 0; i < 10'000 && refusals.may_look("10.0.0.7", kStart); ++i, ++looked)
    refusals.refused("10.0.0.7", kStart);
  CHECK(looked == kRefusalsAtOnce);
  CHECK(refusals.may_look("10.0.0.8", kStart));
  const Instant later = kStart + seconds(1);
  for (looked = 0; refusals.may_look("10.0.0.7", later); ++looked)
    refusals.refused("10.0.0.7", later);
  CHECK(looked == kRefusalsPerSecond);
  for (int i = 0; i < 20'000; ++i) refusals.refused(std::to_string(i), later);
  CHECK(refusals.may_look("19999", later));
}

TEST_CASE("questions: one user holds a few places of a queue that all share") {
  UserQuestions questions(2);
  CHECK(questions.asked(Uid{1000}, "alice"));
  CHECK(questions.asked(Uid{1000}, "alice"));
  const auto refused = questions.asked(Uid{1000}, "alice");
  REQUIRE_FALSE(refused);
  CHECK(may_retry(refused.error().code));
  CHECK(questions.asked(Uid{1001}, "bob"));
  questions.answered(Uid{1000});
  CHECK(questions.asked(Uid{1000}, "alice"));
}

TEST_CASE("tokens: for oneself, for anybody as an administrator, and never beyond a token") {
  core::Identity alice;
  alice.owner.user = "alice";
  core::Identity root = alice;
  root.owner.user = "root";
  root.role = proto::Role::admin;
  const auto code = [](const core::Identity& who, const proto::MakeToken& asked) {
    const auto made = token_for(who, asked, hours(24), kStart);
    return made ? std::optional<ErrorCode>() : made.error().code;
  };
  CHECK(token_for(alice, {}, hours(24), kStart)->expires == kStart + minutes(30));
  CHECK(token_for(root, {"bob", hours(2)}, hours(24), kStart)->user == "bob");
  CHECK(code(alice, {"bob", {}}) == ErrorCode::permission_denied);
  CHECK(code(alice, {"", hours(25)}) == ErrorCode::invalid_argument);

  for (core::Identity* who : {&alice, &root}) who->token_ends = kStart + minutes(10);
  CHECK(token_for(alice, {}, hours(24), kStart)->expires == kStart + minutes(10));
  CHECK(token_for(alice, {"alice", minutes(10)}, hours(24), kStart));
  CHECK(code(alice, {"", minutes(10) + seconds(1)}) == ErrorCode::permission_denied);
  CHECK(code(root, {"bob", minutes(1)}) == ErrorCode::permission_denied);
  alice.token_ends = kStart;  // has ended in this very moment
  CHECK(code(alice, {}) == ErrorCode::permission_denied);
}

}  // namespace
}  // namespace gantry::rpc
