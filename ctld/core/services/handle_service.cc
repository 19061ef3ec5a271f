// Services for people and gates.
#include "ctld/core/handlers.h"

namespace gantry::core {

void handle(Context& ctx, const ClientRequest& from, proto::SyncGate&&) {
  refuse(ctx, from, {ErrorCode::unsupported, "not yet"});
}
void handle(Context& ctx, const ClientRequest& from, proto::ListServices&&) {
  refuse(ctx, from, {ErrorCode::unsupported, "not yet"});
}
void handle(Context& ctx, const ClientRequest& from, proto::ChangeService&&) {
  refuse(ctx, from, {ErrorCode::unsupported, "not yet"});
}

}  // namespace gantry::core
