// ZeroMQ asks an authenticator (RFC 27, ZAP) about every new CURVE connection. Ours accepts every
// key and names the connection by it (User-Id = hex of the client's public key): who a key belongs
// to is decided per message, above. It has a thread of its own, so that a busy loop does not delay
// handshakes; the thread ends with the context.
#pragma once

#include <thread>

#include "common/net/zmq_socket.h"

namespace gantry::net {

class ZapAcceptor {
 public:
  // Must come before the first bind of a CURVE server in `context`.
  static Result<ZapAcceptor> start(void* context);
  ZapAcceptor(ZapAcceptor&&) noexcept = default;
  ~ZapAcceptor();  // before the context ends: waits for the thread

 private:
  ZapAcceptor(ZmqSocket stop, std::thread thread)
      : stop_(std::move(stop)), thread_(std::move(thread)) {}
  ZmqSocket stop_;
  std::thread thread_;
};

}  // namespace gantry::net
