// An encrypted stream of frames over any connected socket, for the standard input and output of
// steps. Both ends share one 32-byte key. The keys of a connection are made from it and from new
// random values of both ends, so a recorded stream cannot be replayed.
//
//   hello, each way    "GSS1", u16 length of ticket, ticket, 32 random bytes   (plain text)
//   then, each way     24 bytes (secretstream header), then frames:
//   frame              u32 length, XChaCha20-Poly1305 secretstream of that length; the last one is
//                      marked final, so that a cut connection does not look like the end
//
// The ticket of the connecting side identifies the stream in plain text (for example a step and a
// node), so that the listener can look up the key: it calls read_ticket() on bytes read with
// MSG_PEEK, before it constructs a SecureStream.
//
// Before the other end has proved the key, a stream holds its hello and no more than the frame that
// is the proof. The caller decides how long to wait for that.
//
// SecureStream does no I/O: give it what arrives with feed(), take frames with next(), write what
// output() returns, and report that with written(). Errors are final.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::net {

inline constexpr std::size_t kStreamKeyBytes = 32;
inline constexpr std::size_t kMaxStreamFrame = 1 << 20;  // bytes of one frame's content
inline constexpr std::size_t kMaxTicket = 4096;          // bytes

// The bytes of a hello with a ticket of this size.
constexpr std::size_t stream_hello_bytes(std::size_t ticket) {
  return 4 + 2 + ticket + 32;
}

enum class StreamRole { dialler, listener };

// The ticket at the start of a dialler's bytes; nullopt if more bytes are needed.
Result<std::optional<Bytes>> read_ticket(std::string_view bytes);

class SecureStream {
 public:
  // `key` has exactly kStreamKeyBytes; a listener's ticket is empty.
  static Result<SecureStream> create(StreamRole role, std::string_view key,
                                     std::string_view ticket = {});
  SecureStream(SecureStream&&) noexcept;
  SecureStream& operator=(SecureStream&&) noexcept;
  ~SecureStream();

  Result<void> feed(std::string_view bytes);
  std::optional<Bytes> next();
  // True when the other end has closed its stream, and next() has returned everything.
  [[nodiscard]] bool finished() const;
  [[nodiscard]] bool ready() const;  // true when the other end has proved that it has the key

  // Queues a frame. Until the hello of the other end has arrived, frames wait inside. The error is
  // invalid_argument beyond kMaxStreamFrame, and wrong_state after finish().
  Result<void> send(std::string_view frame);
  void finish();  // closes this end's stream; queued frames are still sent
  [[nodiscard]] std::string_view output() const;
  // Bytes that send() was given and that written() has not reported yet, including frames that wait
  // inside.
  [[nodiscard]] std::size_t unsent() const;
  void written(std::size_t bytes);

 private:
  struct Impl;
  explicit SecureStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Functions that block, for programs that have nothing else to do. `fd` may be blocking or not.
Result<void> write_all(int fd, SecureStream& stream, Duration timeout);
// The next frame; nullopt at the orderly end; the error is unavailable if the connection was cut.
Result<std::optional<Bytes>> read_frame(int fd, SecureStream& stream, Duration timeout);

}  // namespace gantry::net
