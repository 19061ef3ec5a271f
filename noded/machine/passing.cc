#include "noded/machine/passing.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace gantry::runtime {

bool pass(const Fd& socket, std::string_view bytes, int fd) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  for (;;) {
    const ssize_t n = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
    if (n >= 0 || errno != EINTR) return n == static_cast<ssize_t>(bytes.size());
  }
}

Passed take_passed(const Fd& socket) {
  std::array<char, kMaxPassedBytes> bytes{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t n = 0;
  while ((n = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  Passed passed;
  if (n <= 0) return passed;
  passed.bytes.assign(bytes.data(), static_cast<std::size_t>(n));
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    passed.fd.reset(fd);
  }
  return passed;
}

}  // namespace gantry::runtime
