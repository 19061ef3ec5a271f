// The sockets of the jobs on this node: each attempt has a directory, bound into its container,
// with `job.sock` in it. Through it programs of the job talk to the controller (gqueue, scontrol
// requeue and so on inside a job), and to this daemon for steps.
//
// Only the job's own user may connect, which SO_PEERCRED shows. Messages of the job go to the
// controller as NodeRelay. The controller trusts this node for jobs that are placed on it, and
// treats the message as sent by the job's owner. Only messages that a client may send are relayed.
//
// Each job may have only so many relayed requests without an answer; further ones are refused, to
// be asked again (too_many). A request needs a number that no other unanswered request of its
// connection has. The controller is told of a connection that closes; it then forgets the
// connection and says so. What that connection had asked gets no answer any more, and does not
// count any longer.
//
// Messages that the node answers itself are given to `local` first, if it is set.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "common/log/log.h"
#include "common/loop/loop.h"
#include "common/proto/node_relay.h"
#include "noded/net/job_connection.h"

namespace gantry::node {

inline constexpr const char* kJobSocketName = "job.sock";
inline constexpr std::size_t kMaxConnections = 256;    // connections of one job
inline constexpr std::size_t kMostUnanswered = 1'024;  // requests of one job
// Bytes of the unanswered requests of one job.
inline constexpr std::size_t kMostUnansweredBytes = 32u << 20;
inline constexpr std::size_t kMostUnansweredInAll = 128u << 20;  // bytes of all jobs together
// When all jobs together have more than that, each job may have only so many bytes.
inline constexpr std::size_t kFairUnanswered = 1u << 20;

class JobSockets {
 public:
  struct Hooks {
    // Returns false if the controller cannot be reached now.
    std::function<bool(proto::NodeRelay&&)> relay;
    // Returns true if it took the message.
    std::function<bool(JobConnection&, net::StreamMessage&)> local;
  };
  // `first_channel` is greater than any channel of an earlier daemon, so that a late reply reaches
  // nobody.
  JobSockets(loop::Loop& loop, const Logger& log, std::uint64_t first_channel, Hooks hooks);
  ~JobSockets();

  // Listens on `directory`/job.sock, and replaces a socket that an earlier daemon left.
  Result<void> open(const proto::AttemptKey& key, Uid owner, const std::string& directory);
  void close(const proto::AttemptKey& key);
  void reply(const proto::RelayReply& reply);
  // The session with the controller is a new one, so older requests will get no answer.
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
