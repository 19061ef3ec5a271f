// A command's connection to the controller through a unix socket of the node daemon, which relays
// it. A command needs no key and no Authenticate there: the node vouches for the job or the user,
// as the kernel reports it to the node.
//
// Inside a job $GANTRY_JOB_SOCKET (set in every job's environment) is the job's own socket. On a
// login node all users share one (cli/session.cc).
//
// Messages and headers are the same as over ZeroMQ, framed as in stream_frame.h. Calls block, each
// with its own time limit. After an error other than timed_out the connection cannot be used any
// more.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/net/socket.h"
#include "common/net/stream_frame.h"
#include "common/result.h"
#include "common/time/time.h"

namespace gantry::net {

inline constexpr const char* kJobSocketVariable = "GANTRY_JOB_SOCKET";

class JobSocketClient {
 public:
  static Result<JobSocketClient> connect(const std::string& path, Duration timeout);

  // The user whose daemon listens there; nullopt if the kernel does not report it.
  [[nodiscard]] std::optional<Uid> listener() const;
  // Queues a message, which is sent with the next send().
  void queue(const MessageHeader& header, std::string_view body) {
    append_frame(queued_, header, body);
  }
  Result<void> send(const MessageHeader& header, std::string_view body, Duration timeout);
  Result<StreamMessage> receive(Duration timeout);
  // When the descriptor is readable, receive(0) may return something. Call receive() until
  // timed_out before polling.
  [[nodiscard]] int descriptor() const { return socket_.fd(); }

 private:
  explicit JobSocketClient(Socket socket) : socket_(std::move(socket)) {}
  Socket socket_;
  StreamFrames frames_;
  Bytes queued_;
};

}  // namespace gantry::net
