#include "common/net/descriptors.h"

#include <sys/socket.h>

#include <cstring>

#include "common/assert.h"

namespace gantry::net {

bool pass_descriptors(int socket, std::span<const int> fds, int flags) {
  constexpr std::size_t kMost = 8;
  GANTRY_ASSERT(fds.size() <= kMost, "so many descriptors have no room in one message");
  char byte = 'S';
  iovec io{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(kMost * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  return ::sendmsg(socket, &message, flags | MSG_NOSIGNAL) == 1;
}

}  // namespace gantry::net
