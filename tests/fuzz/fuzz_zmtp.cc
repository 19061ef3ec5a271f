// Fuzzes the handshake and the frame parser of ZMTP, as client and as server. The same bytes are
// fed once in pieces and once whole; both must come to the same end.
#include <sodium.h>

#include <cstdint>
#include <cstring>

#include "common/assert.h"
#include "common/net/zmtp.h"
#include "common/net/zmtp_server.h"

namespace {

// The keys are fixed, so that a crash can be reproduced.
const gantry::net::KeyPair& keys() {
  static const gantry::net::KeyPair pair = [] {
    gantry::net::KeyPair p;
    p.secret_key.bytes.fill(7);
    crypto_scalarmult_base(p.public_key.bytes.data(), p.secret_key.bytes.data());
    return p;
  }();
  return pair;
}

template <class Engine>
bool feed(Engine& engine, std::string_view bytes) {
  if (!engine.feed(bytes)) return false;
  while (engine.next()) {
  }
  engine.written(engine.output().size());
  return true;
}

template <class Engine>
void feed_twice(Engine whole, Engine pieces, std::string_view start, std::string_view bytes) {
  const bool ok = feed(whole, start) && feed(whole, bytes);
  const std::size_t cut = bytes.size() / 2;
  const bool same =
      feed(pieces, start) && feed(pieces, bytes.substr(0, cut)) && feed(pieces, bytes.substr(cut));
  GANTRY_ASSERT(ok == same, "how the bytes are cut must not matter");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // For half of the inputs the fuzzed bytes follow a valid greeting.
  std::string start;
  if (size > 0 && data[0] % 2 == 1)
    start = std::string("\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01", 12) + "CURVE" + std::string(47, '\0');
  using gantry::net::ZmtpClient;
  using gantry::net::ZmtpServer;
  feed_twice(ZmtpClient(keys().public_key, keys()), ZmtpClient(keys().public_key, keys()), start,
             bytes);
  feed_twice(ZmtpServer(keys()), ZmtpServer(keys()), start, bytes);
  return 0;
}
