// Strangers at the real controller. A stranger can open a connection, make the handshake, and claim
// any routing id. It gets no other session's identity, no other session's answers, and it cannot
// end the controller.
#include <doctest/doctest.h>

#include <fmt/core.h>
#include <zmq.h>

#include <vector>

#include "common/proto/messages.h"
#include "tests/eventually.h"
#include "tests/skip.h"
#include "tests/wire/asking.h"

namespace gantry {
namespace {

using test::answer;
using test::authenticate;
using test::Controller;
using test::credential;
using test::dealer;
using test::RawDealer;
using test::refusal;
using test::send;

// The routing ids that the first ROUTER sockets of a fresh process give to their first peers.
// libzmq counts up from each of them. They are the same in every process, so anyone can find them
// out.
std::vector<std::uint32_t> first_routing_ids() {
  std::vector<std::uint32_t> first;
  void* context = zmq_ctx_new();
  for (int i = 0; i < 4; ++i) {
    void* router = zmq_socket(context, ZMQ_ROUTER);
    void* dealer = zmq_socket(context, ZMQ_DEALER);
    const std::string endpoint = "inproc://who" + std::to_string(i);
    REQUIRE(zmq_bind(router, endpoint.c_str()) == 0);
    REQUIRE(zmq_connect(dealer, endpoint.c_str()) == 0);
    REQUIRE(zmq_send(dealer, "x", 1, 0) == 1);
    unsigned char id[16] = {};
    REQUIRE(zmq_recv(router, id, sizeof id, 0) == 5);
    for (void* socket : {router, dealer}) zmq_close(socket);
    first.push_back(std::uint32_t{id[1]} << 24 | std::uint32_t{id[2]} << 16 |
                    std::uint32_t{id[3]} << 8 | id[4]);
  }
  zmq_ctx_term(context);
  return first;
}

// Makes `count` ids from each of these first ids on.
std::vector<std::string> guesses(std::uint32_t count) {
  static const std::vector<std::uint32_t> starts = first_routing_ids();
  std::vector<std::string> ids;
  for (std::uint32_t i = 0; i < count; ++i)
    for (const std::uint32_t start : starts) {
      std::string id(1, '\0');
      for (int shift = 24; shift >= 0; shift -= 8) id += static_cast<char>((start + i) >> shift);
      ids.push_back(std::move(id));
    }
  return ids;
}

}  // namespace

TEST_CASE("a peer with a guessed routing id never gets a token of the administrator") {
  const Controller c;
  (void)c.connect();
  {
    RawDealer root = dealer(c);
    authenticate(root, c.root());
    REQUIRE(send(root, 2, proto::MakeToken{}));
    REQUIRE(answer(root)->type == proto::MessageType::TokenMade);
  }
  for (const std::string& id : guesses(75)) {
    RawDealer thief = dealer(c, id);
    REQUIRE(send(thief, 7, proto::MakeToken{"root", {}}));
    const auto refused = refusal(answer(thief));
    CHECK(refused.code == static_cast<std::uint16_t>(ErrorCode::unauthenticated));
  }
  CHECK(c.lives());
}

TEST_CASE("routing ids that strangers hold in advance end nothing, and no answer goes astray") {
  const Controller c;
  (void)c.connect();
  std::vector<RawDealer> holders;
  for (const std::string& id : guesses(60)) holders.push_back(dealer(c, id));
  for (RawDealer& holder : holders) REQUIRE(send(holder, 1, proto::Ping{}));
  for (int i = 0; i < 30; ++i) {
    RawDealer root = dealer(c);
    authenticate(root, c.root());
    REQUIRE(send(root, 1'000, proto::MakeToken{}));
    const auto reply = answer(root);
    REQUIRE(reply);
    CHECK(reply->request == 1'000);
    CHECK(reply->type == proto::MessageType::TokenMade);
  }
  CHECK(c.lives());
  for (RawDealer& holder : holders) {
    const auto own = answer(holder);
    REQUIRE(own);
    CHECK(own->type == proto::MessageType::PingReply);
    CHECK_FALSE(answer(holder, Duration{}));
  }
}

TEST_CASE("two connections with one key are two sessions") {
  const Controller c;
  (void)c.connect();
  const net::KeyPair keys = net::generate_key_pair();
  RawDealer one = dealer(c, "same", keys);
  authenticate(one, c.root());
  RawDealer two = dealer(c, "same", keys);
  REQUIRE(send(two, 2, proto::MakeToken{}));
  CHECK(refusal(answer(two)).code == static_cast<std::uint16_t>(ErrorCode::unauthenticated));
  REQUIRE(send(one, 3, proto::MakeToken{}));
  CHECK(answer(one)->type == proto::MessageType::TokenMade);
}

TEST_CASE("a stranger without valid credentials is soon cut off, and the log names it") {
  const Controller c;
  (void)c.connect();
  RawDealer silent = dealer(c);
  int answers = 0;
  for (std::uint64_t i = 0; i < 80 && send(silent, i, proto::Ping{}); ++i) {
  }
  while (answer(silent)) ++answers;
  CHECK(answers == 65);  // The last answer says why the stranger is cut off.
  CHECK_FALSE(silent.connected());

  RawDealer liar = dealer(c);
  RawDealer other = dealer(c);
  for (std::uint64_t i = 0; i < 20; ++i) {
    // The credential belongs to another connection.
    if (!send(liar, i, credential(other, c.root()))) break;
  }
  answers = 0;
  while (const auto refused = answer(liar)) {
    ++answers;
    CHECK(refusal(refused).code == static_cast<std::uint16_t>(ErrorCode::unauthenticated));
  }
  CHECK(answers == 8);
  CHECK_FALSE(liar.connected());
  const std::string log = c.log();
  CHECK_MESSAGE(log.find("refused a credential") != std::string::npos, log);
  CHECK_MESSAGE(log.find("address=127.0.0.1 method=key claims=root") != std::string::npos, log);
}

TEST_CASE("messages of another version count towards the limits as well") {
  const Controller c("max_user_requests: 2, ");
  (void)c.connect();
  const net::HeaderBytes other({999, static_cast<std::uint16_t>(proto::number_of<proto::Ping>), 1});
  RawDealer stranger = dealer(c);
  for (int i = 0; i < 200 && stranger.send(other.view(), ""); ++i) {
  }
  int answers = 0;
  while (answer(stranger)) ++answers;
  CHECK(answers <= 65);
  CHECK_FALSE(stranger.connected());

  RawDealer user = dealer(c);
  authenticate(user, c.nobody());
  for (int i = 0; i < 40; ++i) REQUIRE(user.send(other.view(), ""));
  for (int i = 0; i < 40; ++i) CHECK(answer(user));
  REQUIRE(send(user, 2, proto::Ping{}));
  CHECK(refusal(answer(user)).code == static_cast<std::uint16_t>(ErrorCode::too_many));
}

TEST_CASE("a session ends when the key that proved it is removed") {
  const Controller c;
  (void)c.connect();
  RawDealer user = dealer(c);
  authenticate(user, c.nobody());
  REQUIRE(send(user, 2, proto::ListNodes{}));
  CHECK(answer(user)->type == proto::MessageType::ListNodesReply);
  RawDealer root = dealer(c);
  authenticate(root, c.root());
  REQUIRE(
      send(root, 2, proto::RegisterKey{"nobody", net::to_hex(c.nobody().verify_key.view()), true}));
  CHECK(answer(root)->type == proto::MessageType::Ok);
  REQUIRE(send(user, 3, proto::ListNodes{}));
  CHECK(refusal(answer(user)).message == "this key is no longer registered");
}

TEST_CASE("connections and requests of a user are limited, those of an administrator are not") {
  const Controller c("max_user_connections: 3, max_user_requests: 2, ");
  (void)c.connect();
  std::vector<RawDealer> users;
  for (int i = 0; i < 3; ++i) authenticate(users.emplace_back(dealer(c)), c.nobody());
  RawDealer fourth = dealer(c);
  REQUIRE(send(fourth, 1, credential(fourth, c.nobody())));
  const auto full = refusal(answer(fourth));
  CHECK(full.code == static_cast<std::uint16_t>(ErrorCode::too_many));
  CHECK(full.message.find("controller.max_user_connections") != std::string::npos);

  int refused = 0;
  for (std::uint64_t i = 0; i < 60; ++i) REQUIRE(send(users[i % 3], i, proto::Ping{}));
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto reply = answer(users[i % 3]);
    REQUIRE(reply);
    if (reply->type != proto::MessageType::ErrorReply) continue;
    ++refused;
    CHECK(refusal(reply).code == static_cast<std::uint16_t>(ErrorCode::too_many));
  }
  CHECK(refused >= 20);  // Ten seconds' worth of requests may come at once.
  RawDealer root = dealer(c);
  authenticate(root, c.root());
  for (std::uint64_t i = 0; i < 60; ++i) REQUIRE(send(root, i, proto::Ping{}));
  for (int i = 0; i < 60; ++i) CHECK(answer(root)->type == proto::MessageType::PingReply);
  // A closed connection makes room for another one.
  users.pop_back();
  const auto is_let_in = [&] {
    RawDealer next = dealer(c);
    REQUIRE(send(next, 1, credential(next, c.nobody())));
    const auto reply = answer(next);
    REQUIRE(reply);
    return reply->type == proto::MessageType::AuthReply;
  };
  // The controller limits what may be asked, so it is not asked more often.
  CHECK_MESSAGE(eventually(is_let_in, std::chrono::seconds(60), std::chrono::milliseconds(100)),
                "a connection that has ended is still counted");
}

TEST_CASE("a user's requests that take the loop long are limited by time") {
  const Controller c;
  (void)c.connect();
  RawDealer user = dealer(c), root = dealer(c);
  authenticate(user, c.nobody());
  authenticate(root, c.root());
  // Each request takes some ten milliseconds, so requests in a row stay far below 1,000 a second.
  proto::SubmitJob submit;
  for (int i = 0; i < 50'000; ++i) submit.environment["a_name_" + std::to_string(i)] = "a value";
  const Bytes body = codec::encode(submit);
  const net::HeaderBytes header({proto::kProtocolVersion,
                                 static_cast<std::uint16_t>(proto::number_of<proto::SubmitJob>),
                                 10});
  std::optional<proto::ErrorReply> refused;
  std::uint64_t asked = 0;
  // On a machine that is busy with other things, the loop may get less processor time than the
  // user's share. Then the controller does not have to refuse anything.
  const Instant began = test::wall();
  const Duration used_before = c.loop_cpu();
  const auto spent = [&] { return test::wall() - began; };
  const auto used = [&] { return c.loop_cpu() - used_before; };
  while (!refused && used() * 2 < spent() + seconds(12) && spent() < seconds(40)) {
    for (int i = 0; i < 8; ++i, ++asked) REQUIRE(user.send(header.view(), body));
    for (int i = 0; i < 8; ++i) {
      const auto reply = answer(user);
      REQUIRE(reply);
      if (reply->type != proto::MessageType::ErrorReply) continue;
      auto error = codec::decode<proto::ErrorReply>(reply->body);
      REQUIRE(error);
      if (error->code == static_cast<std::uint16_t>(ErrorCode::too_many)) refused = *error;
    }
  }
  if (!refused && spent() >= seconds(40)) SKIP_CASE("the controller got too little of a processor");
  REQUIRE_MESSAGE(refused, "none of ", asked, " was refused");
  CHECK(refused->message ==
        "the requests of nobody take more than one part in 4 of the controller's time "
        "(controller.max_user_requests): try again later");
  REQUIRE(send(root, 9, proto::Ping{}));
  CHECK(answer(root)->type == proto::MessageType::PingReply);
  MESSAGE(asked, " requests were taken");
}

TEST_CASE("a signal to end is obeyed while the configuration is read again") {
  Controller c;
  (void)c.connect();
  RawDealer root = dealer(c);
  authenticate(root, c.root());
  REQUIRE(send(root, 2, proto::Reconfigure{}));
  REQUIRE(answer(root)->type == proto::MessageType::Ok);
  CHECK(c.ends_by(SIGTERM));
}

}  // namespace gantry
