#include "common/net/zmtp.h"

#include <fmt/core.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "common/assert.h"
#include "common/net/header.h"

namespace gantry::net {
namespace {

using namespace std::literals;

constexpr std::size_t kGreetingBytes = 64;
constexpr std::size_t kCookieBytes = 96;
constexpr std::size_t kNonceBytes = crypto_box_NONCEBYTES;
constexpr std::size_t kMacBytes = crypto_box_MACBYTES;
constexpr std::size_t kWelcomeBytes = 8 + 16 + kMacBytes + kKeyBytes + kCookieBytes;
// A MESSAGE frame around the largest content: name, nonce, box, flags.
constexpr std::size_t kMaxWireFrame = static_cast<std::size_t>(kMaxFrameBytes) + 64;

constexpr std::size_t kCompactBytes = 1 << 20;  // written output is cut off beyond this

constexpr std::uint8_t kFlagMore = 1;     // of a box's content
constexpr std::uint8_t kFlagCommand = 2;  // of a box's content
constexpr std::uint8_t kWireLong = 2;     // of a frame
constexpr std::uint8_t kWireCommand = 4;  // of a frame

using Nonce = std::array<unsigned char, kNonceBytes>;

void put_u64(unsigned char* at, std::uint64_t value) {
  for (int i = 7; i >= 0; --i, value >>= 8) at[i] = static_cast<unsigned char>(value);
}

std::uint64_t get_u64(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// 16 octets of name and a counter, or 8 of name and 16 random ones.
Nonce nonce_of(std::string_view name, std::uint64_t counter) {
  Nonce nonce;
  std::memcpy(nonce.data(), name.data(), 16);
  put_u64(nonce.data() + 16, counter);
  return nonce;
}
Nonce nonce_of(std::string_view name, std::string_view random) {
  Nonce nonce;
  std::memcpy(nonce.data(), name.data(), 8);
  std::memcpy(nonce.data() + 8, random.data(), 16);
  return nonce;
}

const unsigned char* octets(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* octets(std::string& bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

std::string seal(std::string_view content, const Nonce& nonce,
                 const std::array<std::uint8_t, 32>& key) {
  std::string box(content.size() + kMacBytes, '\0');
  const int failed = crypto_box_easy_afternm(octets(box), octets(content), content.size(),
                                             nonce.data(), key.data());
  GANTRY_ASSERT(failed == 0, "crypto_box_easy_afternm");
  return box;
}

std::optional<std::string> unseal(std::string_view box, const Nonce& nonce,
                                  const std::array<std::uint8_t, 32>& key) {
  if (box.size() < kMacBytes) return std::nullopt;
  std::string content(box.size() - kMacBytes, '\0');
  if (crypto_box_open_easy_afternm(octets(content), octets(box), box.size(), nonce.data(),
                                   key.data()) != 0)
    return std::nullopt;
  return content;
}

std::string eight(std::uint64_t value) {
  std::string bytes(8, '\0');
  put_u64(octets(bytes), value);
  return bytes;
}

void append_property(std::string& metadata, std::string_view name, std::string_view value) {
  metadata += static_cast<char>(name.size());
  metadata += name;
  const auto size = static_cast<std::uint32_t>(value.size());
  for (int shift = 24; shift >= 0; shift -= 8) metadata += static_cast<char>(size >> shift);
  metadata += value;
}

}  // namespace

ZmtpClient::ZmtpClient(const PublicKey& server, const KeyPair& own) : server_(server), own_(own) {
  const int ready = sodium_init();
  GANTRY_ASSERT(ready >= 0, "libsodium cannot start");
  if (crypto_box_beforenm(with_server_.data(), server_.bytes.data(),
                          own_.secret_key.bytes.data()) != 0)
    state_ = State::failed;  // a server key of small order; the first feed() says so
  output_ = "\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01"s;
  output_ += "CURVE"sv;
  output_.resize(kGreetingBytes);  // as-server 0 and filler
  send_hello();
}

void ZmtpClient::written(std::size_t bytes) {
  GANTRY_ASSERT(output_at_ + bytes <= output_.size(), "more written than there was");
  output_at_ += bytes;
  if (output_at_ < output_.size() && output_at_ < kCompactBytes) return;
  output_.erase(0, output_at_);
  output_at_ = 0;
}

Result<void> ZmtpClient::broken(std::string why) {
  state_ = State::failed;
  return fail(ErrorCode::unavailable, std::move(why));
}

void ZmtpClient::append_frame(bool command, std::string_view body) {
  const bool is_long = body.size() > 255;
  output_ += static_cast<char>((command ? kWireCommand : 0) | (is_long ? kWireLong : 0));
  if (is_long)
    output_ += eight(body.size());
  else
    output_ += static_cast<char>(body.size());
  output_ += body;
}

void ZmtpClient::send_hello() {
  const Nonce nonce = nonce_of("CurveZMQHELLO---", ++nonce_);
  std::string body = "\x05HELLO\x01\0"s;
  body.append(72, '\0');
  body += own_.public_key.view();
  body += eight(nonce_);
  body += seal(std::string(64, '\0'), nonce, with_server_);
  append_frame(true, body);
}

// One key pair serves as both the permanent and the transient one of RFC 26 (C and C'): it is made
// for this session only, or belongs to a program that wants to be known by it. The nonces of the
// boxes under it differ by name, so none is used twice.
void ZmtpClient::send_initiate(std::string_view cookie) {
  std::string random(16, '\0');
  randombytes_buf(random.data(), random.size());
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
  append_frame(true, body);
}

void ZmtpClient::send_box(std::uint8_t inner_flags, std::string_view content) {
  std::string inner;
  inner.reserve(content.size() + 1);
  inner += static_cast<char>(inner_flags);
  inner += content;
  const Nonce nonce = nonce_of("CurveZMQMESSAGEC", ++nonce_);
  std::string body = "\x07MESSAGE";
  body += eight(nonce_);
  body += seal(inner, nonce, session_);
  append_frame(false, body);
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
  if (rest.size() < 2) return {};
  const auto flags = static_cast<std::uint8_t>(rest[0]);
  const bool is_long = (flags & kWireLong) != 0;
  const std::size_t head = is_long ? 9 : 2;
  if (rest.size() < head) return {};
  const std::uint64_t size =
      is_long ? get_u64(rest.substr(1)) : static_cast<unsigned char>(rest[1]);
  if (size > kMaxWireFrame)
    return broken(fmt::format("a frame of {} bytes, at most {} are allowed", size, kMaxWireFrame));
  if (rest.size() - head < size) return {};
  used += head + size;
  return on_frame(flags, rest.substr(head, size));
}

Result<void> ZmtpClient::on_greeting(std::string_view greeting) {
  if ((greeting[9] & 1) == 0 || greeting[10] < 3)
    return broken("the other side speaks an old version of ZMTP");
  if (greeting.substr(12, 20) != std::string("CURVE").append(15, '\0'))
    return broken("the other side does not use CURVE encryption");
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
  if (crypto_box_beforenm(session_.data(), server_session.bytes.data(),
                          own_.secret_key.bytes.data()) != 0)
    return broken("the other side sent an unusable key");
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
  constexpr std::size_t kHead = 8 + 8;
  if (body.size() < kHead + kMacBytes + 1 || !body.starts_with("\x07MESSAGE"))
    return broken("a MESSAGE was expected");
  const std::uint64_t nonce = get_u64(body.substr(8));
  if (nonce <= peer_nonce_) return broken("a message was repeated");
  peer_nonce_ = nonce;
  auto content = unseal(body.substr(kHead), nonce_of("CurveZMQMESSAGES", nonce), session_);
  if (!content) return broken("a message is forged or damaged");
  const auto flags = static_cast<std::uint8_t>(content->front());
  content->erase(0, 1);
  if ((flags & kFlagCommand) != 0) return on_ping(*content);
  parts_bytes_ += content->size();
  parts_.push_back(std::move(*content));
  if (parts_bytes_ > kMaxMessageBytes || parts_.size() > kMaxMessageFrames)
    return broken("a message of too many or too large frames");
  if ((flags & kFlagMore) == 0) {
    messages_.push_back(std::exchange(parts_, {}));
    parts_bytes_ = 0;
  }
  return {};
}

// PING is its name, two octets of time to live, and at most 16 of context that PONG brings back.
Result<void> ZmtpClient::on_ping(std::string_view body) {
  if (!body.starts_with("\x04PING")) return {};  // other commands mean nothing to a DEALER
  if (body.size() < 7 || body.size() > 7 + 16) return broken("a PING of the wrong length");
  send_box(kFlagCommand, std::string("\x04PONG").append(body.substr(7)));
  return {};
}

}  // namespace gantry::net
