// "What if": the core says who may ask about which job, the planner's thread answers from its view.
#include "common/codec/codec.h"
#include "ctld/core/authorise.h"
#include "ctld/core/select.h"
#include "ctld/core/state.h"
#include "ctld/rpc/dispatch.h"
#include "ctld/server.h"

namespace gantry::ctld {

void Server::what_if(const rpc::Session& session, std::uint64_t request, std::string_view body) {
  const auto message = codec::decode<proto::WhatIf>(body);
  if (!message) {
    refuse(session, request, message.error());
    return;
  }
  if (auto sound = core::check_refs(proto::ShowJob{message->job, false}); !sound) {
    refuse(session, request, sound.error());
    return;
  }
  std::vector<proto::JobRef> unknown;
  const auto jobs = core::resolve(core_->state(), *session.identity, {message->job}, unknown);
  std::optional<JobId> job;
  for (const core::Selected& s : jobs)
    if (!job && core_->state().jobs.at(s.job).told_startable > 0) job = s.job;
  if (jobs.empty()) {
    refuse(session, request,
           {ErrorCode::not_found, fmt::format("there is no job {}", message->job.job.value())});
    return;
  }
  const core::ConnectionId id = session.id;
  const auto done = [this, id, request](const proto::WhatIfReply& reply) {
    const rpc::Session* asker = sessions_.find(id);
    if (asker == nullptr) return;
    send_to(*asker, static_cast<std::uint16_t>(proto::number_of<proto::WhatIfReply>), request,
            codec::encode(reply));
  };
  if (!job) {  // it may not start yet, whatever it asked for: its causes say why
    proto::WhatIfReply reply;
    reply.now = clock_.now();
    return done(reply);
  }
  const auto post = [this, done](proto::WhatIfReply reply) {
    loop_.post([done, reply = std::move(reply)] { done(reply); });
  };
  if (!planner_->ask(*job, clock_.now(), post))
    refuse(session, request,
           {ErrorCode::limit_exceeded, "too many ask the planner at this moment: try again"});
}

}  // namespace gantry::ctld
