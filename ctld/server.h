// The shell around the core: one loop thread that owns the core, the store and the router.
//
// In a turn, each received message goes to core.step(); then take_turn() collects the results, and
// store.append() writes them in one transaction. Only after that replies and orders are sent, and
// the scheduler is told of the changes. If an append fails, the process ends without an answer.
// Once a second the changes are folded into the records.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/proto/attempt.h"
#include "ctld/age/gate.h"
#include "ctld/answers.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "ctld/exports.h"
#include "ctld/relays.h"
#include "ctld/store/store.h"
#include "ctld/submit_hook.h"

namespace gantry::store {
class LmdbStore;
}

namespace gantry::ctld {

class Server {
 public:
  // Opens the store, recovers the state, and binds the port. An error is one sentence for the
  // operator.
  static Result<std::unique_ptr<Server>> open(const Config& config, Logger logger);
  ~Server();

  // Finishes recovery and makes the first turn. An error means that the controller cannot run with
  // this configuration.
  Result<void> start();
  // Runs until SIGTERM or SIGINT, or until the store has a fatal error. Returns true if it ended in
  // order to read the configuration again, and the new one is valid.
  Result<bool> run();

  // Answers users who asked for a new configuration that this server still has the old one, and
  // why.
  void keeps_config(std::string why);
  // Answers that this server was started with a new configuration.
  void reconfigured();

 private:
  struct Secrets {
    auth::SigningKey permission;  // signs permissions that clients show to nodes
    auth::SigningSeed token;      // signs tokens that act for users
  };
  struct Age {  // the epoch, event and job id that the store and nodes had reached, as stored on
                // disk; see ctld/age
    age::HighWater mark;
    age::Strangers strangers;
  };
  Server(const Config& config, Logger logger, std::unique_ptr<store::LmdbStore> store,
         net::Router router, Secrets secrets, std::unique_ptr<core::Core> core, Age age);

  // server.cc: turns
  void step(core::Input input);
  void end_of_turn();
  void send_reply(core::Reply& reply);
  void send_order(core::Order& order);
  void refuse_launch(const std::string& node, const proto::AttemptKey& key, std::string why);
  void set_wake(std::optional<Instant> at);
  void fold();
  void fatal(const Error& error);

  // server_messages.cc: received messages
  bool receive_one();
  void from_node(const std::string& node, const net::MessageHeader& header,
                 net::Incoming& incoming);
  void from_client(rpc::Session& session, const net::MessageHeader& header, std::string_view body);
  void answer(rpc::Session& session, const net::MessageHeader& header, std::string_view body);
  void step_as(rpc::Session& session, const net::MessageHeader& header, core::Identity who,
               core::ClientMessage message);
  void hello(const rpc::Session& session, std::uint64_t request, std::string_view body);
  void answer_here(const rpc::Session& session, const net::MessageHeader& header,
                   std::string_view body);
  void enroll_by_token(rpc::Session& session, const net::MessageHeader& header,
                       std::string_view body);

  // Detection of a store that is older than what its nodes know (ctld/age)
  static Result<Age> load_age(const std::string& state_dir, Epoch epoch, EventSeq last);
  age::Gate make_gate(Age age);
  bool admit(const std::string& node, core::NodeMessage& message);

  // server_reconfigure.cc
  void reconfigure(const Asked& asked);
  Result<void> check_new_config() const;
  void start_anew();

  const Config config_;
  Logger log_;
  std::unique_ptr<store::LmdbStore> store_;
  Secrets secrets_;
  std::unique_ptr<core::Core> core_;
  loop::ClusterClock clock_;
  loop::Loop loop_;
  AuditRequests audit_;
  Shell shell_;
  age::Gate gate_;
  Connections connections_;
  Relays relays_;
  SubmitHook hook_;
  // These have threads, or timers on the loop; start() makes them.
  std::unique_ptr<Notary> notary_;
  std::unique_ptr<Exports> exports_;
  std::unique_ptr<Planner> planner_;
  std::unique_ptr<acct::HistoryReader> history_;
  std::unique_ptr<store::Scrubber> scrubber_;
  std::unique_ptr<Answers> answers_;
  bool stepped_ = false;      // the core has had input since the last turn
  bool planned_ = false;      // a plan was among the inputs
  bool passed_over_ = false;  // the last plan skipped waiting jobs
  std::size_t unfolded_ = 0;  // events since the last fold
  std::optional<Error> failed_;
  bool again_ = false;          // stop, and start again with the new configuration
  bool ended_ = false;          // a signal asked to end, which overrides again_
  std::string config_problem_;  // why the new configuration is not used
  loop::Watch queue_, turn_, wake_, fold_, look_, term_, intr_, hup_, leave_;
};

}  // namespace gantry::ctld
