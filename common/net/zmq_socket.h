// What Router and Dealer have in common: a ZeroMQ context with its one socket, and a helper to set
// options. Private to common/net; it is the only header here that includes zmq.h.
#pragma once

#include <zmq.h>

#include <memory>
#include <string>
#include <string_view>

#include "common/net/keys.h"
#include "common/result.h"
#include "common/types.h"

namespace gantry::net {

struct ZmqContextEnd {
  void operator()(void* context) const { zmq_ctx_term(context); }
};
struct ZmqSocketEnd {
  void operator()(void* socket) const { zmq_close(socket); }
};
using ZmqContext = std::unique_ptr<void, ZmqContextEnd>;
using ZmqSocket = std::unique_ptr<void, ZmqSocketEnd>;

// A frame that closes itself.
class ZmqFrame {
 public:
  ZmqFrame() { zmq_msg_init(&message_); }
  ZmqFrame(const ZmqFrame&) = delete;
  ZmqFrame& operator=(const ZmqFrame&) = delete;
  ~ZmqFrame() { zmq_msg_close(&message_); }
  // Receives a frame; returns false if there is none now.
  bool receive(void* socket);
  [[nodiscard]] bool more() const { return zmq_msg_more(&message_) != 0; }
  [[nodiscard]] std::string_view view() const;
  // A property of the connection that brought the frame; "" if it has no such property.
  [[nodiscard]] std::string_view property(const char* name);

 private:
  mutable zmq_msg_t message_;
};

// Sets options one by one and remembers the first failure.
class ZmqOptions {
 public:
  explicit ZmqOptions(void* socket) : socket_(socket) {}
  ZmqOptions& number(int option, int value);
  ZmqOptions& number64(int option, std::int64_t value);
  ZmqOptions& bytes(int option, std::string_view value);
  [[nodiscard]] Result<void> result() const;

 private:
  void note(int option, int failed);
  void* socket_;
  int failed_option_ = 0;
  int error_ = 0;
};

enum class SendOutcome { sent, full, gone };
// Sends one frame without blocking. Any error other than "would block" and "no such peer" is our
// bug.
SendOutcome send_frame(void* socket, std::string_view frame, bool more);

bool zmq_readable(void* socket);
int zmq_descriptor(void* socket);
std::string zmq_error();

}  // namespace gantry::net
