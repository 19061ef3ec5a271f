// RenewIdentity: a node asks for new tokens for an attempt. It gets them only for one that runs
// there and has not been told to end; the shell signs them.
#include <algorithm>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "common/proto/secrets.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/secrets.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {

static void handle(Context& ctx, NodeId node, proto::RenewIdentity&& message) {
  const Job* job = ctx.state.jobs.find(message.key.job);
  const bool runs =
      job != nullptr && job->attempt == message.key.attempt &&
      (job->phase == Phase::starting || job->phase == Phase::running) && ctx.hears(node, *job) &&
      std::any_of(job->active->nodes.begin(), job->active->nodes.end(), [&](const NodeRun& run) {
        return run.grant.node == node && run.state != RunState::released;
      });
  std::optional<IdentityClaims> claims;
  if (runs) {
    const auto stored = codec::decode<StoredSpec>(spec_bytes(ctx.state, *job));
    GANTRY_ASSERT(stored.has_value(), "a spec that was read once");
    claims = claims_for(ctx.state, *job, stored->spec, node);
  }
  if (!claims) {
    ++ctx.rt.stats.reports_ignored;
    return;
  }
  BlobRefs blobs;
  blobs.identity = std::move(claims);
  ctx.send(node, proto::IdentityTokens{message.key, {}}, std::move(blobs));
}

const Subject kIdentityMessages{.name = "identity", .handlers = kHandlers<proto::RenewIdentity>};

}  // namespace gantry::core
