// An encrypted stream of frames over any connected socket, for the standard input and output of
// steps. Both ends share one 32-byte key; fresh nonces of both ends make the keys of the
// connection, so a recorded stream cannot be played to anyone again.
//
//   hello, each way    "GSS1", u16 length of ticket, ticket, 32 random bytes   (plain text)
//   then, each way     24 bytes (secretstream header), then frames:
//   frame              u32 length, XChaCha20-Poly1305 secretstream of that length; the last one is
//                      marked final, so that a cut connection is no end of stream
//
// The dialler's ticket says in the open which stream this is (a step and a node, say), so that the
// listener can look the key up: read_ticket() on bytes seen with MSG_PEEK, before constructing.
//
// Before the other end has proved the key, a stream holds its hello and no more than the frame that
// is the proof. How long to wait for that is for the caller to say.
//
// SecureStream does no I/O: put what arrives into feed(), take frames with next(), write what
// output() has and say so with written(). Errors are final.
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

// Of a hello with such a ticket.
constexpr std::size_t stream_hello_bytes(std::size_t ticket) {
  return 4 + 2 + ticket + 32;
}

enum class StreamRole { dialler, listener };

// The ticket at the start of a dialler's bytes; nothing if more bytes are needed.
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
  // True once the other end said that nothing more comes, and next() has given everything.
  [[nodiscard]] bool finished() const;
  [[nodiscard]] bool ready() const;  // the other end has proved that it has the key

  // Before the hello of the other end is there, frames wait inside. invalid_argument beyond
  // kMaxStreamFrame; wrong_state after finish().
  Result<void> send(std::string_view frame);
  void finish();  // nothing more will be sent; queued frames still go out
  [[nodiscard]] std::string_view output() const;
  // Bytes that send() was given and written() has not told of, also those that wait inside.
  [[nodiscard]] std::size_t unsent() const;
  void written(std::size_t bytes);

 private:
  struct Impl;
  explicit SecureStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Blocking use, for programs with nothing else to do. `fd` may be blocking or not.
Result<void> write_all(int fd, SecureStream& stream, Duration timeout);
// The next frame; nothing at the orderly end; unavailable if the connection was cut.
Result<std::optional<Bytes>> read_frame(int fd, SecureStream& stream, Duration timeout);

}  // namespace gantry::net
