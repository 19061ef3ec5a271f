#include "common/net/zmtp_server.h"

#include <cstring>

namespace gantry::net {
namespace {

using namespace std::literals;
using namespace zmtp;

constexpr std::size_t kHelloBytes = 6 + 2 + 72 + kKeyBytes + 8 + 64 + kMacBytes;
constexpr std::size_t kInitiateHead = 9 + kCookieBytes + 8;
constexpr std::size_t kVouchBytes = 2 * kKeyBytes + kMacBytes;
// Key, nonce of the vouch, vouch; then metadata follow.
constexpr std::size_t kInitiateInner = kKeyBytes + 16 + kVouchBytes;
constexpr Side kServer{.server = true,
                       .error = ErrorCode::malformed,
                       .other = "the peer",
                       .sends = "CurveZMQMESSAGES",
                       .receives = "CurveZMQMESSAGEC",
                       .most_bytes = ZmtpServer::kMaxMessageBytes,
                       .first_frame = ZmtpServer::kMaxHandshakeFrame,
                       .most_pongs = 64 << 10};

PublicKey key_of(std::string_view raw) {
  PublicKey key;
  std::memcpy(key.bytes.data(), raw.data(), kKeyBytes);
  return key;
}

}  // namespace

ZmtpServer::ZmtpServer(const KeyPair& own) : End(kServer, own) {}

// HELLO consists of "HELLO", version 1.0, 72 zeros against amplification, C', the nonce's counter,
// and a box of 64 zeros, which shows that the peer knows our key and has the secret key of C'.
Result<void> ZmtpServer::on_first(std::string_view body) {
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
  state_ = State::second;
  return {};
}

// INITIATE consists of "INITIATE", the cookie, the nonce's counter, and a box from C' to S'. The
// box contains the peer's permanent key C, the vouch, and metadata. The vouch is a box from C to S'
// with C' and our key: with it C says that C' is its own.
Result<void> ZmtpServer::on_second(std::string_view body) {
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

}  // namespace gantry::net
