// Answers "what if", and where MIG mode would have to change. The core decides who may ask about
// which job; the planner's thread answers from its replica.
#include "ctld/answers.h"

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/proto/gpu_rows.h"
#include "common/proto/job_query.h"
#include "common/proto/job_ref.h"
#include "ctld/core/access/select.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/rpc/dispatch.h"

namespace gantry::ctld {

Result<std::function<void()>> Answers::question(rpc::UserQuestions& questions,
                                                const core::Identity& who) {
  if (connections_.unlimited(who)) return std::function<void()>([] {});
  const Uid uid = who.owner.uid;
  TRY(questions.asked(uid, who.owner.user));
  return std::function<void()>([&questions, uid] { questions.answered(uid); });
}

template <class Reply>
std::function<void(Reply)> Answers::later(const Asked& asked, std::function<void()> answered) {
  return [this, id = asked.session.id, request = asked.request,
          answered = std::move(answered)](Reply reply) {
    shell_.loop.post([this, id, request, answered, reply = std::move(reply)] {
      answered();
      if (const rpc::Session* asker = connections_.find(id))
        connections_.send(*asker, request, reply);
    });
  };
}

namespace {

Error planner_is_busy() {
  return {ErrorCode::too_many, "too many ask the planner at this moment: try again"};
}

}  // namespace

void Answers::plan_modes(const Asked& asked) {
  const auto answered = question(planner_questions_, asked.who);
  if (!answered) return connections_.refuse(asked.session, asked.request, answered.error());
  if (planner_.ask_modes(shell_.clock.now(), later<proto::MigModePlan>(asked, *answered))) return;
  (*answered)();
  connections_.refuse(asked.session, asked.request, planner_is_busy());
}

void Answers::what_if(const Asked& asked, const proto::WhatIf& message) {
  std::vector<proto::JobRef> unknown;
  const auto jobs = core::resolve(shell_.core.state(), asked.who, {message.job}, unknown);
  std::optional<JobId> job;
  for (const core::Selected& s : jobs)
    if (!job && shell_.core.runtime().plan->marks.at(s.job).told.startable > 0) job = s.job;
  if (jobs.empty())
    return connections_.refuse(
        asked.session, asked.request,
        {ErrorCode::not_found, fmt::format("there is no job {}", message.job.job.value())});
  if (!job) {  // the job could not start with any request; the causes in its verdict tell why
    proto::WhatIfReply reply;
    reply.now = shell_.clock.now();
    return connections_.send(asked.session, asked.request, reply);
  }
  const auto answered = question(planner_questions_, asked.who);
  if (!answered) return connections_.refuse(asked.session, asked.request, answered.error());
  if (planner_.ask(*job, shell_.clock.now(), later<proto::WhatIfReply>(asked, *answered))) return;
  (*answered)();
  connections_.refuse(asked.session, asked.request, planner_is_busy());
}

}  // namespace gantry::ctld
