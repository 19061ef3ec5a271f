// The thread of a Router: it accepts, shakes hands, reads, writes and counts. Private to
// common/net.
//
// It sleeps in epoll_wait. A peer that exceeds a limit is closed. If many peers share the limit, a
// connection of the owner that uses most of it is closed, so that others are served during an
// attack.
#pragma once

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/net/listen.h"
#include "common/net/router_queues.h"
#include "common/net/zmtp_server.h"

namespace gantry::net {

class RouterIo {
 public:
  using Clock = std::chrono::steady_clock;

  static Result<std::unique_ptr<RouterIo>> open(const RouterOptions& options,
                                                std::vector<Listening> listening,
                                                RouterQueues& queues);
  ~RouterIo();
  RouterIo(const RouterIo&) = delete;
  RouterIo& operator=(const RouterIo&) = delete;

  void run();  // runs until the queues are stopped

 private:
  struct Connection;
  using Strangers = std::list<std::uint64_t>;  // the one connected longest is first

  RouterIo(const RouterOptions& options, std::vector<Listening> listening, RouterQueues& queues,
           Socket epoll);
  void watch_listeners(bool on);
  void accept_some(const Listening& listening);
  void add(Accepted&& accepted);
  void make_room();
  [[nodiscard]] Connection* stranger_of_most();
  void carry_out(std::vector<RouterCommand>&& commands);
  void on_ready(Connection& c, std::uint32_t events);
  void read(Connection& c);
  void take_messages(Connection& c);
  void count_held(Connection& c);
  [[nodiscard]] Connection* holder_of_most(bool strangers_only);
  void drop_holders();
  void write(Connection& c);
  void watch(Connection& c);
  void set_standing(Connection& c, Standing standing, std::string owner);
  void close(Connection& c);
  void look_at_clock();
  [[nodiscard]] Connection* find(std::uint64_t id);

  const RouterOptions options_;
  std::vector<Listening> listening_;
  RouterQueues& queues_;
  Socket epoll_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> closed_;  // destroyed at the end of a turn
  // Ids with output, or to be closed: their times are checked.
  std::unordered_set<std::uint64_t> busy_;
  Strangers strangers_;
  std::unordered_map<std::string, std::size_t> strangers_of_;  // numbers of strangers, by network
  std::size_t handshakes_ = 0;
  // Bytes of unfinished messages, without those of nodes.
  std::size_t held_ = 0, held_by_strangers_ = 0;
  std::uint64_t next_id_;
  bool accepting_ = true;
  Clock::time_point looked_{};
  std::vector<char> buffer_;
};

}  // namespace gantry::net
