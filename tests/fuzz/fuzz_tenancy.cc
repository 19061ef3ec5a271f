// Fuzzes documents and manifests: what is accepted can be written and reads back as the same, and
// what is refused has an error with its place.
#include "common/assert.h"
#include "config/tenancy/files/load.h"
#include "config/tenancy/write.h"

using namespace gantry;
using namespace gantry::tenancy;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto loaded = load_text(text, "f.yaml", {});
  if (!loaded) {
    GANTRY_ASSERT(loaded.error().message.find("f.yaml") != std::string::npos, "it has a place");
    return 0;
  }
  const auto again = load_text(to_text(loaded->documents), "again.yaml", {});
  GANTRY_ASSERT(again, "what is written can be read");
  GANTRY_ASSERT(again->documents == loaded->documents, "and is the same");
  return 0;
}
