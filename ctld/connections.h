// Connections: who is at the other end of each, how many requests they may send, and what is sent
// to them.
//
// A peer of the router is a node, a user's command, or not yet authenticated. A node relays
// channels for jobs and for users of its machine (relays.h); each channel is a session as well.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/auth/signature.h"
#include "common/codec/codec.h"
#include "common/net/header.h"
#include "common/net/router.h"
#include "common/proto/message_table.h"
#include "common/proto/node_relay.h"
#include "common/proto/session.h"
#include "ctld/core/request.h"
#include "ctld/rpc/identity.h"
#include "ctld/rpc/refusals.h"
#include "ctld/rpc/sessions.h"
#include "ctld/rpc/user_limits.h"
#include "ctld/server_limits.h"
#include "ctld/shell.h"

namespace gantry::ctld {

class Connections {
 public:
  // `token` signs the tokens that act for users.
  Connections(const Shell& shell, net::Router router, const auth::SigningSeed& token);

  // Sessions. A pointer or reference is valid until the next message of another connection.
  rpc::Session& of_peer(const net::Incoming& incoming);
  rpc::Session& of_job(const std::string& node, std::uint64_t channel);
  rpc::Session& of_user(const std::string& node, std::uint64_t channel, net::PeerId peer);
  [[nodiscard]] rpc::Session* find(core::ConnectionId id);
  void forget(std::optional<core::ConnectionId> dropped);
  void forget_job(const std::string& node, std::uint64_t channel);
  void forget_user(const std::string& node, std::uint64_t channel);

  // Identities.
  void authenticate(rpc::Session& session, std::uint64_t request, std::string_view body);
  // Counts one more message of this session. The error is the answer if the limit is exceeded.
  Result<void> admit(rpc::Session& session);
  // Counts one more connection of an ordinary user.
  Result<void> count(rpc::Session& session);
  // Charges a user with time of the loop's thread.
  void took(Uid uid, Duration time) { limits_.took(uid, time); }
  void set_standing(rpc::Session& session, net::Standing standing);
  void cut_off(rpc::Session& session);
  // Whether the user's requests are not limited: root and operators.
  [[nodiscard]] bool unlimited(const core::Identity& who) const;
  [[nodiscard]] rpc::IdentityCheck& identities() { return identities_; }
  // Whether credentials from this session's network are checked at present.
  [[nodiscard]] bool may_look(const rpc::Session& session);
  // Counts, logs and audits a refused credential. `what` is the log's line, `claims` the name that
  // the sender gives, `method` the kind of proof, or "".
  void note_refused(rpc::Session& session, const proto::MessageRow& row, std::string_view what,
                    const std::string& claims, const std::string& method, const Error& error);
  void count_refused() { ++refused_credentials_; }
  // Processor time of the loop's thread. So time that other processes take on a busy machine is not
  // charged to users.
  [[nodiscard]] static Duration loop_time();

  // Sending.
  void refuse(const rpc::Session& session, std::uint64_t request, const Error& error);
  void send_to(const rpc::Session& session, std::uint16_t type, std::uint64_t request,
               const Bytes& body);
  template <class Reply>
  void send(const rpc::Session& session, std::uint64_t request, const Reply& reply) {
    send_to(session, static_cast<std::uint16_t>(proto::number_of<Reply>), request,
            codec::encode(reply));
  }
  // The reply to Hello leaves together with the turn's replies. A command sends its first request
  // together with its Hello, so it is woken only once.
  void greet_later(core::ConnectionId connection, std::uint64_t request, proto::HelloReply reply);
  void send_greetings();
  void close_leaving();

  // Nodes: the newest connection of each. `key` is what the node has proved, as Z85; orders go to
  // the node that has this key.
  void node_is_at(const std::string& node, const rpc::Session& session);
  // The peer of a node; nullopt if it is not connected, or its key belongs to another node now.
  [[nodiscard]] std::optional<net::PeerId> peer_of(const std::string& node);
  // The error invalid_argument means that the message is too large. After any other error the node
  // counts as not connected.
  Result<void> send_to_node(const std::string& node, std::uint16_t type, const Bytes& body);
  [[nodiscard]] std::vector<std::string> nodes() const;  // names of connected nodes
  // If the node cannot be reached, the reply is dropped without an error.
  Result<void> send_relayed(const std::string& node, const proto::RelayReply& reply);

  [[nodiscard]] net::Router& router() { return router_; }
  [[nodiscard]] std::string metrics() const;

 private:
  void peer_closed(net::PeerId peer);
  void refuse_credential(rpc::Session& session, std::uint64_t request,
                         const proto::Authenticate& message, Error error);
  void establish(rpc::Session& session, rpc::IdentityCheck::Proof proof);
  void lose_identity(rpc::Session& session, Error why);

  const Shell& shell_;
  net::Router router_;
  rpc::IdentityCheck identities_;
  rpc::SessionTable peers_{1};
  rpc::SessionTable users_{kFirstUserChannel};  // relayed by login nodes
  rpc::SessionTable jobs_{kFirstChannel};       // relayed for jobs
  rpc::UserLimits limits_;
  rpc::Refusals refusals_;                        // counts refused credentials
  std::map<std::string, LogLimit> refused_logs_;  // limits log lines about these, by network
  std::uint64_t refused_credentials_ = 0;
  struct Link {
    net::PeerId peer{};
    std::string key;
  };
  std::map<std::string, Link, std::less<>> links_;
  struct Greeting {
    core::ConnectionId connection;
    std::uint64_t request = 0;
    proto::HelloReply reply;
  };
  std::vector<Greeting> greetings_;
  std::vector<net::PeerId> leaving_;  // cut off; closed after this turn's replies
};

}  // namespace gantry::ctld
