// Clients: users and an administrator who submit, cancel, hold, requeue, update, wait and change
// the cluster. They send a request again (a submit with the same request id) until they have an
// answer.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/proto/job_ref.h"
#include "common/proto/job_submit.h"
#include "common/proto/tenancy.h"
#include "ctld/core/request.h"
#include "tests/sim/controller.h"
#include "tests/sim/jobs.h"

namespace gantry::sim {

class Clients {
 public:
  Clients(Queue& queue, Random& random, Network& network, Trace& trace, Controller& controller,
          const Settings& settings);

  void start();
  // clients begin nothing new; open submits are repeated until answered
  void stop() { stopped_ = true; }
  [[nodiscard]] bool idle() const;  // true if no submit is open
  void reply(core::ConnectionId connection, std::uint64_t request, const core::ReplyMessage& reply);
  // The administrator sends the message once, and does not wait for an answer.
  void say(core::ClientMessage message);
  // The administrator sends the message over a safe link, once, and the answer is awaited.
  void say_safely(core::ClientMessage message);
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  struct Client {
    std::string name;
    core::Identity who;
    core::ConnectionId connection;
    std::vector<JobId> jobs;
    std::optional<core::ClientMessage> open;
    std::set<std::uint64_t> requests;  // the request numbers under which `open` was sent
    int tries = 0;
  };

  void think(Client& client);
  [[nodiscard]] core::Documents documents() const;  // the present documents
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
  std::map<JobId, std::size_t> het_sizes_;  // by the leader of the job
};

}  // namespace gantry::sim
