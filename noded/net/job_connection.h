// One connection to the socket of a job: messages in, messages out, never blocking. Who is on the
// other end was checked when it was accepted. Owned by JobSockets.
//
// A peer that does not read is closed when kMaxUnsent bytes wait for it; one that sends what is no
// message is told so and closed.
#pragma once

#include <functional>
#include <string>

#include "common/loop/loop.h"
#include "common/net/socket.h"
#include "common/net/stream_frame.h"
#include "common/proto/node_report.h"

namespace gantry::node {

inline constexpr std::size_t kMaxUnsent = 64u << 20;   // bytes for one connection
inline constexpr std::size_t kReadPerTurn = 1u << 20;  // bytes of one connection

class JobConnection {
 public:
  struct Handlers {
    std::function<void(JobConnection&, net::StreamMessage&&)> message;
    std::function<void(std::uint64_t channel)> closed;  // destroys the connection; called last
  };
  JobConnection(loop::Loop& loop, net::Socket socket, proto::AttemptKey key, std::uint64_t channel,
                Handlers handlers);
  JobConnection(const JobConnection&) = delete;
  JobConnection& operator=(const JobConnection&) = delete;

  void send(const net::MessageHeader& header, std::string_view body);
  // A refusal in the words of the protocol, as the answer to `request`.
  void refuse(std::uint64_t request, ErrorCode code, std::string message);
  // Hands a copy of `fd` to the peer, with one byte of data. False if it does not read just now.
  bool pass_descriptor(int fd);

  [[nodiscard]] const proto::AttemptKey& key() const { return key_; }
  [[nodiscard]] std::uint64_t channel() const { return channel_; }
  [[nodiscard]] int fd() const { return socket_.fd(); }

 private:
  void on_readable();
  void flush();
  void close_soon();

  loop::Loop& loop_;
  net::Socket socket_;
  proto::AttemptKey key_;
  std::uint64_t channel_;
  Handlers handlers_;
  net::StreamFrames frames_;
  Bytes unsent_;
  bool closing_ = false;
  loop::Watch readable_;
  loop::Watch writable_;
  loop::Watch close_;
};

}  // namespace gantry::node
