// The sockets of the jobs on this node: each attempt has a directory, bound into its container,
// with `job.sock` in it. Through it programs of the job talk to the controller (gqueue, scontrol
// requeue and so on inside a job), and to this daemon for steps.
//
// Only the job's own user may connect, which SO_PEERCRED shows. Messages of the job go to the
// controller as NodeRelay. The controller trusts this node for jobs that are placed on it, and
// treats the message as sent by the job's owner. Only messages that a client may send are relayed.
//
// Each job may have a limited number of relayed requests without an answer; further ones are
// refused, to be sent again (too_many). A request needs a number that no other unanswered request
// of its connection has. The controller is told when a connection closes; it then drops the session
// and confirms that. From then on, requests of that connection get no answer and do not count.
//
// Messages are passed to `local` first, if it is set; it handles those that the node answers
// itself.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/log/log.h"
#include "common/loop/loop.h"
#include "common/net/socket.h"
#include "common/net/stream_frame.h"
#include "common/proto/node_relay.h"
#include "common/proto/node_report.h"
#include "common/result.h"
#include "common/types.h"

namespace gantry::node {

// One connection to the socket of a job: messages come in and go out, and nothing ever blocks. The
// user on the other end was checked when the connection was accepted. JobSockets owns it.
//
// All connections of one job together may use only a limited number of bytes (JobBudget):
// incomplete messages, and answers that are not read. A connection that exceeds this is closed, and
// so is one that sends invalid bytes; it is told why.

inline constexpr std::size_t kMostHeldOfJob = 32u << 20;    // bytes of unfinished messages
inline constexpr std::size_t kMostUnsentOfJob = 64u << 20;  // bytes of answers
// Limit of one message. With the relay's header it still fits the node's own link.
inline constexpr std::size_t kMostJobMessage =
    static_cast<std::size_t>(net::kMaxFrameBytes) - (64u << 10);
// Bytes read from one connection in a turn of the loop.
inline constexpr std::size_t kReadPerTurn = 1u << 20;
// Messages handled for one connection in a turn of the loop; the others wait for the next turn, so
// that many small messages on many connections delay nobody for long.
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
    std::function<void(std::uint64_t channel)> closed;  // destroys the connection; the last call
    bool only_while_open = false;  // messages of a peer that has closed are dropped
  };
  // `budget` outlives the connection.
  JobConnection(loop::Loop& loop, net::Socket socket, proto::AttemptKey key, std::uint64_t channel,
                JobBudget& budget, Handlers handlers);
  ~JobConnection();
  JobConnection(const JobConnection&) = delete;
  JobConnection& operator=(const JobConnection&) = delete;

  void send(const net::MessageHeader& header, std::string_view body);
  // Sends a refusal in the protocol's form, as the answer to `request`.
  void refuse(std::uint64_t request, ErrorCode code, std::string message);
  // The socket to the process that copies this connection's streams; it is closed with the
  // connection.
  [[nodiscard]] net::Socket& relay() { return relay_; }
  // Sends a copy of `fd` to the peer, with one byte of data. Returns false if the peer does not
  // read at present.
  bool pass_descriptor(int fd);

  [[nodiscard]] const proto::AttemptKey& key() const { return key_; }
  [[nodiscard]] std::uint64_t channel() const { return channel_; }
  [[nodiscard]] int fd() const { return socket_.fd(); }

 private:
  void on_readable();
  void take_messages(bool over);  // over: the peer sends nothing more
  [[nodiscard]] bool has_closed() const;
  void flush();
  void close_soon();
  bool count();           // returns false if the job exceeds its budget
  bool holds_too_much();  // returns true, after telling the peer, if the job exceeds its budget

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
  bool rest_waits_ = false;  // received messages wait for the next turn
  // For functions posted to the loop, which may run after this connection is gone.
  std::shared_ptr<JobConnection*> self_ = std::make_shared<JobConnection*>(this);
  loop::Watch readable_;
  loop::Watch writable_;
  loop::Watch close_;
};

// The unix sockets of this daemon: makes one in a directory, and tells which process is at the
// other end of a connection, as reported by the kernel.

// Listens on `name` in the open directory `directory`, and replaces a socket of that name. Every
// user of the machine may connect. `whose` is used in the error: "a job's socket".
Result<net::Socket> listen_in(int directory, const char* name, const char* whose);

struct UnixPeer {
  Uid uid{};
  pid_t pid = 0;  // 0 = a process of another PID namespace
};
// The process that connected, as of that time.
std::optional<UnixPeer> peer_of(int fd);

// The descriptor of a directory, for names relative to it; error io_error.
Result<net::Socket> open_directory(const std::string& path);

inline constexpr const char* kJobSocketName = "job.sock";
inline constexpr std::size_t kMaxConnections = 256;    // connections of one job
inline constexpr std::size_t kMostUnanswered = 1'024;  // requests of one job
// Bytes of the unanswered requests of one job.
inline constexpr std::size_t kMostUnansweredBytes = 32u << 20;
inline constexpr std::size_t kMostUnansweredInAll = 128u << 20;  // bytes of all jobs together
// If all jobs together exceed that, each job may have only this many bytes.
inline constexpr std::size_t kFairUnanswered = 1u << 20;

class JobSockets {
 public:
  struct Hooks {
    // Returns false if the controller cannot be reached now.
    std::function<bool(proto::NodeRelay&&)> relay;
    // Returns true if it handled the message.
    std::function<bool(JobConnection&, net::StreamMessage&)> local;
  };
  // `first_channel` is greater than any channel of an earlier daemon, so that a late reply is not
  // delivered to a wrong connection.
  JobSockets(loop::Loop& loop, const Logger& log, std::uint64_t first_channel, Hooks hooks);
  ~JobSockets();

  // Listens on `directory`/job.sock, and replaces a socket left by an earlier daemon.
  Result<void> open(const proto::AttemptKey& key, Uid owner, const std::string& directory);
  void close(const proto::AttemptKey& key);
  void reply(const proto::RelayReply& reply);
  // The session with the controller is new, so older requests will get no answer.
  void link_is_new();

  [[nodiscard]] JobConnection* find(std::uint64_t channel);

 private:
  struct Listener;
  void accept(Listener& listener);
  void handle(JobConnection& connection, net::StreamMessage&& message);
  bool relay(JobConnection& connection, net::StreamMessage&& message);
  [[nodiscard]] bool has_room(const Listener& listener, std::size_t bytes) const;
  void tell_closed(const proto::AttemptKey& key, std::uint64_t channel);

  loop::Loop& loop_;
  const Logger& log_;
  Hooks hooks_;
  std::uint64_t next_channel_;
  std::map<proto::AttemptKey, std::unique_ptr<Listener>> listeners_;
  std::map<std::uint64_t, std::unique_ptr<JobConnection>> connections_;
  struct Unanswered {
    proto::AttemptKey key;
    std::size_t bytes = 0;
  };
  // Unanswered requests by channel and number; a channel may be closed by now.
  using AllUnanswered = std::map<std::pair<std::uint64_t, std::uint64_t>, Unanswered>;
  AllUnanswered::iterator settle(AllUnanswered::iterator it);  // returns the next one
  AllUnanswered unanswered_;
  std::size_t unanswered_bytes_ = 0;
  std::set<std::uint64_t> relayed_;  // channels that the controller knows
};

}  // namespace gantry::node
