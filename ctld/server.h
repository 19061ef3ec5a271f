// The shell around the core: one loop thread that owns the core, the store and the router.
//
// In a turn, each message that came in goes to core.step(); then take_turn() collects the results,
// and store.append() writes them in one transaction. Only after that replies and orders are sent,
// and the scheduler is told of the changes. If an append fails, the process ends without an answer.
// Once a second the changes are folded into the records.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/auth/signature.h"
#include "common/log/log.h"
#include "common/loop/clock.h"
#include "common/loop/loop.h"
#include "common/net/header.h"
#include "common/net/router.h"
#include "config/config.h"
#include "ctld/acct/history_reader.h"
#include "ctld/age/gate.h"
#include "ctld/audit_requests.h"
#include "ctld/core/core.h"
#include "ctld/planner.h"
#include "ctld/rpc/identity.h"
#include "ctld/rpc/login_nodes.h"
#include "ctld/rpc/refusals.h"
#include "ctld/rpc/sessions.h"
#include "ctld/rpc/user_limits.h"
#include "ctld/server_limits.h"
#include "ctld/store/scrubber.h"

namespace gantry::acct {
class UsageLog;
}
namespace gantry::http {
class Server;
class Tokens;
class Webhook;
struct Request;
struct Response;
}  // namespace gantry::http

namespace gantry::ctld {

class Mailer;
class Notary;
class PolicyHook;
struct HookAnswer;
class Programs;

class Server {
 public:
  // Opens the store, recovers the state, and binds. An error is one sentence for the operator.
  static Result<std::unique_ptr<Server>> open(const Config& config, Logger logger);
  ~Server();

  // Finishes recovery and makes the first turn. An error means that the controller cannot run with
  // this configuration.
  Result<void> start();
  // Runs until SIGTERM or SIGINT, or until the store has a fatal error. Returns true if it ended
  // because the configuration is to be read again, and the new one is valid.
  Result<bool> run();

  // Tells users who asked for another configuration that this server still has the old one, and
  // why.
  void keeps_config(std::string why);
  // Tells that this server was started to use a new configuration.
  void reconfigured();

 private:
  struct Secrets {
    auth::SigningKey permission;  // signs permissions that clients show to nodes
    auth::SigningSeed token;      // signs tokens that act for users
  };
  struct Age {  // how far the store and its nodes had got, as stored on disk; see ctld/age
    age::HighWater mark;
    age::Strangers strangers;
  };
  Server(const Config& config, Logger logger, std::unique_ptr<store::LmdbStore> store,
         net::Router router, Secrets secrets, std::unique_ptr<core::Core> core, Age age);

  // server.cc: turns
  void step(core::Input input);
  void end_of_turn();
  void send_greetings();
  void close_leaving();
  void send_reply(core::Reply& reply);
  void send_order(core::Order& order);
  void refuse_launch(const std::string& node, const proto::AttemptKey& key, std::string why);
  void set_wake(std::optional<Instant> at);
  void fold();
  void fatal(const Error& error);

  // server_messages.cc: what comes in
  bool receive_one();
  void from_node(const std::string& node, const net::MessageHeader& header,
                 net::Incoming& incoming);
  bool carried(const std::string& node, std::uint16_t type, const net::Incoming& incoming);
  void from_client(rpc::Session& session, const net::MessageHeader& header, std::string_view body);
  void answer(rpc::Session& session, const net::MessageHeader& header, std::string_view body);
  void step_as(rpc::Session& session, const net::MessageHeader& header, core::Identity who,
               core::ClientMessage message);
  void hello(const rpc::Session& session, std::uint64_t request, std::string_view body);
  // A request that the shell itself answers, and who sent it, with the sender's grants.
  struct Asked {
    const rpc::Session& session;
    std::uint64_t request = 0;
    core::Identity who;
  };
  void answer_here(const rpc::Session& session, const net::MessageHeader& header,
                   std::string_view body);
  void what_if(const Asked& asked, const proto::WhatIf& message);
  void plan_modes(const Asked& asked);
  // Counts a question to another thread. Returns the function to call when it is answered.
  Result<std::function<void()>> question(rpc::UserQuestions& questions, const core::Identity& who);
  // Sends the planner's answer to the asker, if the connection still exists.
  template <class Reply>
  std::function<void(Reply)> later(const Asked& asked, std::function<void()> answered);
  void query_history(const Asked& asked, const proto::QueryHistory& message);
  void make_token(const Asked& asked, const proto::MakeToken& message);
  void read_audit(const Asked& asked, const proto::ReadAudit& message);
  void refuse(const rpc::Session& session, std::uint64_t request, const Error& error);
  void send_to(const rpc::Session& session, std::uint16_t type, std::uint64_t request,
               const Bytes& body);

  // server_hook.cc: submits wait for the policy hook. True: this one does, or was refused.
  void open_hook();
  bool asks_hook(rpc::Session& session, const net::MessageHeader& header,
                 core::ClientMessage& message);
  void hook_answered(rpc::Session& session, const net::MessageHeader& header,
                     core::ClientMessage&& message, Result<HookAnswer> answer);
  void add_hook_warning(core::Reply& reply);

  // server_relays.cc: what nodes carry for others
  void relayed(const std::string& node, const proto::NodeRelay& relay);
  void relayed(const std::string& node, net::PeerId peer, const proto::UserRelay& relay);
  Result<void> believe(rpc::Session& session, net::PeerId peer, Uid uid);
  void users_gone(const std::string& node, const proto::UsersGone& gone);
  Result<void> send_relayed(const std::string& node, const proto::RelayReply& reply);

  // server_sessions.cc: who they are, and how much they may ask
  [[nodiscard]] rpc::Session* find_session(core::ConnectionId id);
  void forget_session(std::optional<core::ConnectionId> dropped);
  void peer_closed(net::PeerId peer);
  void authenticate(rpc::Session& session, std::uint64_t request, std::string_view body);
  void refuse_credential(rpc::Session& session, std::uint64_t request,
                         const proto::Authenticate& message, Error error);
  Result<void> admit(rpc::Session& session);
  void establish(rpc::Session& session, rpc::IdentityCheck::Proof proof);
  void lose_identity(rpc::Session& session, Error why);
  void set_standing(rpc::Session& session, net::Standing standing);
  void cut_off(rpc::Session& session);
  [[nodiscard]] bool unlimited(const core::Identity& who) const;
  // Processor time of this thread. Time that other processes take on a busy machine is not counted
  // against users.
  static Duration loop_time();
  [[nodiscard]] std::string metrics_of_sessions() const;

  // server_age.cc: a store that is older than what its nodes know
  static Result<Age> load_age(const std::string& state_dir, Epoch epoch, EventSeq last);
  age::Gate make_gate(Age age);
  bool kept(const Result<void>& done);
  bool admit(const std::string& node, core::NodeMessage& message);

  // server_reconfigure.cc
  void reconfigure(const Asked& asked);
  Result<void> check_new_config() const;
  void start_anew();

  // server_http.cc: metrics, usage events
  Result<void> open_exports();
  [[nodiscard]] std::string store_metrics() const;
  http::Response answer_http(const http::Request& request, const std::atomic<bool>& stopping);
  [[nodiscard]] http::Response usage_page(const http::Request& request,
                                          const std::string& tenant) const;

  // server_keys.cc: keys that lie in the state directory at start
  std::vector<std::string> enroll_from_files();
  void key_files_used(const std::vector<std::string>& paths);  // what they say is durable
  bool enroll_from_file(const std::string& path, bool node);
  void enroll_by_token(rpc::Session& session, const net::MessageHeader& header,
                       std::string_view body);

  const Config config_;
  Logger log_;
  std::unique_ptr<store::LmdbStore> store_;
  net::Router router_;
  Secrets secrets_;
  std::unique_ptr<core::Core> core_;
  age::Gate gate_;
  loop::ClusterClock clock_;
  AuditRequests audit_;
  Instant started_{};
  rpc::IdentityCheck identities_;
  rpc::SessionTable sessions_{1};
  rpc::SessionTable user_channels_{kFirstUserChannel};
  rpc::SessionTable channels_{kFirstChannel};
  rpc::LoginNodes login_nodes_;
  rpc::UserLimits limits_;
  rpc::UserQuestions history_questions_{kMostHistoryQuestions};
  rpc::UserQuestions planner_questions_{kMostPlannerQuestions};
  rpc::Refusals refusals_;                        // counts refused credentials
  std::map<std::string, LogLimit> refused_logs_;  // limits their log lines, by network
  std::uint64_t refused_credentials_ = 0;
  struct Link {
    net::PeerId peer{};
    std::string key;  // Z85: the key it has proved; orders go to the node that has this key
  };
  std::map<std::string, Link, std::less<>> links_;  // newest connection of each node
  loop::Loop loop_;
  std::unique_ptr<Planner> planner_;
  std::unique_ptr<acct::HistoryReader> history_;
  std::unique_ptr<store::Scrubber> scrubber_;
  std::unique_ptr<acct::UsageLog> usage_;
  std::unique_ptr<Notary> notary_;
  std::unique_ptr<Mailer> mailer_;  // only with controller.mail_program
  std::unique_ptr<Programs> programs_;
  std::unique_ptr<PolicyHook> hook_;  // only with controller.policy_hook
  std::map<std::pair<core::ConnectionId, std::uint64_t>, std::string> hook_warnings_;  // of submits
  std::unique_ptr<http::Webhook> webhook_;
  std::unique_ptr<http::Tokens> tokens_;  // belongs to the HTTP thread
  std::unique_ptr<http::Server> http_;
  bool stepped_ = false;      // the core has had input since the last turn
  bool planned_ = false;      // a plan was among that input
  bool passed_over_ = false;  // the last plan did not look at all waiting jobs
  std::size_t unfolded_ = 0;  // events since the last fold
  std::optional<Error> failed_;
  bool again_ = false;          // stop, and start again with the new configuration
  bool ended_ = false;          // a signal has asked to end; this is stronger than again_
  std::string config_problem_;  // why the new configuration is not used
  // Answers to Hello leave together with the turn's replies. A command sends its first request with
  // its Hello, and is so woken only once.
  struct Greeting {
    core::ConnectionId connection;
    std::uint64_t request = 0;
    proto::HelloReply reply;
  };
  std::vector<Greeting> greetings_;
  std::vector<net::PeerId> leaving_;  // cut off; to be closed after this turn's replies
  LogLimit bad_input_, disbelieved_, hook_failures_;
  loop::Watch queue_, turn_, wake_, fold_, look_, term_, intr_, hup_, leave_;
};

}  // namespace gantry::ctld
