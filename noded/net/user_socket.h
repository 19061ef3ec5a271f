// The unix socket of a login node (controller.login_nodes): commands of the machine's users reach
// the controller through it, over this daemon's one connection. They need no connection and no
// credential of their own, because the kernel reports which user connects (SO_PEERCRED).
//
// The controller trusts what this node tells about them, within limits: see UserRelay and
// needs_credential(). So this file is the security border between the users of the machine. A
// message is relayed with the uid of the process that connected, whatever the message contains; an
// answer goes only to the connection that asked. A process of a job is refused (jobs have a socket
// with fewer rights), and so is a client that addresses another controller.
//
// Each user has limits: connections, bytes of incomplete messages and of answers that are not read,
// and requests without an answer. The controller is told of closed connections, many at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "common/loop/loop.h"
#include "common/proto/node_relay.h"
#include "noded/net/job_sockets.h"

namespace gantry::node {

inline constexpr const char* kUserSocketName = "cli.sock";
inline constexpr std::size_t kMostConnectionsOfUser = 256;
inline constexpr std::size_t kMostConnectionsInAll = 4'096;
// Requests of all users that wait for an answer; beyond it each user may have only a few. The
// limits of one user are those of one job (job_sockets.h).
inline constexpr std::size_t kMostUnansweredOfUsers = 8'192;
inline constexpr std::size_t kFairUnansweredOfUser = 16;
// Channels with this bit are connections of users; those without it, of jobs.
inline constexpr std::uint64_t kUserChannel = std::uint64_t{1} << 62;

class UserSocket {
 public:
  struct Hooks {
    // These return false if the controller cannot be reached now.
    std::function<bool(const proto::UserRelay&)> relay;
    std::function<bool(const proto::UsersGone&)> gone;
  };
  struct Options {
    std::string controller;           // public key of the node's controller, Z85
    std::string cgroup_root;          // name of the cgroup that contains the jobs of this machine
    std::uint64_t first_channel = 0;  // greater than any channel of an earlier daemon
  };
  UserSocket(loop::Loop& loop, const Logger& log, Options options, Hooks hooks);
  ~UserSocket();

  // Listens on `directory`/cli.sock, and replaces a socket left by an earlier daemon.
  Result<void> open(const std::string& directory);
  void reply(const proto::RelayReply& reply);
  // The connection to the controller has ended, or is new: earlier requests get no answer, so all
  // connections are closed.
  void link_is_lost();

  static bool is_user_channel(std::uint64_t channel) { return (channel & kUserChannel) != 0; }

 private:
  struct User {
    std::size_t connections = 0;
    JobBudget budget;
    std::size_t unanswered = 0;  // includes requests of closed connections
    std::size_t unanswered_bytes = 0;
  };
  struct Open {
    std::unique_ptr<JobConnection> connection;
    Uid uid{};
    bool greeted = false;   // the client has confirmed that it means this controller
    bool answered = false;  // something was sent to it
    bool relayed = false;   // the controller knows the connection
    std::size_t waits = 0;  // requests without an answer
  };
  struct Unanswered {
    Uid uid{};
    std::size_t bytes = 0;
  };
  using AllUnanswered = std::map<std::pair<std::uint64_t, std::uint64_t>, Unanswered>;

  void accept();
  [[nodiscard]] Result<Uid> may_connect(int fd);
  void add(net::Socket socket, Uid uid);
  void closed(std::uint64_t channel);
  void handle(Open& from, net::StreamMessage&& message);
  void greet(Open& from, const net::StreamMessage& message);
  [[nodiscard]] Result<void> check(const Open& from, const net::StreamMessage& message) const;
  [[nodiscard]] bool has_room(const User& user, std::size_t bytes) const;
  AllUnanswered::iterator settle(AllUnanswered::iterator it);  // returns the next one
  void forget_if_idle(Uid uid);
  void tell_late_greetings();
  void tell_gone();

  loop::Loop& loop_;
  const Logger& log_;
  Options options_;
  Hooks hooks_;
  std::uint64_t next_channel_;
  net::Socket listener_;
  std::map<Uid, User> users_;
  std::map<std::uint64_t, Open> open_;
  AllUnanswered unanswered_;
  std::size_t unanswered_bytes_ = 0;
  // Greetings that have no answer yet, by channel and number.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> greetings_;
  std::vector<std::uint64_t> gone_;       // closed, with nothing unanswered
  std::vector<std::uint64_t> abandoned_;  // closed, with requests that count until it is settled
  LogLimit refused_;
  loop::Watch accept_, greet_, tell_;
};

}  // namespace gantry::node
