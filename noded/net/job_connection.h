// One connection to the socket of a job: messages come in and go out, and nothing ever blocks. The
// user on the other end was checked when the connection was accepted. JobSockets owns it.
//
// All connections of one job together may hold only so much (JobBudget): messages that have not
// arrived whole, and answers that are not read. A connection that exceeds this is closed, and so is
// one that sends bytes that are no message; it is told why.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/loop/loop.h"
#include "common/net/socket.h"
#include "common/net/stream_frame.h"
#include "common/proto/node_report.h"
#include "common/result.h"
#include "common/types.h"

namespace gantry::node {

inline constexpr std::size_t kMostHeldOfJob = 32u << 20;    // bytes of unfinished messages
inline constexpr std::size_t kMostUnsentOfJob = 64u << 20;  // bytes of answers
// Limit of one message. With what the relay adds, the node's own link still takes it.
inline constexpr std::size_t kMostJobMessage =
    static_cast<std::size_t>(net::kMaxFrameBytes) - (64u << 10);
// Bytes that are read from one connection in a turn.
inline constexpr std::size_t kReadPerTurn = 1u << 20;
// Messages that are handled of one connection in a turn; the others wait for the next one, so that
// a flood of small messages on many connections keeps nobody waiting for long.
inline constexpr int kMessagesPerTurn = 32;

// The bytes that all connections of one job hold.
struct JobBudget {
  std::size_t held = 0;
  std::size_t unsent = 0;
};

class JobConnection {
 public:
  struct Handlers {
    std::function<void(JobConnection&, net::StreamMessage&&)> message;
    std::function<void(std::uint64_t channel)> closed;  // destroys the connection; is called last
    bool only_while_open = false;  // messages of a peer that has closed are not handled
  };
  // `budget` outlives the connection.
  JobConnection(loop::Loop& loop, net::Socket socket, proto::AttemptKey key, std::uint64_t channel,
                JobBudget& budget, Handlers handlers);
  ~JobConnection();
  JobConnection(const JobConnection&) = delete;
  JobConnection& operator=(const JobConnection&) = delete;

  void send(const net::MessageHeader& header, std::string_view body);
  // Sends a refusal as the protocol has it, as the answer to `request`.
  void refuse(std::uint64_t request, ErrorCode code, std::string message);
  // The socket of the process that copies this connection's streams; it is closed with the
  // connection.
  [[nodiscard]] net::Socket& relay() { return relay_; }
  // Sends a copy of `fd` to the peer, with one byte of data. False: the peer does not read at
  // present.
  bool pass_descriptor(int fd);

  [[nodiscard]] const proto::AttemptKey& key() const { return key_; }
  [[nodiscard]] std::uint64_t channel() const { return channel_; }
  [[nodiscard]] int fd() const { return socket_.fd(); }

 private:
  void on_readable();
  void take_messages(bool over);  // over: nothing more comes
  [[nodiscard]] bool has_closed() const;
  void flush();
  void close_soon();
  bool count();           // false: the job holds too much
  bool holds_too_much();  // and was told so

  loop::Loop& loop_;
  net::Socket socket_;
  net::Socket relay_;
  proto::AttemptKey key_;
  std::uint64_t channel_;
  Handlers handlers_;
  JobBudget& budget_;
  JobBudget counted_;  // the part of the budget that this connection uses
  net::StreamFrames frames_{kMostJobMessage};
  Bytes unsent_;
  bool closing_ = false;
  bool rest_waits_ = false;  // messages that have come wait for the next turn
  // For what is posted to the loop, which may come after this connection has gone.
  std::shared_ptr<JobConnection*> self_ = std::make_shared<JobConnection*>(this);
  loop::Watch readable_;
  loop::Watch writable_;
  loop::Watch close_;
};

// The unix sockets that this daemon listens on: one that is made anew in a directory, and who is at
// the other end of a connection to it, as the kernel says.

// Listens on `name` in the directory that is open as `directory`, and replaces a socket of that
// name. Every user of the machine may connect. `whose` is for the error: "a job's socket".
Result<net::Socket> listen_in(int directory, const char* name, const char* whose);

struct UnixPeer {
  Uid uid{};
  pid_t pid = 0;  // 0 = a process of another PID namespace
};
// The process that connected, as it was then.
std::optional<UnixPeer> peer_of(int fd);

// The descriptor of a directory, to find names in it; the error io_error.
Result<net::Socket> open_directory(const std::string& path);

}  // namespace gantry::node
