// Fuzzes SecureStream as client and as listener, and the reader of its ticket. Also overwrites
// bytes of a valid peer: the receiver may then return only data that the peer really sent.
#include <cstdint>

#include "common/assert.h"
#include "common/net/secure_stream.h"

using gantry::net::SecureStream;
using gantry::net::StreamRole;

namespace {

std::string take(SecureStream& stream) {
  std::string bytes(stream.output());
  stream.written(bytes.size());
  return bytes;
}

void hostile(StreamRole role, std::string_view bytes) {
  auto stream = SecureStream::create(role, std::string(32, 'k'));
  const std::size_t cut = bytes.size() / 3;
  if (!stream->feed(bytes.substr(0, cut))) return;
  if (!stream->feed(bytes.substr(cut))) return;
  GANTRY_ASSERT(!stream->next(), "a frame without the key");
}

void overwritten(std::string_view bytes) {
  auto dialler = SecureStream::create(StreamRole::dialler, std::string(32, 'k'), "ticket");
  auto listener = SecureStream::create(StreamRole::listener, std::string(32, 'k'));
  const auto reached = listener->feed(take(*dialler));
  const auto back = dialler->feed(take(*listener));
  GANTRY_ASSERT(reached && back, "a proper handshake");
  (void)dialler->send("first");
  (void)dialler->send("second");
  std::string wire = take(*dialler);
  const std::size_t at = static_cast<unsigned char>(bytes[0]) % wire.size();
  wire.replace(at, bytes.size() - 1, bytes.substr(1));
  (void)listener->feed(wire);
  while (const auto frame = listener->next())
    GANTRY_ASSERT(*frame == "first" || *frame == "second", "a frame that nobody sent");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)gantry::net::read_ticket(bytes);
  hostile(StreamRole::dialler, bytes);
  hostile(StreamRole::listener, bytes);
  if (size > 0) overwritten(bytes);
  return 0;
}
