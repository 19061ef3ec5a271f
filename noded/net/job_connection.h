// One connection to the socket of a job: messages in, messages out, never blocking. Who is on the
// other end was checked when it was accepted. Owned by JobSockets.
//
// What the connections of one job hold together is bounded (JobBudget): messages that have not
// arrived whole, and answers that are not read. The connection that goes beyond is closed, as is
// one that sends what is no message; it is told why.
#pragma once

#include <functional>
#include <string>

#include "common/loop/loop.h"
#include "common/net/socket.h"
#include "common/net/stream_frame.h"
#include "common/proto/node_report.h"

namespace gantry::node {

inline constexpr std::size_t kMostHeldOfJob = 32u << 20;    // bytes of unfinished messages
inline constexpr std::size_t kMostUnsentOfJob = 64u << 20;  // bytes of answers
// Of one message. With what the relay adds it is still one that the node's own link takes.
inline constexpr std::size_t kMostJobMessage =
    static_cast<std::size_t>(net::kMaxFrameBytes) - (64u << 10);
inline constexpr std::size_t kReadPerTurn = 1u << 20;  // bytes of one connection

// What all connections of one job hold, in bytes.
struct JobBudget {
  std::size_t held = 0;
  std::size_t unsent = 0;
};

class JobConnection {
 public:
  struct Handlers {
    std::function<void(JobConnection&, net::StreamMessage&&)> message;
    std::function<void(std::uint64_t channel)> closed;  // destroys the connection; called last
  };
  // `budget` outlives the connection.
  JobConnection(loop::Loop& loop, net::Socket socket, proto::AttemptKey key, std::uint64_t channel,
                JobBudget& budget, Handlers handlers);
  ~JobConnection();
  JobConnection(const JobConnection&) = delete;
  JobConnection& operator=(const JobConnection&) = delete;

  void send(const net::MessageHeader& header, std::string_view body);
  // A refusal in the words of the protocol, as the answer to `request`.
  void refuse(std::uint64_t request, ErrorCode code, std::string message);
  // The socket of the process that copies this connection's streams; it closes with the connection.
  [[nodiscard]] net::Socket& relay() { return relay_; }
  // Hands a copy of `fd` to the peer, with one byte of data. False if it does not read just now.
  bool pass_descriptor(int fd);

  [[nodiscard]] const proto::AttemptKey& key() const { return key_; }
  [[nodiscard]] std::uint64_t channel() const { return channel_; }
  [[nodiscard]] int fd() const { return socket_.fd(); }

 private:
  void on_readable();
  void flush();
  void close_soon();
  bool count();  // false: the job holds too much

  loop::Loop& loop_;
  net::Socket socket_;
  net::Socket relay_;
  proto::AttemptKey key_;
  std::uint64_t channel_;
  Handlers handlers_;
  JobBudget& budget_;
  JobBudget counted_;  // this one's part of it
  net::StreamFrames frames_{kMostJobMessage};
  Bytes unsent_;
  bool closing_ = false;
  loop::Watch readable_;
  loop::Watch writable_;
  loop::Watch close_;
};

}  // namespace gantry::node
