// Fuzzes every message of messages.def with header and body. A body that decodes can be encoded
// again, and decodes to the same bytes.
#include <cstdint>
#include <cstdlib>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "common/net/header.h"
#include "common/proto/messages.h"

namespace gantry {
namespace {

template <class T>
void check(std::string_view body) {
  const auto message = codec::decode<T>(body);
  if (!message) return;
  const Bytes once = codec::encode(*message);
  const auto again = codec::decode<T>(once);
  GANTRY_ASSERT(again, "what we encode must decode");
  GANTRY_ASSERT(codec::encode(*again) == once, "encoding must not change a message");
}

void dispatch(std::uint16_t type, std::string_view body) {
  switch (type) {
#define X(type, number, ...) \
  case number:               \
    return check<proto::type>(body);
#include "common/proto/messages.def"
#undef X
    default: return;
  }
}

}  // namespace
}  // namespace gantry

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto header = gantry::net::decode_header(bytes.substr(0, gantry::net::kHeaderBytes));
  if (!header) return 0;
  // Only one byte of the type is used, so that the fuzzer finds the valid numbers soon.
  gantry::dispatch(header->type & 0xff, bytes.substr(gantry::net::kHeaderBytes));
  return 0;
}
