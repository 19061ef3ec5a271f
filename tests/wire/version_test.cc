// A peer of another protocol version, in an authenticated CURVE session with the real controller.
// The peer is told both versions, and the controller goes on serving others.
#include <doctest/doctest.h>

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/net/client.h"
#include "common/net/header.h"
#include "common/proto/messages.h"
#include "tests/wire/controller_process.h"

namespace gantry {
namespace {

constexpr Duration kSoon = seconds(60);
using test::Controller;

struct Answer {
  net::MessageHeader header;
  Bytes body;
};

template <class Message>
Answer ask(net::Client& client, std::uint16_t protocol, std::uint64_t request,
           const Message& message) {
  const net::HeaderBytes header(
      {protocol, static_cast<std::uint16_t>(proto::number_of<Message>), request});
  REQUIRE(client.send(header.view(), codec::encode(message), kSoon));
  auto frames = client.receive(kSoon);
  REQUIRE_MESSAGE(frames, frames.error().message);
  REQUIRE(frames->size() == net::kFrames);
  const auto decoded = net::decode_header((*frames)[0]);
  REQUIRE(decoded);
  return {*decoded, std::move((*frames)[1])};
}

void check_refused(const Answer& answer, std::uint64_t request, std::uint16_t theirs) {
  CHECK(answer.header.protocol == proto::kProtocolVersion);
  CHECK(answer.header.request == request);
  REQUIRE(answer.header.type == static_cast<std::uint16_t>(proto::MessageType::ErrorReply));
  const auto error = codec::decode<proto::ErrorReply>(answer.body);
  REQUIRE(error);
  CHECK(error->code == static_cast<std::uint16_t>(ErrorCode::version_mismatch));
  CHECK(error->message ==
        fmt::format("you speak protocol {}, this controller {} to {}; install matching versions",
                    theirs, proto::kOldestProtocol, proto::kProtocolVersion));
}

void check_served(net::Client& client, std::uint64_t request) {
  const auto hello = ask(client, proto::kProtocolVersion, request, proto::Hello{});
  REQUIRE(hello.header.type == static_cast<std::uint16_t>(proto::MessageType::HelloReply));
  CHECK(codec::decode<proto::HelloReply>(hello.body)->protocol == proto::kProtocolVersion);
  const auto ping = ask(client, proto::kProtocolVersion, request + 1, proto::Ping{});
  CHECK(ping.header.type == static_cast<std::uint16_t>(proto::MessageType::PingReply));
}

}  // namespace

TEST_CASE("a peer of another protocol version is told so, and the controller goes on") {
  const Controller controller;
  // This client is served before and after the peer of another version.
  net::Client other = controller.connect();
  check_served(other, 1);
  for (const std::uint16_t theirs : {0, 2, 99, 65535}) {
    net::Client client = controller.connect();
    // The header has another version. The controller reads nothing else, since it may be unable to
    // read a newer Hello.
    check_refused(ask(client, theirs, 7, proto::Hello{theirs, "old"}), 7, theirs);
    check_refused(ask(client, theirs, 8, proto::Ping{}), 8, theirs);
    check_refused(ask(client, theirs, 9, proto::CancelJobs{}), 9, theirs);
    // Only the Hello has another version than the header.
    check_refused(ask(client, proto::kProtocolVersion, 10, proto::Hello{theirs, "old"}), 10,
                  theirs);
    check_served(client, 11);  // The session still works.
  }
  check_served(other, 3);
  CHECK(controller.lives());
}

}  // namespace gantry
