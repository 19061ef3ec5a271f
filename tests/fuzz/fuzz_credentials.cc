// Fuzzes credentials and keys in text form: no text is accepted unless it is signed, and none
// crashes the reader.
#include <cstdint>

#include "common/assert.h"
#include "common/auth/registered_key.h"
#include "common/auth/signature.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const net::PublicKey session{};
  const auto key = auth::check_key_credential(bytes, session, Instant{1'000'000'000'000});
  GANTRY_ASSERT(!key, "a credential that nobody signed");
  if (const auto parsed = net::parse_public_key(bytes))
    GANTRY_ASSERT(*net::parse_public_key(net::to_z85(*parsed)) == *parsed, "keys must read back");
  (void)auth::parse_verify_key(bytes);
  return 0;
}
