// A command's way to the controller from inside a job: the job's own unix socket, which the node
// daemon listens on and relays from. $GANTRY_JOB_SOCKET (set in every job's environment) names it;
// a command uses it whenever the variable is set, and needs no key and no Authenticate: the node
// vouches for the job, the kernel for the user.
//
// The same messages with the same headers as over ZeroMQ, framed as in stream_frame.h. Calls block,
// each with its own limit. After an error other than timed_out the connection is of no more use.
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

  Result<void> send(const MessageHeader& header, std::string_view body, Duration timeout);
  Result<StreamMessage> receive(Duration timeout);
  // Readable means receive(0) may have something. Call receive() until timed_out first.
  [[nodiscard]] int descriptor() const { return socket_.fd(); }

 private:
  explicit JobSocketClient(Socket socket) : socket_(std::move(socket)) {}
  Socket socket_;
  StreamFrames frames_;
};

}  // namespace gantry::net
