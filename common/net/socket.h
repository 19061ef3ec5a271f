// Plain stream sockets for commands and step I/O: they connect to an address with a time limit, and
// wait until they are ready, whatever signals come. All descriptors are non-blocking and
// close-on-exec.
#pragma once

#include <string>
#include <string_view>

#include "common/result.h"
#include "common/time/time.h"

namespace gantry::net {

// A descriptor that closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  [[nodiscard]] int fd() const { return fd_; }
  int release();

 private:
  int fd_ = -1;
};

// A time limit on the monotonic clock.
class Deadline {
 public:
  explicit Deadline(Duration from_now);
  [[nodiscard]] int left_ms() const;  // rounded up; 0 once it has passed

 private:
  std::int64_t at_us_;
};

// Splits "HOST:PORT", where HOST may be in brackets. The error invalid_argument means that it has
// another form.
struct HostPort {
  std::string host;
  std::string port;
};
Result<HostPort> split_address(std::string_view text);

// Connects to "tcp://HOST:PORT", "HOST:PORT" or "ipc:///PATH". Names are resolved, and every
// address is tried. `from` is the address of this host from which the connection has to come, as
// numbers; "" = any.
Result<Socket> connect_to(const std::string& address, const Deadline& deadline,
                          const std::string& from = {});

enum class Wait { read, write, either };
// The error timed_out means that `fd` was not ready in time.
Result<void> wait_for(int fd, Wait what, const Deadline& deadline);

// Returns the number of bytes moved; 0 means "not now" (try again after wait_for). The error
// unavailable means that the other side has closed.
Result<std::size_t> read_some(int fd, char* into, std::size_t most);
Result<std::size_t> write_some(int fd, std::string_view bytes);

}  // namespace gantry::net
