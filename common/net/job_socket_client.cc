#include "common/net/job_socket_client.h"

#include <sys/socket.h>

#include <utility>

namespace gantry::net {

Result<JobSocketClient> JobSocketClient::connect(const std::string& path, Duration timeout) {
  auto socket = connect_to("ipc://" + path, Deadline(timeout));
  if (!socket) return tl::unexpected(socket.error());
  return JobSocketClient(std::move(*socket));
}

std::optional<Uid> JobSocketClient::listener() const {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(socket_.fd(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return std::nullopt;
  return Uid{who.uid};
}

Result<void> JobSocketClient::send(const MessageHeader& header, std::string_view body,
                                   Duration timeout) {
  Bytes out = std::exchange(queued_, {});
  append_frame(out, header, body);
  const Deadline deadline(timeout);
  std::string_view rest = out;
  while (!rest.empty()) {
    ASSIGN(sent, write_some(socket_.fd(), rest));
    rest.remove_prefix(*sent);
    if (*sent > 0) continue;
    TRY(wait_for(socket_.fd(), Wait::write, deadline));
  }
  return {};
}

Result<StreamMessage> JobSocketClient::receive(Duration timeout) {
  const Deadline deadline(timeout);
  char buffer[65536];
  while (true) {
    ASSIGN(message, frames_.next());
    if (*message) return std::move(**message);
    ASSIGN(got, read_some(socket_.fd(), buffer, sizeof buffer));
    if (*got > 0) {
      frames_.feed({buffer, *got});
      continue;
    }
    TRY(wait_for(socket_.fd(), Wait::read, deadline));
  }
}

}  // namespace gantry::net
