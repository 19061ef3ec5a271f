#include "noded/net/unix_socket.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gantry::node {

// The path of a unix socket has at most 107 bytes, and a state directory's path is easily longer.
// So the name is given relative to the directory's descriptor.
Result<net::Socket> listen_in(int directory, const char* name, const char* whose) {
  const auto failed = [&](const char* what) {
    return fail(ErrorCode::io_error,
                fmt::format("{} for {}: {}", what, whose, std::strerror(errno)));
  };
  net::Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.fd() < 0) return failed("socket");
  ::unlinkat(directory, name, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", directory, name);
  std::memcpy(address.sun_path, path.data(), path.size());
  if (::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failed("bind");
  // Every user may connect; whose connections are kept is asked of each.
  if (::fchmodat(directory, name, 0666, 0) != 0) return failed("chmod");
  if (::listen(socket.fd(), 1024) != 0) return failed("listen");
  return socket;
}

std::optional<UnixPeer> peer_of(int fd) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return std::nullopt;
  return UnixPeer{Uid{who.uid}, who.pid};
}

Result<net::Socket> open_directory(const std::string& path) {
  net::Socket out(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (out.fd() < 0)
    return fail(ErrorCode::io_error, fmt::format("{}: {}", path, std::strerror(errno)));
  return out;
}

}  // namespace gantry::node
