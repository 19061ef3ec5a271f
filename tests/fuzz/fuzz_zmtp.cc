// The client's handshake and frame parser against a server that says anything: once byte by byte
// of a cut, once whole; both must come to the same end.
#include <sodium.h>

#include <cstdint>
#include <cstring>

#include "common/assert.h"
#include "common/net/zmtp.h"

namespace {

// Fixed, so that a crash can be reproduced.
const gantry::net::KeyPair& keys() {
  static const gantry::net::KeyPair pair = [] {
    gantry::net::KeyPair p;
    p.secret_key.bytes.fill(7);
    crypto_scalarmult_base(p.public_key.bytes.data(), p.secret_key.bytes.data());
    return p;
  }();
  return pair;
}

bool feed(gantry::net::ZmtpClient& client, std::string_view bytes) {
  if (!client.feed(bytes)) return false;
  while (client.next()) {
  }
  client.written(client.output().size());
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Half of the inputs start behind a proper greeting.
  std::string start;
  if (size > 0 && data[0] % 2 == 1)
    start = std::string("\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01", 12) + "CURVE" + std::string(47, '\0');
  gantry::net::ZmtpClient whole(keys().public_key, keys());
  const bool ok = feed(whole, start) && feed(whole, bytes);
  gantry::net::ZmtpClient pieces(keys().public_key, keys());
  const std::size_t cut = size / 2;
  const bool same =
      feed(pieces, start) && feed(pieces, bytes.substr(0, cut)) && feed(pieces, bytes.substr(cut));
  GANTRY_ASSERT(ok == same, "how the bytes are cut must not matter");
  return 0;
}
