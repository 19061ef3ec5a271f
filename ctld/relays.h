// Relays accepts the requests that nodes relay for others. relays.cc describes which of them are
// accepted.
#pragma once

#include <functional>
#include <string>

#include "common/proto/node_relay.h"
#include "ctld/connections.h"
#include "ctld/rpc/login_nodes.h"

namespace gantry::ctld {

class Relays {
 public:
  using Take = std::function<void(rpc::Session&, const net::MessageHeader&, std::string_view body)>;

  // `take` receives each request whose sender is known. The controller's log gets the login nodes
  // whose address is not known.
  Relays(const Shell& shell, Connections& connections, Take take)
      : shell_(shell), connections_(connections), take_(std::move(take)) {}
  void look_up_login_nodes();

  // Returns true if the message is one that a node relays for others.
  bool carried(const std::string& node, std::uint16_t type, const net::Incoming& incoming);

 private:
  void of_job(const std::string& node, const proto::NodeRelay& relay);
  void of_user(const std::string& node, net::PeerId peer, const proto::UserRelay& relay);
  Result<void> believe(rpc::Session& session, net::PeerId peer, Uid uid);
  void users_gone(const std::string& node, const proto::UsersGone& gone);

  const Shell& shell_;
  Connections& connections_;
  Take take_;
  rpc::LoginNodes login_nodes_;
  LogLimit disbelieved_;
};

}  // namespace gantry::ctld
