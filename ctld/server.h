// The shell around the core: one loop thread that owns the core, the store and the router.
//
// A turn: messages in -> core.step() each -> take_turn() -> store.append(), one transaction -> only
// then replies and orders leave, and the scheduler hears of the changes. A failed append ends the
// process without an answer. Once a second what changed is folded into the records.
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
#include "ctld/core/core.h"
#include "ctld/planner.h"
#include "ctld/rpc/identity.h"
#include "ctld/rpc/refusals.h"
#include "ctld/rpc/sessions.h"
#include "ctld/rpc/user_limits.h"
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
class Programs;

inline constexpr Duration kFoldPeriod = seconds(1);
// Under load the records are folded in small pieces instead: 2,000 take about 2 ms, which a waiting
// submit hardly sees; a second's worth of them would take 50.
inline constexpr std::size_t kFoldEvents = 2'000;

inline constexpr std::uint64_t kFirstChannel = std::uint64_t{1} << 62;  // numbers of sessions
// Of connections that have shown no identity.
inline constexpr std::size_t kMostStrangers = 4'096;
inline constexpr Duration kStrangerTime = seconds(60);
inline constexpr std::uint32_t kMostStrangeMessages = 64;  // each
inline constexpr std::uint32_t kMostRefusals = 8;          // of credentials, each
// Of one user at a time, for the history reader and for the planner.
inline constexpr std::size_t kMostHistoryQuestions = 32;
inline constexpr std::size_t kMostPlannerQuestions = 2;

class Server {
 public:
  // Opens the store, recovers, binds. Errors are one sentence for the operator.
  static Result<std::unique_ptr<Server>> open(const Config& config, Logger logger);
  ~Server();

  // Recovery and the first turn; an error: it cannot run with this configuration.
  Result<void> start();
  // Until SIGTERM or SIGINT, or a fatal error of the store; or, then true, until the configuration
  // was to be read again and is sound.
  Result<bool> run();

  // That this is the configuration it had, and why; for who asked for another one.
  void keeps_config(std::string why);
  // That it was started to have another configuration.
  void reconfigured();

 private:
  struct Secrets {
    auth::SigningKey permission;  // signs what clients show to nodes
    auth::SigningSeed token;      // of tokens that speak for users
  };
  struct Age {  // what is known of how old the store is, as it lies on disk; see ctld/age
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
  void set_wake(std::optional<Instant> at);
  void fold();
  void fatal(const Error& error);

  // server_messages.cc: what comes in
  bool receive_one();
  void from_node(const std::string& node, const net::MessageHeader& header,
                 net::Incoming& incoming);
  void relayed(const std::string& node, const proto::NodeRelay& relay);
  void from_client(rpc::Session& session, const net::MessageHeader& header, std::string_view body);
  void answer(rpc::Session& session, const net::MessageHeader& header, std::string_view body);
  void hello(const rpc::Session& session, std::uint64_t request, std::string_view body);
  // What the shell answers itself, from whom; their grants are in it.
  struct Asked {
    const rpc::Session& session;
    std::uint64_t request = 0;
    core::Identity who;
  };
  void answer_here(const rpc::Session& session, const net::MessageHeader& header,
                   std::string_view body);
  void what_if(const Asked& asked, const proto::WhatIf& message);
  void plan_modes(const Asked& asked);
  // Counts a question for another thread; what is to be called when it is answered.
  Result<std::function<void()>> question(rpc::UserQuestions& questions, const core::Identity& who);
  // To who is still there when the planner's thread has answered.
  template <class Reply>
  std::function<void(Reply)> later(const Asked& asked, std::function<void()> answered);
  void query_history(const Asked& asked, const proto::QueryHistory& message);
  void make_token(const Asked& asked, const proto::MakeToken& message);
  void refuse(const rpc::Session& session, std::uint64_t request, const Error& error);
  void send_to(const rpc::Session& session, std::uint16_t type, std::uint64_t request,
               const Bytes& body);
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
  // Of this thread, while it runs: a machine that is busy with other things costs nobody's share.
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
  void enroll_from_files();
  void enroll_from_file(const std::string& path, bool node);

  const Config config_;
  Logger log_;
  std::unique_ptr<store::LmdbStore> store_;
  net::Router router_;
  Secrets secrets_;
  std::unique_ptr<core::Core> core_;
  age::Gate gate_;
  loop::ClusterClock clock_;
  Instant started_{};
  rpc::IdentityCheck identities_;
  rpc::SessionTable sessions_{1};
  rpc::SessionTable channels_{kFirstChannel};
  rpc::UserLimits limits_;
  rpc::UserQuestions history_questions_{kMostHistoryQuestions};
  rpc::UserQuestions planner_questions_{kMostPlannerQuestions};
  rpc::Refusals refusals_;                        // of credentials
  std::map<std::string, LogLimit> refused_logs_;  // of them, by network
  std::uint64_t refused_credentials_ = 0;
  struct Link {
    net::PeerId peer{};
    std::string key;  // Z85: what it has proved; orders are for the node that has it
  };
  std::map<std::string, Link, std::less<>> links_;  // newest connection of each node
  loop::Loop loop_;
  std::unique_ptr<Planner> planner_;
  std::unique_ptr<acct::HistoryReader> history_;
  std::unique_ptr<store::Scrubber> scrubber_;
  std::unique_ptr<acct::UsageLog> usage_;
  std::unique_ptr<Mailer> mailer_;  // with controller.mail_program
  std::unique_ptr<Programs> programs_;
  std::unique_ptr<http::Webhook> webhook_;
  std::unique_ptr<http::Tokens> tokens_;  // of the HTTP thread
  std::unique_ptr<http::Server> http_;
  bool stepped_ = false;      // the core has had input since the last turn
  bool planned_ = false;      // a plan among it
  bool passed_over_ = false;  // the last plan has passed over those who sleep
  std::size_t unfolded_ = 0;  // events since the last fold
  std::optional<Error> failed_;
  bool again_ = false;          // stop, to be started with what the configuration says now
  bool ended_ = false;          // a signal said to end, which counts more
  std::string config_problem_;  // why it was not
  // Answers to Hello leave with the turn's replies: a command, which sends its request along, is
  // then woken once and not twice.
  struct Greeting {
    core::ConnectionId connection;
    std::uint64_t request = 0;
    proto::HelloReply reply;
  };
  std::vector<Greeting> greetings_;
  std::vector<net::PeerId> leaving_;  // cut off, and closed after this turn's replies
  LogLimit bad_input_;
  loop::Watch queue_, turn_, wake_, fold_, look_, term_, intr_, hup_, leave_;
};

}  // namespace gantry::ctld
