// SubmitHook: submits and changes of services that wait for the answer of the site's policy hook
// before the core sees them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ctld/connections.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"

namespace gantry::ctld {

class PolicyHook;
struct HookAnswer;

class SubmitHook {
 public:
  using PassOn = std::function<void(rpc::Session&, const net::MessageHeader&, core::Identity,
                                    core::ClientMessage)>;

  // `pass_on` gets each request that the hook has allowed.
  SubmitHook(const Shell& shell, Connections& connections, PassOn pass_on);
  ~SubmitHook();

  // Returns true if the request now waits for the hook's answer, or was refused.
  bool asks(rpc::Session& session, const net::MessageHeader& header, core::ClientMessage& message);
  // Puts the hook's warning, if it has one, into the reply to this request.
  void add_warning(core::Reply& reply);

 private:
  void answered(rpc::Session& session, const net::MessageHeader& header,
                core::ClientMessage&& message, Result<HookAnswer> answer);

  const Shell& shell_;
  Connections& connections_;
  PassOn pass_on_;
  std::unique_ptr<PolicyHook> hook_;  // only with controller.policy_hook
  std::map<std::pair<core::ConnectionId, std::uint64_t>, std::string>
      warnings_;  // the hook's warnings, by submit
  LogLimit failures_;
};

}  // namespace gantry::ctld
