// Sessions, limits of users, and the making of tokens. The controller decides these before a
// message reaches its core.
#include <doctest/doctest.h>

#include "ctld/rpc/login_nodes.h"
#include "ctld/rpc/refusals.h"
#include "ctld/rpc/sessions.h"
#include "ctld/rpc/token_rules.h"
#include "ctld/rpc/user_limits.h"

namespace gantry::rpc {
namespace {

constexpr Instant kStart{1'000'000'000'000};

TEST_CASE("each connection has one session, and an idle session makes room for a new one") {
  SessionTable table(100, 2);
  std::optional<core::ConnectionId> dropped;
  const net::PublicKey key = net::generate_key_pair().public_key;
  const auto first = table.of_peer(net::PeerId{1}, key, dropped).id;
  CHECK(first.value() == 100);
  const auto second = table.of_peer(net::PeerId{2}, key, dropped).id;
  CHECK(first != second);
  table.find(first)->identity = core::Identity{};
  // Another connection with the same key is another session.
  CHECK_FALSE(table.find(second)->identity);
  CHECK(table.of_peer(net::PeerId{1}, key, dropped).id == first);
  CHECK_FALSE(dropped);
  (void)table.of_peer(net::PeerId{3}, key, dropped);
  REQUIRE(dropped == second);
  table.drop(*dropped);
  CHECK(table.find_peer(net::PeerId{2}) == nullptr);
  table.drop(first);
  CHECK(table.find(first) == nullptr);
  // This is a new session that has no user yet.
  CHECK(table.of_peer(net::PeerId{1}, key, dropped).id.value() == 103);
}

TEST_CASE("a login node is believed from its own address only, and on this machine of everybody") {
  LoginNodes nodes;
  nodes.add("login1", {"10.0.0.7", "fd00::7"});
  nodes.add("here", {"127.0.0.1"});
  CHECK(nodes.check("login1", "10.0.0.7") == Word::of_users);
  CHECK(nodes.check("login1", "fd00::7") == Word::of_users);
  CHECK(nodes.check("here", "127.0.0.1") == Word::of_everybody);
  // A stolen key on another machine, also on the controller's.
  CHECK(nodes.check("login1", "10.0.0.8").error().message ==
        "10.0.0.8 shows the key of login node login1 but is not its address");
  CHECK(nodes.check("login1", "127.0.0.1").error().code == ErrorCode::unauthenticated);
  CHECK(nodes.check("login1", "").error().code == ErrorCode::unauthenticated);
  // The key of a node that is not named.
  CHECK(nodes.check("gpu1", "10.0.0.7").error().message ==
        "node gpu1 does not say who a user is (controller.login_nodes): prove it yourself");
  CHECK(LoginNodes().check("", "").error().code == ErrorCode::unauthenticated);
}

TEST_CASE("the addresses of login nodes are looked up, and a node without one is not believed") {
  Config config;
  const auto add = [&](const std::string& name, const std::string& address) {
    NodeConfig& node = config.nodes.emplace_back();
    node.name = name;
    node.address = address;
  };
  add("a", "127.0.0.1:6871");
  add("b", "no-such-host.invalid:6871");
  add("c", "[::1]:6871");
  config.controller.login_nodes = {"a", "b", "c"};
  std::vector<std::string> problems;
  const LoginNodes nodes = LoginNodes::from(config, problems);
  CHECK(nodes.check("a", "127.0.0.1") == Word::of_everybody);
  CHECK(nodes.check("c", "::1") == Word::of_everybody);
  CHECK_FALSE(nodes.check("b", "127.0.0.1"));
  REQUIRE(problems.size() == 1);
  CHECK(problems[0] == "login node b is not believed: no-such-host.invalid has no address");
}

TEST_CASE("the sessions that a node relays are found by the node's own connection") {
  SessionTable table(1);
  std::optional<core::ConnectionId> dropped;
  std::vector<core::ConnectionId> ids;
  for (const std::uint64_t channel : {7, 8, 9}) {
    Session& session = table.of_channel("a", channel, dropped);
    session.peer = net::PeerId{channel == 9 ? 21U : 20U};
    ids.push_back(session.id);
  }
  const net::PublicKey key = net::generate_key_pair().public_key;
  (void)table.of_peer(net::PeerId{20}, key, dropped);
  CHECK(table.relayed_over(net::PeerId{20}) == std::vector{ids[0], ids[1]});
  CHECK(table.relayed_over(net::PeerId{22}).empty());
}

TEST_CASE("a user may make ten seconds' worth of requests at once, then the rate per second") {
  UserLimits limits({.connections = 2, .requests_per_second = 5});
  const Uid alice{1000};
  int taken = 0;
  while (limits.requested(alice, "alice", kStart)) ++taken;
  CHECK(taken == 50);
  const auto refused = limits.requested(alice, "alice", kStart);
  CHECK(refused.error().code == ErrorCode::too_many);
  CHECK(may_retry(refused.error().code));
  CHECK(limits.requested(Uid{1001}, "bob", kStart));  // Bob has his own limit.
  taken = 0;
  while (limits.requested(alice, "alice", kStart + seconds(2))) ++taken;
  CHECK(taken == 10);
  // A clock that goes back does not allow more.
  CHECK_FALSE(limits.requested(alice, "alice", kStart));
  CHECK(limits.connected(alice, "alice"));
  CHECK(limits.connected(alice, "alice"));
  CHECK(limits.connected(alice, "alice").error().code == ErrorCode::too_many);
  limits.disconnected(alice);
  CHECK(limits.connected(alice, "alice"));
}

TEST_CASE("limits of users are not kept for ever, and 0 means no limit") {
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

TEST_CASE("a request counts with the time that it takes the loop, up to ten seconds") {
  // Each request takes 10 ms of the loop, so 100 per second would take all of its time.
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
  CHECK(served >= 600 * 100 / kLoopShare);  // The user gets a share of the loop's time.
  // In addition, ten seconds' worth may come at once.
  CHECK(served <= 600 * 100 / kLoopShare + 260);
  const auto refused = limits.requested(Uid{1000}, "alice", kStart + minutes(10));
  REQUIRE_FALSE(refused);
  CHECK(may_retry(refused.error().code));
  CHECK(refused.error().message ==
        "the requests of alice take more than one part in 4 of the controller's time "
        "(controller.max_user_requests): try again later");
  CHECK(limits.requested(Uid{1001}, "bob", kStart + minutes(10)));

  // Cheap requests are limited by number: each takes a tenth of a millisecond, and all 1,000 a
  // second are served.
  UserLimits cheap({.connections = 0, .requests_per_second = 1'000});
  CHECK(served_in(cheap, microseconds(100), minutes(1)) == 60'000);

  // However long one request took, the user waits for no more than ten seconds.
  UserLimits long_one({.connections = 0, .requests_per_second = 1'000});
  REQUIRE(long_one.requested(Uid{1000}, "alice", kStart));
  long_one.took(Uid{1000}, hours(1));
  CHECK_FALSE(long_one.requested(Uid{1000}, "alice", kStart + seconds(kBurstSeconds)));
  CHECK(long_one.requested(Uid{1000}, "alice", kStart + seconds(kBurstSeconds) + milliseconds(1)));
}

TEST_CASE("with too many connections, only users who have few get another one") {
  UserLimits limits({.connections = 1'024, .requests_per_second = 0});
  for (std::uint32_t i = 0; i < kFairConnections; ++i)
    CHECK(limits.connected(Uid{1000}, "alice", true));
  CHECK(limits.connected(Uid{1000}, "alice", true).error().code == ErrorCode::too_many);
  CHECK(limits.connected(Uid{1000}, "alice", false));
  CHECK(limits.connected(Uid{1001}, "bob", true));
}

TEST_CASE("a network that sends wrong credentials has only a few of them checked") {
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

TEST_CASE("one user can have only a few questions waiting in a shared queue") {
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

TEST_CASE("a user makes own tokens, an administrator any, and none outlives the token in use") {
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
  alice.token_ends = kStart;  // The token ends at this very moment.
  CHECK(code(alice, {}) == ErrorCode::permission_denied);
}

}  // namespace
}  // namespace gantry::rpc
