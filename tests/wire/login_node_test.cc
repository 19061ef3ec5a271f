// How far the real controller trusts nodes that tell who a user is: a test peer has a node's key
// and can claim any user.
#include <doctest/doctest.h>

#include "tests/eventually.h"
#include "tests/wire/asking.h"

namespace gantry {
namespace {

using test::answer;
using test::Controller;
using test::RawDealer;
using test::send;

constexpr std::uint32_t kNobody = 65534, kRoot = 0;

// A controller that knows three nodes: `login` may vouch for users, and is on this machine; `away`
// may do so too, from another address than this machine's; `gpu1` may not.
struct Site {
  net::KeyPair login = net::generate_key_pair(), away = net::generate_key_pair(),
               gpu1 = net::generate_key_pair();
  Controller controller{
      "login_nodes: [login, away], max_user_connections: 8, ",
      "{name: login, cpus: 1, memory: 1G, address: '127.0.0.1:1'}, "
      "{name: away, cpus: 1, memory: 1G, address: '127.0.0.2:1'}, "
      "{name: gpu1, cpus: 1, memory: 1G, address: '127.0.0.1:2'}",
      {{"login", login.public_key}, {"away", away.public_key}, {"gpu1", gpu1.public_key}}};
  Site() { (void)controller.connect(); }
  [[nodiscard]] RawDealer dealer(const net::KeyPair& keys) const {
    return test::dealer(controller, "", keys);
  }
};

template <class Message>
proto::UserRelay relay(std::uint32_t uid, std::uint64_t channel, const Message& message) {
  return {Uid{uid}, channel, static_cast<std::uint16_t>(proto::number_of<Message>), 9,
          codec::encode(message)};
}

proto::SubmitJob small_job() {
  proto::SubmitJob m;
  m.spec.work_dir = "/tmp";
  m.script = "#!/bin/sh\n";
  return m;
}

// What the controller answers to the message of a user that this peer relays.
template <class Message>
proto::RelayReply asked(RawDealer& node, std::uint32_t uid, std::uint64_t channel,
                        const Message& message) {
  REQUIRE(send(node, 0, relay(uid, channel, message)));
  while (const auto got = answer(node)) {
    if (got->type != proto::MessageType::RelayReply) continue;
    const auto reply = *codec::decode<proto::RelayReply>(got->body);
    if (reply.channel == channel && reply.type != proto::kRelayClosed) return reply;
  }
  FAIL("the controller does not answer");
  return {};
}

std::string refusal(const proto::RelayReply& reply) {
  if (reply.type != static_cast<std::uint16_t>(proto::MessageType::ErrorReply)) return "taken";
  const auto error = *codec::decode<proto::ErrorReply>(reply.body);
  return fmt::format("{}: {}", name_of(static_cast<ErrorCode>(error.code)), error.message);
}

}  // namespace

TEST_CASE("a login node submits for the user that it names, and the job is this user's") {
  Site site;
  RawDealer node = site.dealer(site.login);
  const auto reply = asked(node, kNobody, 5, small_job());
  REQUIRE(refusal(reply) == "taken");
  const JobId id = codec::decode<proto::SubmitReply>(reply.body)->job;
  proto::ShowJob show;
  show.job = {id, {}};
  const auto row = [&] {
    const auto shown = asked(node, kNobody, 5, show);
    return codec::decode<proto::ShowJobReply>(shown.body)->jobs.at(0).row;
  };
  CHECK(row().user == "nobody");
  // Another user on another connection does not cancel it, and an operator does.
  proto::CancelJobs cancel;
  cancel.filter.jobs.push_back({id, {}});
  (void)asked(node, 1, 6, cancel);
  CHECK(row().phase == Phase::queued);
  CHECK(refusal(asked(node, kRoot, 7, cancel)) == "taken");
  CHECK(row().phase == Phase::ended);
  CHECK(refusal(asked(node, 4'000'000'000, 8, small_job())).starts_with("unauthenticated"));
}

TEST_CASE("the key of a compute node does not say who a user is") {
  Site site;
  RawDealer node = site.dealer(site.gpu1);
  for (const std::uint32_t uid : {kNobody, kRoot})
    CHECK(refusal(asked(node, uid, 5, small_job())) ==
          "unauthenticated: node gpu1 does not say who a user is (controller.login_nodes): prove "
          "it yourself");
  // It still may not after it has registered, and neither may a key that is no node's.
  REQUIRE(send(node, 0, test::registration("gpu1")));
  CHECK(refusal(asked(node, kNobody, 6, small_job())).starts_with("unauthenticated"));
  RawDealer stranger = test::dealer(site.controller);
  REQUIRE(send(stranger, 3, relay(kNobody, 5, small_job())));
  CHECK(test::refusal(answer(stranger)).code ==
        static_cast<std::uint16_t>(ErrorCode::unauthenticated));
  RawDealer user = test::dealer(site.controller);
  test::authenticate(user, site.controller.root());
  REQUIRE(send(user, 3, relay(kNobody, 5, small_job())));
  CHECK(test::refusal(answer(user)).code ==
        static_cast<std::uint16_t>(ErrorCode::permission_denied));
}

TEST_CASE("the key of a login node is of no use on another machine") {
  Site site;
  RawDealer node = site.dealer(site.away);
  CHECK(refusal(asked(node, kNobody, 5, small_job())) ==
        "unauthenticated: 127.0.0.1 shows the key of login node away but is not its address");
}

TEST_CASE("a connection has one user, and another node's messages do not reach it") {
  Site site;
  RawDealer node = site.dealer(site.login);
  CHECK(refusal(asked(node, kNobody, 5, small_job())) == "taken");
  CHECK(refusal(asked(node, 1, 5, small_job())) ==
        "unauthenticated: a connection has one user for as long as it lasts");
  // The refusal has ended the connection, so its number is free again.
  CHECK(refusal(asked(node, 1, 5, small_job())) == "taken");
  RawDealer other = site.dealer(site.gpu1);
  REQUIRE(send(other, 0, proto::UsersGone{{5}, true}));
  CHECK(refusal(asked(node, 1, 5, small_job())) == "taken");
}

TEST_CASE("a login node's word is not enough for what lasts, nor for a token") {
  Site site;
  RawDealer node = site.dealer(site.login);
  proto::RegisterKey key;
  key.user = "nobody";
  CHECK(refusal(asked(node, kNobody, 5, key)).starts_with("unauthenticated: a login node's word"));
  CHECK(refusal(asked(node, kRoot, 6, proto::MakeToken{})).starts_with("unauthenticated"));
  CHECK(refusal(asked(node, kRoot, 6, proto::EnrollNode{})).starts_with("unauthenticated"));
  CHECK(refusal(asked(node, kRoot, 6, proto::ApplyTenancy{})).starts_with("unauthenticated"));
  // Credentials are no messages for this way, and neither are those of nodes.
  const auto shown = refusal(asked(node, kNobody, 7, proto::Authenticate{}));
  CHECK_MESSAGE(shown != "taken", shown);
  CHECK(
      refusal(asked(node, kRoot, 8, test::registration("gpu1"))).starts_with("permission_denied"));
  // The connection is as it was.
  CHECK(refusal(asked(node, kNobody, 7, small_job())) == "taken");
}

TEST_CASE("a user's connections by a login node are counted, and end with the node's own") {
  Site site;
  {
    RawDealer node = site.dealer(site.login);
    for (std::uint64_t channel = 1; channel <= 8; ++channel)
      REQUIRE(refusal(asked(node, kNobody, channel, small_job())) == "taken");
    CHECK(refusal(asked(node, kNobody, 9, small_job())).starts_with("too_many"));
    REQUIRE(send(node, 0, proto::UsersGone{{3}, true}));
    const auto told = answer(node);
    REQUIRE(told);
    const auto closed = *codec::decode<proto::RelayReply>(told->body);
    CHECK(closed.channel == 3);
    CHECK(closed.type == proto::kRelayClosed);
    CHECK(refusal(asked(node, kNobody, 9, small_job())) == "taken");
  }
  RawDealer again = site.dealer(site.login);
  // The controller tells nobody when it has seen a connection end.
  CHECK(eventually([&] { return refusal(asked(again, kNobody, 20, small_job())) == "taken"; }));
}

}  // namespace gantry
