// Fuzzes what tasks and other nodes send to the PMI server of a step: each input is answered, or
// its connection is closed with one message; and values read back as they were put.
#include <algorithm>
#include <cstdint>

#include "common/assert.h"
#include "noded/pmi/pmi2/server.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry;
  if (size < 2) return 0;
  const std::size_t middle = data[0] * size / 256;
  const bool peer = (data[1] & 1) != 0;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  bytes.remove_prefix(2);
  pmix::Layout layout{"7.0", 0, {"a", "b"}, {2, 1}};
  if (!peer) layout = {"7.0", 0, {"a"}, {2}};
  int complaints = 0;
  pmi2::Server server(layout, {[](std::uint32_t, std::string_view) {}, [](std::uint32_t) {},
                               [](std::uint32_t, std::string_view) {},
                               [&](std::uint32_t, int, const std::string&) { ++complaints; },
                               [&](std::uint32_t, const std::string&) { ++complaints; }});
  server.from_task(1, "cmd=init pmi_version=2 pmi_subversion=0\n");
  server.from_task(0, bytes.substr(0, middle));
  if (peer)
    server.from_peer(1, bytes.substr(std::min(middle, bytes.size())));
  else
    server.from_task(1, bytes.substr(std::min(middle, bytes.size())));
  server.gone(0);
  GANTRY_ASSERT(complaints <= 1, "one message");
  std::size_t at = 0;
  pmi2::Command command, again;
  if (pmi2::take(pmi2::Version::v2, bytes, at, command) != pmi2::Taken::command) return 0;
  pmi2::Reply reply(pmi2::Version::v2, "x");
  for (const auto& [key, value] : command.values) reply.add(key, value);
  at = 0;
  if (reply.bytes().size() > pmi2::kMaxCommand) return 0;
  if (std::any_of(command.values.begin(), command.values.end(),
                  [](const auto& pair) { return pair.first.find(';') != std::string::npos; }))
    return 0;  // A key with ';' cannot be written, because the protocol has no way to escape it.
  GANTRY_ASSERT(pmi2::take(pmi2::Version::v2, reply.bytes(), at, again) == pmi2::Taken::command,
                "what was read can be said");
  GANTRY_ASSERT(again.values == command.values, "it reads back");
  return 0;
}
