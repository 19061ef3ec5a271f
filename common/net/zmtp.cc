#include "common/net/zmtp.h"

#include <fmt/core.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "common/assert.h"

namespace gantry::net {

using namespace std::literals;
using namespace zmtp;

ZmtpClient::ZmtpClient(const PublicKey& server, const KeyPair& own)
    : server_(server), own_(own), parts_(kMaxMessageBytes) {
  const int ready = sodium_init();
  GANTRY_ASSERT(ready >= 0, "libsodium cannot start");
  if (const auto key = shared_key(server_, own_.secret_key))
    with_server_ = *key;
  else
    state_ = State::failed;  // a server key of small order; the first feed() reports it
  output_.tail() = greeting(false);
  send_hello();
}

Result<void> ZmtpClient::broken(std::string why) {
  state_ = State::failed;
  return fail(ErrorCode::unavailable, std::move(why));
}

void ZmtpClient::send_hello() {
  const Nonce nonce = nonce_of("CurveZMQHELLO---", ++nonce_);
  std::string body = "\x05HELLO\x01\0"s;
  body.append(72, '\0');
  body += own_.public_key.view();
  body += eight(nonce_);
  body += seal(std::string(64, '\0'), nonce, with_server_);
  append_frame(output_.tail(), true, body);
}

// One key pair serves as both the permanent and the transient pair of RFC 26 (C and C'). It is
// either made for this session only, or belongs to a program that wants to be recognised by it. The
// nonces of its boxes differ by name, so no nonce is used twice.
void ZmtpClient::send_initiate(std::string_view cookie) {
  const std::string random = random_bytes(16);
  std::string content(own_.public_key.view());
  content += random;
  content += seal(std::string(own_.public_key.view()).append(server_.view()),
                  nonce_of("VOUCH---"sv, random), session_);
  append_property(content, "Socket-Type", "DEALER");
  append_property(content, "Identity", "");

  const Nonce nonce = nonce_of("CurveZMQINITIATE", ++nonce_);
  std::string body = "\x08INITIATE";
  body += cookie;
  body += eight(nonce_);
  body += seal(content, nonce, session_);
  append_frame(output_.tail(), true, body);
}

void ZmtpClient::send_box(std::uint8_t inner_flags, std::string_view content) {
  append_message(output_.tail(), session_, "CurveZMQMESSAGEC", ++nonce_, inner_flags, content);
}

void ZmtpClient::send(std::span<const std::string_view> frames) {
  GANTRY_ASSERT(ready() && !frames.empty(), "send() before the handshake is done");
  for (std::size_t i = 0; i < frames.size(); ++i)
    send_box(i + 1 < frames.size() ? kFlagMore : 0, frames[i]);
}

std::optional<std::vector<Bytes>> ZmtpClient::next() {
  if (messages_.empty()) return std::nullopt;
  std::vector<Bytes> message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

Result<void> ZmtpClient::feed(std::string_view bytes) {
  input_ += bytes;
  std::size_t done = 0;
  while (true) {
    if (state_ == State::failed) return broken("the connection has failed");
    std::size_t used = done;
    const Result<void> result = consume(used);
    if (!result) return result;
    if (used == done) break;
    done = used;
  }
  input_.erase(0, done);
  return {};
}

Result<void> ZmtpClient::consume(std::size_t& used) {
  const std::string_view rest = std::string_view(input_).substr(used);
  if (state_ == State::greeting) {
    if (!rest.empty() && rest[0] != '\xff') return broken("the other side does not speak ZMTP");
    if (rest.size() < kGreetingBytes) return {};
    used += kGreetingBytes;
    return on_greeting(rest.substr(0, kGreetingBytes));
  }
  const auto frame = take_frame(rest, kMaxWireFrame);
  if (!frame) return broken(frame.error().message);
  if (!*frame) return {};
  used += (*frame)->size;
  return on_frame((*frame)->flags, (*frame)->body);
}

Result<void> ZmtpClient::on_greeting(std::string_view greeting) {
  if (const auto sound = check_greeting(greeting); !sound) return broken(sound.error().message);
  state_ = State::welcome;
  return {};
}

Result<void> ZmtpClient::on_frame(std::uint8_t flags, std::string_view body) {
  const bool command = (flags & kWireCommand) != 0;
  if (command && body.starts_with("\x05"sv
                                  "ERROR")) {
    const std::string_view reason = body.substr(std::min<std::size_t>(7, body.size()));
    std::string shown;
    for (const char c : reason) shown += c >= ' ' && c < 127 ? c : '?';
    return broken("the other side refuses the connection: " + shown);
  }
  switch (state_) {
    case State::welcome: return on_welcome(body);
    case State::ready_awaited: return on_ready(body);
    case State::ready: return on_message(body);
    case State::greeting:
    case State::failed: break;
  }
  return broken("the connection has failed");
}

Result<void> ZmtpClient::on_welcome(std::string_view body) {
  if (body.size() != kWelcomeBytes || !body.starts_with("\x07WELCOME"))
    return broken("a WELCOME was expected in the handshake");
  const auto content =
      unseal(body.substr(24), nonce_of("WELCOME-"sv, body.substr(8, 16)), with_server_);
  if (!content) return broken("the other side does not have the expected server key");
  PublicKey server_session;
  std::memcpy(server_session.bytes.data(), content->data(), kKeyBytes);
  const auto session = shared_key(server_session, own_.secret_key);
  if (!session) return broken("the other side sent an unusable key");
  session_ = *session;
  send_initiate(std::string_view(*content).substr(kKeyBytes));
  state_ = State::ready_awaited;
  return {};
}

Result<void> ZmtpClient::on_ready(std::string_view body) {
  constexpr std::size_t kHead = 6 + 8;
  if (body.size() < kHead + kMacBytes || !body.starts_with("\x05READY"))
    return broken("a READY was expected in the handshake");
  peer_nonce_ = get_u64(body.substr(6));
  if (!unseal(body.substr(kHead), nonce_of("CurveZMQREADY---", peer_nonce_), session_))
    return broken("the READY of the handshake is forged or damaged");
  state_ = State::ready;
  return {};
}

Result<void> ZmtpClient::on_message(std::string_view body) {
  auto opened = open_message(body, session_, "CurveZMQMESSAGES", peer_nonce_);
  if (!opened) return broken(opened.error().message);
  if ((opened->flags & kFlagCommand) != 0) return on_command(opened->content);
  auto message = parts_.add(std::move(*opened));
  if (!message) return broken(message.error().message);
  if (*message) messages_.push_back(std::move(**message));
  return {};
}

Result<void> ZmtpClient::on_command(std::string_view body) {
  const auto context = ping_context(body);
  if (!context) return broken(context.error().message);
  if (*context) send_box(kFlagCommand, std::string("\x04PONG").append(**context));
  return {};  // other commands mean nothing to a DEALER
}

}  // namespace gantry::net
