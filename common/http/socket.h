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

// Listens on a numeric address or a name; port 0 = any free one. The error unavailable has the
// sentence.
Result<Fd> listen_on(const std::string& host, std::uint16_t port);
std::uint16_t port_of(const Fd& listening);
Result<Fd> connect_to(const std::string& host, std::uint16_t port, Deadline deadline);

// Waits until the socket is readable. Returns false if the deadline came first, or if `other` (-1 =
// none) became readable.
bool wait_readable(const Fd& fd, int other, Deadline deadline);
// Appends what has come. Returns false at the end of the stream, on an error, or at the deadline.
bool read_some(const Fd& fd, std::string& out, Deadline deadline);
bool write_all(const Fd& fd, std::string_view text, Deadline deadline);

}  // namespace gantry::http
