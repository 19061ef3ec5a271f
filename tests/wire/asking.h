// Helpers with which a test peer sends single messages to the real controller and looks at each
// answer.
#pragma once

#include <time.h>

#include <optional>
#include <string>

#include "common/auth/registered_key.h"
#include "common/codec/codec.h"
#include "common/net/header.h"
#include "common/proto/messages.h"
#include "tests/wire/controller_process.h"
#include "tests/wire/raw_dealer.h"

namespace gantry::test {

inline constexpr Duration kSoon = seconds(60);

inline Instant wall() {
  timespec t{};
  ::clock_gettime(CLOCK_REALTIME, &t);
  return {std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000};
}

template <class Message>
bool send(RawDealer& peer, std::uint64_t request, const Message& message) {
  const net::HeaderBytes header(
      {proto::kProtocolVersion, static_cast<std::uint16_t>(proto::number_of<Message>), request});
  return peer.send(header.view(), codec::encode(message));
}

struct Answer {
  proto::MessageType type{};
  std::uint64_t request = 0;
  Bytes body;
};
inline std::optional<Answer> answer(RawDealer& peer, Duration patience = kSoon) {
  const auto frames = peer.receive(patience);
  if (!frames) return std::nullopt;
  REQUIRE(frames->size() == 2);
  const auto header = net::decode_header(frames->at(0));
  REQUIRE(header);
  return Answer{static_cast<proto::MessageType>(header->type), header->request, frames->at(1)};
}

inline proto::ErrorReply refusal(const std::optional<Answer>& answer) {
  REQUIRE(answer);
  REQUIRE(answer->type == proto::MessageType::ErrorReply);
  return *codec::decode<proto::ErrorReply>(answer->body);
}

inline proto::Authenticate credential(const RawDealer& peer, const auth::SigningKey& key) {
  return {proto::AuthMethod::key, auth::make_key_credential(key, peer.key(), wall()), true};
}

inline void authenticate(RawDealer& peer, const auth::SigningKey& key) {
  REQUIRE(send(peer, 1, credential(peer, key)));
  const auto reply = answer(peer);
  REQUIRE(reply);
  REQUIRE(reply->type == proto::MessageType::AuthReply);
}

inline RawDealer dealer(const Controller& c, const std::string& id = "",
                        const net::KeyPair& keys = net::generate_key_pair()) {
  RawDealer made(c.address(), c.key(), id, keys);
  REQUIRE(made.connected());
  return made;
}

}  // namespace gantry::test
