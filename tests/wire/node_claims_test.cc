// Some nodes have heard of a later start of the controller than the store of this controller knows.
// Messages that they send before they register must not pass for an answer to this controller,
// because then the claim in their registration would not count.
#include <doctest/doctest.h>

#include "common/codec/codec.h"
#include "common/net/header.h"
#include "common/proto/messages.h"
#include "tests/wire/controller_process.h"
#include "tests/wire/raw_dealer.h"

namespace gantry {
namespace {

using test::Controller;
using test::RawDealer;
constexpr Duration kSoon = seconds(60);
// The first start of a controller with a new store. The nodes here have heard of this start, too.
constexpr Epoch kStart{1};

template <class Message>
void send(RawDealer& peer, const Message& message) {
  const net::HeaderBytes header(
      {proto::kProtocolVersion, static_cast<std::uint16_t>(proto::number_of<Message>), 0});
  REQUIRE(peer.send(header.view(), codec::encode(message)));
}

void register_node(RawDealer& peer, const std::string& name, Epoch heard = kStart) {
  proto::NodeRegister message = test::registration(name);
  message.highest_epoch = heard;
  message.sent = Instant{hours(500'000).us};
  send(peer, message);
}

template <class Message>
Message expect(RawDealer& peer) {
  const auto frames = peer.receive(kSoon);
  REQUIRE(frames);
  const auto header = net::decode_header(frames->at(0));
  REQUIRE(header);
  REQUIRE(header->type == static_cast<std::uint16_t>(proto::number_of<Message>));
  return *codec::decode<Message>(frames->at(1));
}

struct Nodes {
  net::KeyPair one = net::generate_key_pair(), two = net::generate_key_pair();
  Controller controller{"", "n[1-2]", {{"n1", one.public_key}, {"n2", two.public_key}}};
};

}  // namespace

TEST_CASE("reports before the registration do not take the place of a node's claim") {
  const proto::AttemptKey key{JobId(1), Attempt(1)};
  proto::ExitReport exited;
  exited.key = key;
  proto::Heartbeat beat;
  // This session is of the other controller, which has the same epoch.
  beat.session = (kStart.value() << 32) | 1;
  const auto first_words = [&](RawDealer& peer, int which) {
    switch (which) {
      case 0: return send(peer, proto::Started{key, {}});
      case 1: return send(peer, exited);
      case 2: return send(peer, proto::LaunchReady{key});
      case 3: return send(peer, proto::GpuReport{beat.session, {}});
      case 4: return send(peer, proto::Frozen{key, false});
      case 5: return send(peer, proto::Goodbye{beat.session});
      default: return send(peer, beat);
    }
  };
  for (int which = 0; which < 7; ++which) {
    CAPTURE(which);
    Nodes nodes;
    (void)nodes.controller.connect();
    RawDealer one(nodes.controller.address(), nodes.controller.key(), "", nodes.one);
    RawDealer two(nodes.controller.address(), nodes.controller.key(), "", nodes.two);
    for (RawDealer* peer : {&one, &two}) first_words(*peer, which);
    register_node(one, "n1");
    register_node(two, "n2");
    // Two nodes that know more are believed. The controller ends, and so does the connection.
    REQUIRE_FALSE(two.receive(kSoon));
    // The status 65 means that the store is damaged or too old.
    CHECK(nodes.controller.wait_for_end() == 65);
    CHECK(nodes.controller.log().find("is older than what is known of it") != std::string::npos);
  }
}

TEST_CASE("a node from an earlier start is told to register, and makes no claim then") {
  const Nodes nodes;
  (void)nodes.controller.connect();
  RawDealer one(nodes.controller.address(), nodes.controller.key(), "", nodes.one);
  proto::Heartbeat beat;
  beat.session = 1;  // This session is from start 0.
  send(one, beat);
  // The answer does not contain this controller's epoch, so the registration still proves what the
  // node knew.
  CHECK(expect<proto::RegisterAgain>(one).epoch == Epoch(0));
  register_node(one, "n1", Epoch(0));
  CHECK(expect<proto::NodeAccept>(one).stamp.epoch == kStart);
  CHECK(nodes.controller.lives());
}

}  // namespace gantry
