// Fuzzes the framing of a job's socket: in whatever pieces the bytes arrive, the same messages come
// out, up to the same refusal.
#include <cstdint>

#include "common/assert.h"
#include "common/net/stream_frame.h"

using gantry::net::StreamFrames;

namespace {

// Feeds `step` bytes at a time and returns the messages that came out, encoded again.
std::string through(std::string_view bytes, std::size_t step) {
  StreamFrames frames;
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    frames.feed(bytes.substr(at, step));
    while (true) {
      const auto message = frames.next();
      if (!message) return out + "refused";
      if (!*message) break;
      gantry::net::append_frame(out, (*message)->header, (*message)->body);
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.size() < 2) return 0;
  const std::size_t step = 1 + static_cast<std::size_t>(bytes[0] & 0x3f);
  const std::string_view rest = bytes.substr(1);
  const std::string whole = through(rest, rest.size());
  GANTRY_ASSERT(through(rest, step) == whole, "cutting changes nothing");
  GANTRY_ASSERT(rest.starts_with(whole) || whole.ends_with("refused"), "nothing is made up");
  return 0;
}
