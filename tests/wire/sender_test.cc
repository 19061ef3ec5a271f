// Every message from every kind of connection at the real controller. A message that the sender may
// not send is refused with the sentence of check_sender(), and the controller goes on. A second
// test does this for rights that a tenant's document gives.
#include <doctest/doctest.h>

#include <fmt/core.h>

#include "common/proto/message_table.h"
#include "tests/wire/asking.h"

namespace gantry {
namespace {

using proto::MessageType;
using proto::Place;
using proto::Sender;
using test::answer;
using test::authenticate;
using test::Controller;
using test::dealer;
using test::RawDealer;
using test::refusal;
using test::send;

struct Sample {
  std::uint16_t number = 0;
  Bytes body;  // the encoded message, with no field set
};
std::vector<Sample> samples() {
  return {
#define X(type, number, ...) {number, codec::encode(proto::type{})},
#include "common/proto/messages.def"
#undef X
  };
}

// The messages that the controller has to refuse to this sender.
std::vector<Sample> wrong_of(Sender sender) {
  std::vector<Sample> out = samples();
  std::erase_if(out, [&](const Sample& s) {
    return proto::check_sender(s.number, sender, Place::controller).has_value();
  });
  return out;
}

std::string sentence(const Sample& s, Sender sender) {
  return proto::check_sender(s.number, sender, Place::controller).error().message;
}

void expect_refusals(RawDealer& peer, Sender sender) {
  for (const Sample& s : wrong_of(sender)) {
    CAPTURE(proto::message_name(s.number));
    const net::HeaderBytes header({proto::kProtocolVersion, s.number, 7});
    REQUIRE(peer.send(header.view(), s.body));
    CHECK(refusal(answer(peer)).message == sentence(s, sender));
  }
}

// Waits for the next message of this type from the controller to the node.
template <class Message>
Message ordered(RawDealer& node) {
  while (true) {
    const auto got = answer(node);
    REQUIRE(got);
    if (got->type == proto::number_of<Message>) return *codec::decode<Message>(got->body);
  }
}

// Enrols and registers a node that this test plays, the only node of the controller.
RawDealer enrolled_node(const Controller& c, RawDealer& root) {
  const net::KeyPair keys = net::generate_key_pair();
  REQUIRE(send(root, 10, proto::EnrollNode{"n1", net::to_z85(keys.public_key)}));
  REQUIRE(answer(root)->type == MessageType::Ok);
  RawDealer node = dealer(c, "", keys);
  proto::NodeRegister m;
  m.node = "n1";
  m.protocol = proto::kProtocolVersion;
  m.boot_id = "boot";
  m.cpus = {0};
  m.memory = std::int64_t{1} << 30;
  REQUIRE(send(node, 0, m));
  (void)ordered<proto::NodeAccept>(node);
  return node;
}

// Submits a job of the user `nobody`, and waits until the node is told to start it.
proto::AttemptKey launched_job(const Controller& c, RawDealer& node) {
  RawDealer user = dealer(c);
  authenticate(user, c.nobody());
  proto::SubmitJob submit;
  submit.spec.name = "job";
  submit.spec.work_dir = "/";
  submit.script = "#!/bin/sh\n";
  REQUIRE(send(user, 2, submit));
  const auto submitted = answer(user);
  REQUIRE(submitted);
  REQUIRE_MESSAGE(submitted->type == MessageType::SubmitReply, refusal(submitted).message);
  return ordered<proto::Launch>(node).key;
}

}  // namespace

TEST_CASE("a message from the wrong kind of connection is refused, even to an administrator") {
  const Controller c("admins: [root], ");
  (void)c.connect();
  for (const Sample& s : wrong_of(Sender::stranger)) {
    CAPTURE(proto::message_name(s.number));
    RawDealer stranger = dealer(c);
    REQUIRE(stranger.send(net::HeaderBytes({proto::kProtocolVersion, s.number, 7}).view(), s.body));
    const auto refused = refusal(answer(stranger));
    CHECK(refused.code == static_cast<std::uint16_t>(ErrorCode::unauthenticated));
    CHECK(refused.message == "authenticate first");
  }
  RawDealer root = dealer(c);
  authenticate(root, c.root());
  expect_refusals(root, Sender::client);
  RawDealer user = dealer(c);
  authenticate(user, c.nobody());
  expect_refusals(user, Sender::client);

  // A node that sends messages of clients gets no answer, but the log has them.
  RawDealer node = enrolled_node(c, root);
  for (const Sample& s : wrong_of(Sender::node))
    REQUIRE(node.send(net::HeaderBytes({proto::kProtocolVersion, s.number, 7}).view(), s.body));
  const proto::AttemptKey key = launched_job(c, node);
  CHECK(c.log().find("a node may not send it to the controller") != std::string::npos);

  // The messages of a job come through its node, and the refusals go back the same way.
  for (const Sample& s : wrong_of(Sender::job)) {
    CAPTURE(proto::message_name(s.number));
    REQUIRE(send(node, 0, proto::NodeRelay{key, 1, s.number, 7, s.body}));
    const auto reply = ordered<proto::RelayReply>(node);
    REQUIRE(reply.type == static_cast<std::uint16_t>(MessageType::ErrorReply));
    CHECK(codec::decode<proto::ErrorReply>(reply.body)->message == sentence(s, Sender::job));
  }
  REQUIRE(send(node, 0, proto::NodeRelay{key, 1, 8'000, 7, {}}));
  CHECK(codec::decode<proto::ErrorReply>(ordered<proto::RelayReply>(node).body)->message ==
        "message 8000 is unknown here");
  CHECK(c.lives());
}

TEST_CASE("a user whom a document makes an administrator may reconfigure and make tokens") {
  const Controller c;
  (void)c.connect();
  RawDealer user = dealer(c);
  authenticate(user, c.nobody());
  REQUIRE(send(user, 2, proto::Reconfigure{}));
  CHECK(refusal(answer(user)).message == "nobody is no administrator of this cluster");
  REQUIRE(send(user, 3, proto::MakeToken{"root", {}}));
  CHECK(refusal(answer(user)).message == "nobody is no administrator: a token is for oneself");

  RawDealer root = dealer(c);
  authenticate(root, c.root());
  tenancy::Tenant ops;
  ops.name = "ops";
  ops.grants.push_back({tenancy::Role::admin, "nobody", {}});
  proto::ApplyTenancy apply;
  apply.documents = {ops};
  REQUIRE(send(root, 2, apply));
  REQUIRE(answer(root)->type == MessageType::TenancyPlanned);

  REQUIRE(send(user, 4, proto::MakeToken{"root", {}}));
  CHECK(answer(user)->type == MessageType::TokenMade);
  REQUIRE(send(user, 5, proto::PlanMigModes{}));
  CHECK(answer(user)->type == MessageType::MigModePlan);
  REQUIRE(send(user, 6, proto::Reconfigure{}));
  CHECK(answer(user)->type == MessageType::Ok);
}

}  // namespace gantry
