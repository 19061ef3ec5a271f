#include "common/net/zmtp.h"

#include <cstdint>
#include <cstring>

namespace gantry::net {

using namespace std::literals;
using namespace zmtp;

namespace {

constexpr Side kClient{.error = ErrorCode::unavailable,
                       .other = "the other side",
                       .sends = "CurveZMQMESSAGEC",
                       .receives = "CurveZMQMESSAGES",
                       .most_bytes = ZmtpClient::kMaxMessageBytes,
                       .first_frame = kMaxWireFrame,
                       .most_pongs = SIZE_MAX};

}  // namespace

ZmtpClient::ZmtpClient(const PublicKey& server, const KeyPair& own)
    : End(kClient, own), server_(server) {
  if (const auto key = shared_key(server_, own_.secret_key))
    with_server_ = *key;
  else
    state_ = State::failed;  // a server key of small order; the first feed() reports it
  send_hello();
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

Result<void> ZmtpClient::on_first(std::string_view body) {
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
  state_ = State::second;
  return {};
}

Result<void> ZmtpClient::on_second(std::string_view body) {
  constexpr std::size_t kHead = 6 + 8;
  if (body.size() < kHead + kMacBytes || !body.starts_with("\x05READY"))
    return broken("a READY was expected in the handshake");
  peer_nonce_ = get_u64(body.substr(6));
  if (!unseal(body.substr(kHead), nonce_of("CurveZMQREADY---", peer_nonce_), session_))
    return broken("the READY of the handshake is forged or damaged");
  state_ = State::ready;
  return {};
}

}  // namespace gantry::net
