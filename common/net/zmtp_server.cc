#include "common/net/zmtp_server.h"

#include <sodium.h>

#include <cstring>

#include "common/assert.h"

namespace gantry::net {
namespace {

using namespace std::literals;
using namespace zmtp;

constexpr std::size_t kHelloBytes = 6 + 2 + 72 + kKeyBytes + 8 + 64 + kMacBytes;
constexpr std::size_t kInitiateHead = 9 + kCookieBytes + 8;
constexpr std::size_t kVouchBytes = 2 * kKeyBytes + kMacBytes;
// Key, nonce of the vouch, vouch; then metadata follow.
constexpr std::size_t kInitiateInner = kKeyBytes + 16 + kVouchBytes;
constexpr std::size_t kMostPongs = 64 << 10;  // bytes of output beyond which pings are not answered
constexpr std::size_t kKeptInput = 64 << 10;  // bytes of input buffer that an idle connection keeps

PublicKey key_of(std::string_view raw) {
  PublicKey key;
  std::memcpy(key.bytes.data(), raw.data(), kKeyBytes);
  return key;
}

}  // namespace

ZmtpServer::ZmtpServer(const KeyPair& own) : own_(own) {
  const int ready = sodium_init();
  GANTRY_ASSERT(ready >= 0, "libsodium cannot start");
  output_.tail() = greeting(true);
}

Result<void> ZmtpServer::broken(std::string why) {
  state_ = State::failed;
  return fail(ErrorCode::malformed, std::move(why));
}

void ZmtpServer::send_box(std::uint8_t inner_flags, std::string_view content) {
  append_message(output_.tail(), session_, "CurveZMQMESSAGES", ++nonce_, inner_flags, content);
}

void ZmtpServer::send(std::span<const std::string_view> frames) {
  GANTRY_ASSERT(ready() && !frames.empty(), "send() before the handshake is done");
  for (std::size_t i = 0; i < frames.size(); ++i)
    send_box(i + 1 < frames.size() ? kFlagMore : 0, frames[i]);
}

std::optional<std::vector<Bytes>> ZmtpServer::next() {
  if (messages_.empty()) return std::nullopt;
  std::vector<Bytes> message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

Result<void> ZmtpServer::feed(std::string_view bytes) {
  input_ += bytes;
  std::size_t done = 0;
  while (true) {
    if (state_ == State::failed) return broken("the connection has failed");
    std::size_t used = done;
    if (const Result<void> result = consume(used); !result) return result;
    if (used == done) break;
    done = used;
  }
  input_.erase(0, done);
  if (input_.empty() && input_.capacity() > kKeptInput) input_ = std::string();
  return {};
}

Result<void> ZmtpServer::consume(std::size_t& used) {
  const std::string_view rest = std::string_view(input_).substr(used);
  if (state_ == State::greeting) {
    if (!rest.empty() && rest[0] != '\xff') return broken("the peer does not speak ZMTP");
    if (rest.size() < kGreetingBytes) return {};
    used += kGreetingBytes;
    return on_greeting(rest.substr(0, kGreetingBytes));
  }
  const auto frame = take_frame(rest, ready() ? kMaxWireFrame : kMaxHandshakeFrame);
  if (!frame) return broken(frame.error().message);
  if (!*frame) return {};
  used += (*frame)->size;
  switch (state_) {
    case State::hello: return on_hello((*frame)->body);
    case State::initiate: return on_initiate((*frame)->body);
    case State::ready: return on_message((*frame)->body);
    case State::greeting:
    case State::failed: break;
  }
  return broken("the connection has failed");
}

Result<void> ZmtpServer::on_greeting(std::string_view greeting) {
  if (const auto sound = check_greeting(greeting); !sound) return broken(sound.error().message);
  state_ = State::hello;
  return {};
}

// HELLO consists of "HELLO", version 1.0, 72 zeros against amplification, C', the nonce's counter,
// and a box of 64 zeros, which shows that the peer knows our key and has the secret key of C'.
Result<void> ZmtpServer::on_hello(std::string_view body) {
  if (body.size() != kHelloBytes || !body.starts_with("\x05HELLO\x01\0"sv))
    return broken("a HELLO was expected in the handshake");
  Handshake handshake;
  handshake.client_session = key_of(body.substr(80));
  peer_nonce_ = get_u64(body.substr(112));
  const auto key = shared_key(handshake.client_session, own_.secret_key);
  const auto zeros = key ? unseal(body.substr(120), nonce_of("CurveZMQHELLO---", peer_nonce_), *key)
                         : std::nullopt;
  if (!zeros) return broken("the HELLO is not for this server's key");
  handshake.server_session = generate_key_pair();
  // The connection keeps its state here anyway, so the cookie is only a random number that the peer
  // has to send back.
  handshake.cookie = random_bytes(kCookieBytes);

  const std::string random = random_bytes(16);
  std::string content(handshake.server_session.public_key.view());
  content += handshake.cookie;
  std::string welcome = "\x07WELCOME";
  welcome += random;
  welcome += seal(content, nonce_of("WELCOME-"sv, random), *key);
  append_frame(output_.tail(), true, welcome);
  handshake_ = std::move(handshake);
  state_ = State::initiate;
  return {};
}

// INITIATE consists of "INITIATE", the cookie, the nonce's counter, and a box from C' to S'. The
// box contains the peer's permanent key C, the vouch, and metadata. The vouch is a box from C to S'
// with C' and our key: with it C says that C' is its own.
Result<void> ZmtpServer::on_initiate(std::string_view body) {
  if (body.size() < kInitiateHead + kMacBytes + kInitiateInner ||
      !body.starts_with("\x08INITIATE"sv))
    return broken("an INITIATE was expected in the handshake");
  const Handshake& h = *handshake_;
  const std::uint64_t nonce = get_u64(body.substr(9 + kCookieBytes));
  if (body.substr(9, kCookieBytes) != h.cookie || nonce <= peer_nonce_)
    return broken("the INITIATE is of another handshake");
  peer_nonce_ = nonce;
  const auto key = shared_key(h.client_session, h.server_session.secret_key);
  const auto content =
      key ? unseal(body.substr(kInitiateHead), nonce_of("CurveZMQINITIATE", nonce), *key)
          : std::nullopt;
  if (!content) return broken("the INITIATE is forged or damaged");
  const std::string_view inner(*content);
  const PublicKey permanent = key_of(inner);
  const auto vouch_key =
      permanent == h.client_session ? key : shared_key(permanent, h.server_session.secret_key);
  const auto vouch = vouch_key
                         ? unseal(inner.substr(kKeyBytes + 16, kVouchBytes),
                                  nonce_of("VOUCH---"sv, inner.substr(kKeyBytes, 16)), *vouch_key)
                         : std::nullopt;
  if (!vouch || std::string_view(*vouch).substr(0, kKeyBytes) != h.client_session.view() ||
      std::string_view(*vouch).substr(kKeyBytes) != own_.public_key.view())
    return broken("the peer does not have the key that it shows");
  if (const auto sound = on_metadata(inner.substr(kInitiateInner)); !sound) return sound;
  peer_ = permanent;
  session_ = *key;
  handshake_.reset();
  send_ready();
  state_ = State::ready;
  return {};
}

Result<void> ZmtpServer::on_metadata(std::string_view metadata) {
  const auto type = find_property(metadata, "Socket-Type");
  if (!type) return broken("the metadata of the handshake are malformed");
  if (*type != "DEALER") return broken("the peer is no DEALER");
  return {};
}

void ZmtpServer::send_ready() {
  std::string metadata;
  append_property(metadata, "Socket-Type", "ROUTER");
  append_property(metadata, "Identity", "");
  std::string body = "\x05READY";
  body += eight(++nonce_);
  body += seal(metadata, nonce_of("CurveZMQREADY---", nonce_), session_);
  append_frame(output_.tail(), true, body);
}

Result<void> ZmtpServer::on_message(std::string_view body) {
  auto opened = open_message(body, session_, "CurveZMQMESSAGEC", peer_nonce_);
  if (!opened) return broken(opened.error().message);
  if ((opened->flags & kFlagCommand) != 0) return on_command(opened->content);
  auto message = parts_.add(std::move(*opened));
  if (!message) return broken(message.error().message);
  if (*message) messages_.push_back(std::move(**message));
  return {};
}

Result<void> ZmtpServer::on_command(std::string_view body) {
  const auto context = ping_context(body);
  if (!context) return broken(context.error().message);
  if (*context && output().size() < kMostPongs)
    send_box(kFlagCommand, std::string("\x04PONG").append(**context));
  return {};  // other commands mean nothing to a ROUTER
}

}  // namespace gantry::net
