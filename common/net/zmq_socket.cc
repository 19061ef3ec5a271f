#include "common/net/zmq_socket.h"

#include <fmt/core.h>

#include <cerrno>

#include "common/assert.h"

namespace gantry::net {

std::string zmq_error() {
  return zmq_strerror(zmq_errno());
}

bool ZmqFrame::receive(void* socket) {
  while (true) {
    if (zmq_msg_recv(&message_, socket, ZMQ_DONTWAIT) >= 0) return true;
    if (zmq_errno() == EINTR) continue;
    GANTRY_ASSERT(zmq_errno() == EAGAIN, zmq_error());
    return false;
  }
}

std::string_view ZmqFrame::view() const {
  return {static_cast<const char*>(zmq_msg_data(&message_)), zmq_msg_size(&message_)};
}

std::string_view ZmqFrame::property(const char* name) {
  const char* value = zmq_msg_gets(&message_, name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

void ZmqOptions::note(int option, int failed) {
  if (failed == 0 || error_ != 0) return;
  failed_option_ = option;
  error_ = zmq_errno();
}
ZmqOptions& ZmqOptions::number(int option, int value) {
  note(option, zmq_setsockopt(socket_, option, &value, sizeof value));
  return *this;
}
ZmqOptions& ZmqOptions::number64(int option, std::int64_t value) {
  note(option, zmq_setsockopt(socket_, option, &value, sizeof value));
  return *this;
}
ZmqOptions& ZmqOptions::bytes(int option, std::string_view value) {
  note(option, zmq_setsockopt(socket_, option, value.data(), value.size()));
  return *this;
}
Result<void> ZmqOptions::result() const {
  if (error_ == 0) return {};
  return fail(ErrorCode::internal,
              fmt::format("ZeroMQ refuses option {}: {}", failed_option_, zmq_strerror(error_)));
}

SendOutcome send_frame(void* socket, std::string_view frame, bool more) {
  const int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
  while (zmq_send(socket, frame.data(), frame.size(), flags) < 0) {
    if (zmq_errno() == EINTR) continue;
    if (zmq_errno() == EAGAIN) return SendOutcome::full;
    GANTRY_ASSERT(zmq_errno() == EHOSTUNREACH, zmq_error());
    return SendOutcome::gone;
  }
  return SendOutcome::sent;
}

bool zmq_readable(void* socket) {
  int events = 0;
  std::size_t size = sizeof events;
  while (zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) != 0)
    GANTRY_ASSERT(zmq_errno() == EINTR, zmq_error());
  return (events & ZMQ_POLLIN) != 0;
}

int zmq_descriptor(void* socket) {
  int fd = -1;
  std::size_t size = sizeof fd;
  const int failed = zmq_getsockopt(socket, ZMQ_FD, &fd, &size);
  GANTRY_ASSERT(failed == 0, zmq_error());
  return fd;
}

}  // namespace gantry::net
