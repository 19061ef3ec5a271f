// Sockets on which servers listen, and the addresses of peers that have connected to them.
#pragma once

#include <string>

#include "common/net/socket.h"
#include "common/result.h"

namespace gantry::net {

struct Listening {
  Socket socket;
  std::string endpoint;  // the bound address, with its real port
  std::string path;      // path of a unix socket, to be removed at the end; "" = none
};

// Listens on "tcp://HOST:PORT" (HOST * = every address, PORT 0 or * = any free one) or
// "ipc:///PATH"; a socket file that a dead process left there is replaced. The error unavailable
// gives the reason.
Result<Listening> listen_at(const std::string& endpoint, int backlog);

struct Accepted {
  Socket socket;
  std::string address;  // "10.0.0.7", "local" for a unix socket
};
// Raises the limit of open files to what this many connections and everything else need, as far as
// the system allows.
void raise_file_limit(std::size_t connections);
std::size_t file_limit();
// Does a descriptor that was just accepted leave enough for other things than connections? A daemon
// without any descriptor would end. If it does not, the caller closes it.
bool leaves_room(int fd);

// The error wrong_state means that no connection waits; limit_exceeded means that descriptors for
// connections or memory have run out.
Result<Accepted> accept_from(const Listening& listening);

}  // namespace gantry::net
