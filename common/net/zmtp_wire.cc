#include "common/net/zmtp_wire.h"

#include <fmt/core.h>
#include <sodium.h>

#include <cstring>

#include "common/assert.h"

namespace gantry::net::zmtp {
namespace {

using namespace std::literals;

static_assert(kNonceBytes == crypto_box_NONCEBYTES && kMacBytes == crypto_box_MACBYTES);

constexpr std::size_t kCompactBytes =
    1 << 20;  // written output is removed from the buffer beyond this size
constexpr std::size_t kMessageHead = 8 + 8;  // "\x07MESSAGE" and the counter of its nonce
constexpr std::size_t kLongHead = 1 + 8;     // of a frame: flags, size
constexpr std::size_t kMostShort = 255;      // most octets in a frame whose size has one octet

void put_u64(unsigned char* at, std::uint64_t value) {
  for (int i = 7; i >= 0; --i, value >>= 8) at[i] = static_cast<unsigned char>(value);
}

const unsigned char* octets(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* octets(std::string& bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

void append_head(std::string& out, bool command, std::size_t size) {
  const bool is_long = size > kMostShort;
  out += static_cast<char>((command ? kWireCommand : 0) | (is_long ? kWireLong : 0));
  if (is_long)
    out += eight(size);
  else
    out += static_cast<char>(size);
}

}  // namespace

std::string greeting(bool as_server) {
  std::string text = "\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01"s;
  text += "CURVE"sv;
  text.resize(kGreetingBytes);
  text[32] = as_server ? '\x01' : '\0';
  return text;
}

Result<void> check_greeting(std::string_view greeting) {
  if (greeting[0] != '\xff' || (greeting[9] & 1) == 0 || greeting[10] < 3)
    return fail(ErrorCode::unavailable, "the other side speaks an old version of ZMTP");
  if (greeting.substr(12, 20) != std::string("CURVE").append(15, '\0'))
    return fail(ErrorCode::unavailable, "the other side does not use CURVE encryption");
  return {};
}

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

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  randombytes_buf(bytes.data(), bytes.size());
  return bytes;
}

std::string eight(std::uint64_t value) {
  std::string bytes(8, '\0');
  put_u64(octets(bytes), value);
  return bytes;
}

std::uint64_t get_u64(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::optional<SharedKey> shared_key(const PublicKey& theirs, const SecretKey& ours) {
  SharedKey key;
  if (crypto_box_beforenm(key.data(), theirs.bytes.data(), ours.bytes.data()) != 0)
    return std::nullopt;
  return key;
}

std::string seal(std::string_view content, const Nonce& nonce, const SharedKey& key) {
  std::string box(content.size() + kMacBytes, '\0');
  const int failed = crypto_box_easy_afternm(octets(box), octets(content), content.size(),
                                             nonce.data(), key.data());
  GANTRY_ASSERT(failed == 0, "crypto_box_easy_afternm");
  return box;
}

std::optional<std::string> unseal(std::string_view box, const Nonce& nonce, const SharedKey& key) {
  if (box.size() < kMacBytes) return std::nullopt;
  std::string content(box.size() - kMacBytes, '\0');
  if (crypto_box_open_easy_afternm(octets(content), octets(box), box.size(), nonce.data(),
                                   key.data()) != 0)
    return std::nullopt;
  return content;
}

void append_property(std::string& metadata, std::string_view name, std::string_view value) {
  metadata += static_cast<char>(name.size());
  metadata += name;
  const auto size = static_cast<std::uint32_t>(value.size());
  for (int shift = 24; shift >= 0; shift -= 8) metadata += static_cast<char>(size >> shift);
  metadata += value;
}

std::optional<std::string_view> find_property(std::string_view metadata, std::string_view name) {
  std::string_view found;
  while (!metadata.empty()) {
    const auto name_size = static_cast<std::size_t>(static_cast<unsigned char>(metadata[0]));
    metadata.remove_prefix(1);
    if (name_size == 0 || metadata.size() < name_size + 4) return std::nullopt;
    const std::string_view this_name = metadata.substr(0, name_size);
    metadata.remove_prefix(name_size);
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(metadata[i]);
    metadata.remove_prefix(4);
    if (metadata.size() < size) return std::nullopt;
    if (this_name == name) found = metadata.substr(0, size);
    metadata.remove_prefix(size);
  }
  return found;
}

void append_frame(std::string& out, bool command, std::string_view body) {
  append_head(out, command, body.size());
  out += body;
}

// The content is encrypted in place, because a message may have 16 MiB.
void append_message(std::string& out, const SharedKey& key, std::string_view nonce_name,
                    std::uint64_t nonce, std::uint8_t flags, std::string_view content) {
  const std::size_t inner = 1 + content.size();
  append_head(out, false, kMessageHead + kMacBytes + inner);
  out += "\x07MESSAGE"sv;
  out += eight(nonce);
  const std::size_t box = out.size();
  out.append(kMacBytes, '\0');
  out += static_cast<char>(flags);
  out += content;
  unsigned char* at = octets(out) + box;
  const int failed = crypto_box_easy_afternm(at, at + kMacBytes, inner,
                                             nonce_of(nonce_name, nonce).data(), key.data());
  GANTRY_ASSERT(failed == 0, "crypto_box_easy_afternm");
}

Result<std::optional<Frame>> take_frame(std::string_view bytes, std::size_t largest) {
  if (bytes.size() < 2) return std::optional<Frame>{};
  const auto flags = static_cast<std::uint8_t>(bytes[0]);
  const bool is_long = (flags & kWireLong) != 0;
  const std::size_t head = is_long ? kLongHead : 2;
  if (bytes.size() < head) return std::optional<Frame>{};
  const std::uint64_t size =
      is_long ? get_u64(bytes.substr(1)) : static_cast<unsigned char>(bytes[1]);
  if (size > largest)
    return fail(ErrorCode::malformed,
                fmt::format("a frame of {} bytes, at most {} are allowed", size, largest));
  if (bytes.size() - head < size) return std::optional<Frame>{};
  return std::optional<Frame>(Frame{flags, bytes.substr(head, size), head + size});
}

Result<Opened> open_message(std::string_view body, const SharedKey& key,
                            std::string_view nonce_name, std::uint64_t& last_nonce) {
  if (body.size() < kMessageHead + kMacBytes + 1 || !body.starts_with("\x07MESSAGE"sv))
    return fail(ErrorCode::malformed, "a MESSAGE was expected");
  const std::uint64_t nonce = get_u64(body.substr(8));
  if (nonce <= last_nonce) return fail(ErrorCode::malformed, "a message was repeated");
  last_nonce = nonce;
  auto content = unseal(body.substr(kMessageHead), nonce_of(nonce_name, nonce), key);
  if (!content) return fail(ErrorCode::malformed, "a message is forged or damaged");
  Opened opened;
  opened.flags = static_cast<std::uint8_t>(content->front());
  content->erase(0, 1);
  opened.content = std::move(*content);
  return opened;
}

// PING is its name, two octets of time to live, and at most 16 octets of context, which PONG
// returns.
Result<std::optional<std::string_view>> ping_context(std::string_view command) {
  if (!command.starts_with("\x04PING"sv)) return std::optional<std::string_view>{};
  if (command.size() < 7 || command.size() > 7 + 16)
    return fail(ErrorCode::malformed, "a PING of the wrong length");
  return std::optional<std::string_view>(command.substr(7));
}

Result<std::optional<std::vector<Bytes>>> MessageParts::add(Opened&& part) {
  bytes_ += part.content.size();
  const bool more = (part.flags & kFlagMore) != 0;
  parts_.push_back(std::move(part.content));
  if (bytes_ > most_bytes_ || parts_.size() > kMaxMessageFrames)
    return fail(ErrorCode::malformed, "a message of too many or too large frames");
  if (more) return std::optional<std::vector<Bytes>>{};
  bytes_ = 0;
  return std::optional<std::vector<Bytes>>(std::exchange(parts_, {}));
}

void OutputBytes::written(std::size_t count) {
  GANTRY_ASSERT(at_ + count <= bytes_.size(), "more written than there was");
  at_ += count;
  if (at_ < bytes_.size() && at_ < kCompactBytes) return;
  if (at_ < bytes_.size())
    bytes_.erase(0, at_);
  else if (bytes_.capacity() > kCompactBytes)
    bytes_ = std::string();  // frees the memory of a large message
  else
    bytes_.clear();
  at_ = 0;
}

}  // namespace gantry::net::zmtp
