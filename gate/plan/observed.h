// What a process of HAProxy says of itself: `show stat` and `show servers state`, read; pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "gate/plan/layout.h"

namespace gantry::gate {

struct SeenServer {
  std::string address;  // HOST:PORT
  std::uint32_t weight = 0;
  std::uint32_t most = 0;
  ServerState state = ServerState::maint;
  std::uint32_t running = 0;  // requests in it
};

struct SeenBackend {
  std::map<std::string, SeenServer> servers;
  std::uint32_t waiting = 0;  // requests that wait for a server
};

using Seen = std::map<std::string, SeenBackend>;  // by the backend's name

// `show stat -1 6 -1`, which is CSV with a line of names.
Seen read_stat(std::string_view csv);

// `show held` of our Lua program: a service and a number in each line.
std::map<std::string, std::uint32_t> read_held(std::string_view text);

// `show map FILE`: a pointer, a key and a value in each line.
std::map<std::string, std::string> read_table(std::string_view text);

}  // namespace gantry::gate
