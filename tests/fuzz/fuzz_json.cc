// Fuzzes the decoding of JSON. A decoded value can be written, and reads back as the same value
// (doubles are left out, because their last bit may differ).
#include <cstdint>

#include "common/assert.h"
#include "common/codec/define.h"
#include "common/proto/messages.h"

namespace gantry {
namespace {

template <class T>
void check(std::string_view text) {
  const auto value = codec::from_json<T>(text);
  if (!value) return;
  const std::string once = codec::to_json(*value);
  const auto again = codec::from_json<T>(once);
  GANTRY_ASSERT(again, "what we write must be readable");
  GANTRY_ASSERT(codec::to_json(*again) == once, "writing must not change a value");
}

}  // namespace
}  // namespace gantry

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gantry::check<gantry::proto::SubmitJob>(text);
  gantry::check<gantry::proto::JobRow>(text);
  gantry::check<gantry::proto::ListPartitionsReply>(text);
  (void)gantry::codec::from_json<gantry::proto::NodeRow>(text);
  return 0;
}
