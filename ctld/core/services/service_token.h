// Decides who may get an identity token for calling services.
#pragma once

#include <string>

#include "common/proto/session.h"
#include "ctld/core/request.h"

namespace gantry::core {

struct State;

inline constexpr Duration kUsualServiceToken = minutes(30);

struct ServiceTokenWish {
  std::string user, tenant, audience;
  Duration lifetime{};
};

// Whoever may submit to a tenant may call services as this tenant, because a job there could do
// that too. The audience of the token is proto::kAllServices, or a service that takes this tenant's
// tokens. The errors are permission_denied, not_found and invalid_argument.
Result<ServiceTokenWish> service_token_for(const State& state, const Identity& who,
                                           const proto::MakeToken& asked, Instant now);

}  // namespace gantry::core
