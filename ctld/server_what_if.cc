// "What if", and where MIG mode would have to change: the core says who may ask about what, the
// planner's thread answers from its view.
#include <fmt/core.h>

#include "common/codec/codec.h"
#include "ctld/core/authorise.h"
#include "ctld/core/select.h"
#include "ctld/core/state.h"
#include "ctld/rpc/dispatch.h"
#include "ctld/server.h"

namespace gantry::ctld {

template <class Reply>
std::function<void(Reply)> Server::later(const rpc::Session& session, std::uint64_t request) {
  return [this, id = session.id, request](Reply reply) {
    loop_.post([this, id, request, reply = std::move(reply)] {
      if (const rpc::Session* asker = find_session(id))
        send_to(*asker, static_cast<std::uint16_t>(proto::number_of<Reply>), request,
                codec::encode(reply));
    });
  };
}

void Server::plan_modes(const rpc::Session& session, std::uint64_t request) {
  if (!core::is_operator(core_->state(), *session.identity)) {
    refuse(session, request,
           {ErrorCode::permission_denied,
            fmt::format("{} is neither operator nor administrator of this cluster",
                        session.identity->owner.user)});
    return;
  }
  if (!planner_->ask_modes(clock_.now(), later<proto::MigModePlan>(session, request)))
    refuse(session, request,
           {ErrorCode::limit_exceeded, "too many ask the planner at this moment: try again"});
}

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
  if (!job) {  // it may not start yet, whatever it asked for: its causes say why
    proto::WhatIfReply reply;
    reply.now = clock_.now();
    return send_to(session, static_cast<std::uint16_t>(proto::number_of<proto::WhatIfReply>),
                   request, codec::encode(reply));
  }
  if (!planner_->ask(*job, clock_.now(), later<proto::WhatIfReply>(session, request)))
    refuse(session, request,
           {ErrorCode::limit_exceeded, "too many ask the planner at this moment: try again"});
}

}  // namespace gantry::ctld
