// Sockets that servers listen on, and who has connected to them.
#pragma once

#include <string>

#include "common/net/socket.h"
#include "common/result.h"

namespace gantry::net {

struct Listening {
  Socket socket;
  std::string endpoint;  // as bound, with its real port
  std::string path;      // of a unix socket, to be removed at the end; "" = none
};

// "tcp://HOST:PORT" (HOST * = every address, PORT 0 or * = any free one) or "ipc:///PATH", where a
// socket that somebody left behind is replaced. unavailable, with the reason.
Result<Listening> listen_at(const std::string& endpoint, int backlog);

struct Accepted {
  Socket socket;
  std::string address;  // "10.0.0.7", "local" for a unix socket
};
// So many files may be open for connections, and some for everything else, within what the system
// lets us have.
void raise_file_limit(std::size_t connections);
std::size_t file_limit();
// Of a descriptor that was just accepted. False: so many files are open that what is left is for
// other things than connections, for which a daemon without any would end. Close it.
bool leaves_room(int fd);

// wrong_state: nobody waits. limit_exceeded: no descriptors for connections or no memory are left.
Result<Accepted> accept_from(const Listening& listening);

}  // namespace gantry::net
