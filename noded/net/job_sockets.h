// The sockets of the jobs on this node: one directory per attempt, bound into its container, with
// `job.sock` in it. Programs of the job talk to the controller through it (gqueue, scontrol requeue
// and so on inside a job), and to this daemon for steps.
//
// Who may: only the job's own user, by SO_PEERCRED. What they send goes to the controller as
// NodeRelay, which trusts this node for jobs that are placed on it; the controller treats it as
// sent by the job's owner. Only messages that a client may send are relayed.
//
// What is relayed and not answered is bounded for each job: beyond it more is refused, to be asked
// again (too_many). A request has a number that no other one of its connection has until it is
// answered. A connection that closes is told to the controller, which then forgets it and says so:
// what it had asked is not answered any more, and counts no longer.
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
inline constexpr std::size_t kMaxConnections = 256;              // of one job
inline constexpr std::size_t kMostUnanswered = 1'024;            // requests of one job
inline constexpr std::size_t kMostUnansweredBytes = 32u << 20;   // of them
inline constexpr std::size_t kMostUnansweredInAll = 128u << 20;  // bytes, of all jobs; beyond it
inline constexpr std::size_t kFairUnanswered = 1u << 20;         // so many for each job

class JobSockets {
 public:
  struct Hooks {
    // False: the controller cannot be reached now.
    std::function<bool(proto::NodeRelay&&)> relay;
    // True: it took the message.
    std::function<bool(JobConnection&, net::StreamMessage&)> local;
  };
  // `first_channel`: greater than any of an earlier daemon, so that a late reply finds nobody.
  JobSockets(loop::Loop& loop, const Logger& log, std::uint64_t first_channel, Hooks hooks);
  ~JobSockets();

  // Listens on `directory`/job.sock, replacing one that an earlier daemon left.
  Result<void> open(const proto::AttemptKey& key, Uid owner, const std::string& directory);
  void close(const proto::AttemptKey& key);
  void reply(const proto::RelayReply& reply);
  // The session with the controller is a new one: what was not answered will not be.
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
  // By channel and request; a channel may be closed by now.
  using AllUnanswered = std::map<std::pair<std::uint64_t, std::uint64_t>, Unanswered>;
  AllUnanswered::iterator settle(AllUnanswered::iterator it);  // the next one
  AllUnanswered unanswered_;
  std::size_t unanswered_bytes_ = 0;
  std::set<std::uint64_t> relayed_;  // channels that the controller knows of
};

}  // namespace gantry::node
