// Plain stream sockets for commands and step I/O: connecting by address with a time limit, and
// waiting for readiness across signals. All descriptors are non-blocking and close-on-exec.
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

// A point on the monotonic clock.
class Deadline {
 public:
  explicit Deadline(Duration from_now);
  [[nodiscard]] int left_ms() const;  // rounded up; 0 once it has passed

 private:
  std::int64_t at_us_;
};

// Of "HOST:PORT", where HOST may stand in brackets. invalid_argument: it is none.
struct HostPort {
  std::string host;
  std::string port;
};
Result<HostPort> split_address(std::string_view text);

// "tcp://HOST:PORT", "HOST:PORT" or "ipc:///PATH". Names are resolved; every address is tried.
// `from`: the address of this host that the connection has to come from, as numbers; "" = any.
Result<Socket> connect_to(const std::string& address, const Deadline& deadline,
                          const std::string& from = {});

enum class Wait { read, write, either };
// timed_out if `fd` is not ready by then.
Result<void> wait_for(int fd, Wait what, const Deadline& deadline);

// Bytes moved; 0 means "not now" (try after wait_for). unavailable: the other side closed.
Result<std::size_t> read_some(int fd, char* into, std::size_t most);
Result<std::size_t> write_some(int fd, std::string_view bytes);

}  // namespace gantry::net
