// TCP sockets for HTTP: each call ends by its deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/fd.h"
#include "common/result.h"

namespace gantry::http {

using Deadline = std::chrono::steady_clock::time_point;

// A numeric address or a name; port 0 = any free one. unavailable, with the sentence.
Result<Fd> listen_on(const std::string& host, std::uint16_t port);
std::uint16_t port_of(const Fd& listening);
Result<Fd> connect_to(const std::string& host, std::uint16_t port, Deadline deadline);

// Waits until it can be read; false: the deadline came, or `other` (-1 = none) is readable.
bool wait_readable(const Fd& fd, int other, Deadline deadline);
// What has come, appended; false at the end, an error, or the deadline.
bool read_some(const Fd& fd, std::string& out, Deadline deadline);
bool write_all(const Fd& fd, std::string_view text, Deadline deadline);

}  // namespace gantry::http
