// Clients: users and an administrator who submit, cancel, hold, requeue, update, wait and change
// the cluster, and ask again (a submit with the same request id) until they have an answer.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/controller.h"
#include "tests/sim/jobs.h"

namespace gantry::sim {

class Clients {
 public:
  Clients(Queue& queue, Random& random, Network& network, Trace& trace, Controller& controller,
          const Settings& settings);

  void start();
  void stop() { stopped_ = true; }  // nothing new; open submits are asked until answered
  [[nodiscard]] bool idle() const;  // no submit is open
  void reply(core::ConnectionId connection, std::uint64_t request, const core::ReplyMessage& reply);
  // The administrator says something once; whether it is heard is not waited for.
  void say(core::ClientMessage message);
  // As say(), but by hand and looked after: it arrives once, and the answer is waited for.
  void say_safely(core::ClientMessage message);
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  struct Client {
    std::string name;
    core::Identity who;
    core::ConnectionId connection;
    std::vector<JobId> jobs;
    std::optional<core::ClientMessage> open;
    std::set<std::uint64_t> requests;  // under which `open` was asked
    int tries = 0;
  };

  void think(Client& client);
  [[nodiscard]] core::Documents documents() const;  // as they are
  void check_answer(const proto::ApplyTenancy& asked, const core::ReplyMessage& reply);
  void ask(Client& client);
  void ask_again_later(Client& client);
  core::ClientMessage draw(Client& client);
  proto::SubmitJob draw_job(Client& client);
  core::ClientMessage draw_together(Client& client, proto::SubmitJob first);
  core::ClientMessage draw_change(Client& client);
  core::ClientMessage draw_update(Client& client);
  core::ClientMessage draw_cancel(Client& client);
  core::ClientMessage draw_cluster_change();
  proto::JobRef draw_ref(Client& client);

  Queue& queue_;
  Random& random_;
  Network& network_;
  Trace& trace_;
  Controller& controller_;
  const Settings& settings_;
  bool stopped_ = false;
  std::size_t submits_ = 0;
  std::uint64_t next_request_ = 1;
  std::vector<std::unique_ptr<Client>> clients_;  // the first is the administrator
  std::vector<std::string> names_;
  std::vector<JobId> all_jobs_;
  std::set<JobId> arrays_;
  std::map<JobId, std::size_t> het_sizes_;  // by leader
};

}  // namespace gantry::sim
