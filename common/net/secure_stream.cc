#include "common/net/secure_stream.h"

#include <fmt/core.h>
#include <sodium.h>

#include <array>
#include <cstring>
#include <deque>

#include "common/assert.h"

namespace gantry::net {
namespace {

constexpr std::string_view kMagic = "GSS1";
constexpr std::size_t kNonceBytes = 32;
constexpr std::size_t kHelloHead = kMagic.size() + 2;
static_assert(stream_hello_bytes(0) == kHelloHead + kNonceBytes);
constexpr std::size_t kTagBytes = crypto_secretstream_xchacha20poly1305_ABYTES;
constexpr std::size_t kStartBytes = crypto_secretstream_xchacha20poly1305_HEADERBYTES;
constexpr std::size_t kFrameLengthBytes = 4;
constexpr std::size_t kCompactBytes =
    1 << 20;  // written output is removed from the buffer beyond this size

using StreamState = crypto_secretstream_xchacha20poly1305_state;
using StreamKey = std::array<unsigned char, crypto_secretstream_xchacha20poly1305_KEYBYTES>;

std::size_t little16(std::string_view b) {
  return static_cast<std::size_t>(static_cast<unsigned char>(b[0]) |
                                  static_cast<unsigned char>(b[1]) << 8);
}

const unsigned char* octets(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* octets(std::string& bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

struct Hello {
  std::string_view ticket;
  std::string_view nonce;
  std::size_t size = 0;  // size of the whole hello; 0 = not known yet
};

Result<Hello> parse_hello(std::string_view bytes) {
  const std::string_view magic = bytes.substr(0, kMagic.size());
  if (magic != kMagic.substr(0, magic.size()))
    return fail(ErrorCode::malformed, "this is no Gantry stream");
  if (bytes.size() < kHelloHead) return Hello{};
  const std::size_t ticket = little16(bytes.substr(kMagic.size()));
  if (ticket > kMaxTicket)
    return fail(ErrorCode::malformed, fmt::format("a stream's ticket of {} bytes", ticket));
  const std::size_t size = stream_hello_bytes(ticket);
  if (bytes.size() < size) return Hello{};
  return Hello{bytes.substr(kHelloHead, ticket), bytes.substr(kHelloHead + ticket, kNonceBytes),
               size};
}

}  // namespace

Result<std::optional<Bytes>> read_ticket(std::string_view bytes) {
  ASSIGN(hello, parse_hello(bytes));
  if (hello->size == 0) return std::optional<Bytes>();
  return std::optional<Bytes>(hello->ticket);
}

struct SecureStream::Impl {
  enum class State : std::uint8_t { hello, start, confirm, open, finished, failed };

  StreamRole role = StreamRole::dialler;
  std::string key;
  std::string own_hello;
  State state = State::hello;  // state of the receiving direction
  StreamState pull{};
  StreamState push{};
  bool may_push = false;
  bool finishing = false;
  std::string input;
  std::string output;
  std::size_t output_at = 0;
  std::deque<Bytes> received;
  std::deque<Bytes> waiting;  // frames that wait until may_push
  std::size_t waiting_bytes = 0;

  ~Impl() {
    sodium_memzero(key.data(), key.size());
    sodium_memzero(&pull, sizeof pull);
    sodium_memzero(&push, sizeof push);
  }

  Result<void> broken(std::string why) {
    state = State::failed;
    return fail(ErrorCode::malformed, std::move(why));
  }

  // The key of the direction that starts at `sender`. Both hellos and the direction are part of it.
  StreamKey derive(StreamRole sender, std::string_view peer_hello) const {
    const bool dialling = role == StreamRole::dialler;
    std::string text = sender == StreamRole::dialler ? "gantry stream 1 >" : "gantry stream 1 <";
    text += dialling ? std::string_view(own_hello) : peer_hello;
    text += dialling ? peer_hello : std::string_view(own_hello);
    StreamKey derived;
    crypto_generichash(derived.data(), derived.size(), octets(text), text.size(), octets(key),
                       key.size());
    return derived;
  }

  void push_frame(std::string_view content, unsigned char tag) {
    const std::size_t size = content.size() + kTagBytes;
    const std::size_t at = output.size();
    output.resize(at + kFrameLengthBytes + size);
    unsigned char* out = octets(output) + at;
    for (std::size_t i = 0; i < kFrameLengthBytes; ++i)
      out[i] = static_cast<unsigned char>(size >> 8 * i);
    crypto_secretstream_xchacha20poly1305_push(&push, out + kFrameLengthBytes, nullptr,
                                               octets(content), content.size(), out,
                                               kFrameLengthBytes, tag);
  }

  void on_hello(std::string_view hello) {
    const StreamRole other =
        role == StreamRole::dialler ? StreamRole::listener : StreamRole::dialler;
    StreamKey sending = derive(role, hello);
    pull_key = derive(other, hello);
    std::string start(kStartBytes, '\0');
    crypto_secretstream_xchacha20poly1305_init_push(&push, octets(start), sending.data());
    sodium_memzero(sending.data(), sending.size());
    output += start;
    may_push = true;
    push_frame("", 0);  // proves to the other end that this end has the key
    for (const Bytes& frame : waiting) push_frame(frame, 0);
    waiting.clear();
    waiting_bytes = 0;
    if (finishing) push_frame("", crypto_secretstream_xchacha20poly1305_TAG_FINAL);
    state = State::start;
  }

  Result<void> on_frame(std::string_view length, std::string_view box) {
    Bytes content(box.size() - kTagBytes, '\0');
    unsigned char tag = 0;
    if (crypto_secretstream_xchacha20poly1305_pull(&pull, octets(content), nullptr, &tag,
                                                   octets(box), box.size(), octets(length),
                                                   length.size()) != 0)
      return broken(state == State::confirm ? "the other end of the stream does not have its key"
                                            : "the stream is forged or damaged");
    if (tag == crypto_secretstream_xchacha20poly1305_TAG_FINAL)
      state = State::finished;
    else if (state == State::confirm)
      state = State::open;
    else
      received.push_back(std::move(content));
    return {};
  }

  // Takes one complete unit off the front of `rest`. Returns the number of bytes used; 0 if it is
  // incomplete.
  Result<std::size_t> consume(std::string_view rest) {
    if (state == State::hello) {
      const auto hello = parse_hello(rest);
      if (!hello) return tl::unexpected(broken(hello.error().message).error());
      if (hello->size > 0) on_hello(rest.substr(0, hello->size));
      return hello->size;
    }
    if (state == State::start) {
      if (rest.size() < kStartBytes) return std::size_t{0};
      crypto_secretstream_xchacha20poly1305_init_pull(&pull, octets(rest), pull_key.data());
      sodium_memzero(pull_key.data(), pull_key.size());
      state = State::confirm;
      return kStartBytes;
    }
    if (rest.empty()) return std::size_t{0};
    if (state == State::finished)
      return tl::unexpected(broken("bytes behind the end of the stream").error());
    if (rest.size() < kFrameLengthBytes) return std::size_t{0};
    std::size_t size = 0;
    for (std::size_t i = 0; i < kFrameLengthBytes; ++i)
      size |= static_cast<std::size_t>(static_cast<unsigned char>(rest[i])) << 8 * i;
    // The first frame proves the key and is empty, so a peer that has not proved it can store
    // nothing else here.
    const std::size_t most = state == State::confirm ? 0 : kMaxStreamFrame;
    if (size < kTagBytes || size > most + kTagBytes)
      return tl::unexpected(broken(fmt::format("a stream's frame of {} bytes", size)).error());
    if (rest.size() < kFrameLengthBytes + size) return std::size_t{0};
    const auto ok =
        on_frame(rest.substr(0, kFrameLengthBytes), rest.substr(kFrameLengthBytes, size));
    if (!ok) return tl::unexpected(ok.error());
    return kFrameLengthBytes + size;
  }

  StreamKey pull_key{};  // used between the other end's hello and its start
};

SecureStream::SecureStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SecureStream::SecureStream(SecureStream&&) noexcept = default;
SecureStream& SecureStream::operator=(SecureStream&&) noexcept = default;
SecureStream::~SecureStream() = default;

Result<SecureStream> SecureStream::create(StreamRole role, std::string_view key,
                                          std::string_view ticket) {
  if (key.size() != kStreamKeyBytes)
    return fail(ErrorCode::invalid_argument,
                fmt::format("a stream's key has {} bytes, not {}", kStreamKeyBytes, key.size()));
  if (ticket.size() > kMaxTicket || (role == StreamRole::listener && !ticket.empty()))
    return fail(ErrorCode::invalid_argument, "a stream's ticket is the dialler's, at most 4 KiB");
  const int ready = sodium_init();
  GANTRY_ASSERT(ready >= 0, "libsodium cannot start");
  auto impl = std::make_unique<Impl>();
  impl->role = role;
  impl->key = key;
  impl->own_hello = kMagic;
  impl->own_hello += static_cast<char>(ticket.size());
  impl->own_hello += static_cast<char>(ticket.size() >> 8);
  impl->own_hello += ticket;
  std::string nonce(kNonceBytes, '\0');
  randombytes_buf(nonce.data(), nonce.size());
  impl->own_hello += nonce;
  impl->output = impl->own_hello;
  return SecureStream(std::move(impl));
}

Result<void> SecureStream::feed(std::string_view bytes) {
  if (impl_->state == Impl::State::failed)
    return fail(ErrorCode::wrong_state, "the stream has failed");
  impl_->input += bytes;
  std::size_t done = 0;
  while (true) {
    ASSIGN(used, impl_->consume(std::string_view(impl_->input).substr(done)));
    if (*used == 0) break;
    done += *used;
  }
  impl_->input.erase(0, done);
  return {};
}

std::optional<Bytes> SecureStream::next() {
  if (impl_->received.empty()) return std::nullopt;
  Bytes frame = std::move(impl_->received.front());
  impl_->received.pop_front();
  return frame;
}

bool SecureStream::finished() const {
  return impl_->state == Impl::State::finished && impl_->received.empty();
}

bool SecureStream::ready() const {
  return impl_->state == Impl::State::open || impl_->state == Impl::State::finished;
}

Result<void> SecureStream::send(std::string_view frame) {
  if (frame.size() > kMaxStreamFrame)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("a frame of {} bytes, at most {} are allowed", frame.size(), kMaxStreamFrame));
  if (impl_->finishing) return fail(ErrorCode::wrong_state, "the stream's end was sent already");
  if (impl_->may_push) {
    impl_->push_frame(frame, 0);
  } else {
    impl_->waiting.emplace_back(frame);
    impl_->waiting_bytes += frame.size();
  }
  return {};
}

void SecureStream::finish() {
  if (impl_->finishing) return;
  impl_->finishing = true;
  if (impl_->may_push) impl_->push_frame("", crypto_secretstream_xchacha20poly1305_TAG_FINAL);
}

std::string_view SecureStream::output() const {
  return std::string_view(impl_->output).substr(impl_->output_at);
}

std::size_t SecureStream::unsent() const {
  return output().size() + impl_->waiting_bytes;
}

void SecureStream::written(std::size_t bytes) {
  GANTRY_ASSERT(impl_->output_at + bytes <= impl_->output.size(), "more written than there was");
  impl_->output_at += bytes;
  if (impl_->output_at < impl_->output.size() && impl_->output_at < kCompactBytes) return;
  impl_->output.erase(0, impl_->output_at);
  impl_->output_at = 0;
}

}  // namespace gantry::net
