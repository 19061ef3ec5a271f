// Seals, opens and signs for the core, which has no keys: contents of secrets before the core sees
// them, and contents and tokens in an order before it is sent to its node. See ctld/secrets.
#pragma once

#include <memory>

#include "common/http/http_server.h"
#include "common/log/log.h"
#include "common/loop/clock.h"
#include "common/loop/loop.h"
#include "common/proto/gate.h"
#include "common/proto/secrets.h"
#include "common/proto/session.h"
#include "config/config.h"
#include "ctld/core/core.h"
#include "ctld/core/services/service_token.h"
#include "ctld/core/turn_out.h"
#include "ctld/secrets/identity_keys.h"
#include "ctld/secrets/secret_box.h"

namespace gantry::ctld {

class Notary {
 public:
  // Reads the keys in the state directory, or makes them.
  static Result<std::unique_ptr<Notary>> open(const ControllerConfig& config,
                                              const core::Core& core, loop::ClusterClock& clock,
                                              loop::Loop& loop, const Logger& log);

  // Replaces the content in the message by its sealed form.
  Result<void> seal(proto::SetSecret& message) const;
  // Fills in the contents and the tokens that an order carries.
  Result<void> prepare(core::Order& order) const;
  // Fills in the passwords of the doors of service replicas.
  void prepare(proto::GateTable& table) const;
  // Makes an identity token for a user who calls services, outside of jobs.
  [[nodiscard]] Result<proto::TokenMade> service_token(const core::ServiceTokenWish& wish) const;
  // Overwrites the contents in an order that has been encoded.
  static void forget_contents(core::Order& order);

  // The answer to GET /.well-known/...; any thread may ask.
  [[nodiscard]] http::Response page(const std::string& path) const;

 private:
  Notary(const core::Core& core, loop::ClusterClock& clock) : core_(core), clock_(clock) {}

  const core::Core& core_;
  loop::ClusterClock& clock_;
  std::unique_ptr<secrets::SecretBox> box_;
  std::unique_ptr<secrets::IdentityKeys> identity_;  // only with controller.identity_issuer
  loop::Watch look_;
};

}  // namespace gantry::ctld
