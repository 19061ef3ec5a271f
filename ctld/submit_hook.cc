// Submits and changes of services that wait for the answer of the site's policy hook before the
// core sees them.
#include "ctld/submit_hook.h"

#include <fmt/core.h>

#include "common/proto/job_submit.h"
#include "common/proto/message_table.h"
#include "common/proto/tenancy.h"
#include "ctld/core/request.h"
#include "ctld/core/services/replica_job.h"
#include "ctld/core/turn_out.h"
#include "ctld/policy_hook.h"

namespace gantry::ctld {
namespace {

constexpr std::size_t kMostAsked = 256;            // jobs in one question
constexpr std::size_t kMostHookWarnings = 10'000;  // warnings kept for answers to submits

std::vector<JobSpec*> jobs_of(core::ClientMessage& message) {
  std::vector<JobSpec*> out;
  if (auto* one = message.get_if<proto::SubmitJob>()) out.push_back(&one->spec);
  if (auto* several = message.get_if<proto::SubmitTogether>())
    for (proto::SubmitJob& part : several->parts) out.push_back(&part.spec);
  return out;
}

// Returns the jobs that the replicas of all services in this apply would be: one for each version
// in each shape. The hook is asked only now, because the controller submits replicas by itself
// later, again and again.
std::vector<JobSpec> replicas_in(const core::State& state, const core::Identity& who,
                                 const core::ClientMessage& message) {
  std::vector<JobSpec> out;
  const auto* apply = message.get_if<proto::ApplyTenancy>();
  if (apply == nullptr) return out;
  for (const tenancy::Document& document : apply->documents) {
    const auto* service = std::get_if<tenancy::Service>(&document);
    if (service == nullptr) continue;
    for (const tenancy::ServiceVersion& version : service->versions) {
      core::ReplicaSet set;
      set.what = version;
      set.owner = who.owner;
      for (std::uint32_t shape = 0; shape < version.shapes.size(); ++shape)
        out.push_back(core::replica_job(*service, set, shape, state).spec);
    }
  }
  return out;
}

HookQuestion question_of(const core::State& state, const core::Identity& who,
                         core::ClientMessage& message) {
  HookQuestion out;
  out.user = who.owner.user;
  out.uid = who.owner.uid;
  out.groups = who.groups;
  out.inside_a_job = who.inside.has_value();
  out.jobs = replicas_in(state, who, message);
  for (const JobSpec* spec : jobs_of(message)) out.jobs.push_back(*spec);
  return out;
}

// Puts the values that the hook sets into the jobs of a submit. For a service such values are
// refused, because its document alone decides.
Result<void> set_all(core::ClientMessage& message, const HookAnswer& answer) {
  if (!answer.set.empty() && message.is<proto::ApplyTenancy>())
    return fail(ErrorCode::permission_denied,
                fmt::format("the site's policy hook wants {} of replicas to be \"{}\": have the "
                            "document of the service say it",
                            answer.set.begin()->first, answer.set.begin()->second));
  for (JobSpec* spec : jobs_of(message))
    for (const auto& [field, value] : answer.set)
      if (auto r = set_by_hook(*spec, field, value); !r)
        return fail(ErrorCode::malformed, "its answer: " + r.error().message);
  return {};
}

}  // namespace

SubmitHook::SubmitHook(const Shell& shell, Connections& connections, PassOn pass_on)
    : shell_(shell), connections_(connections), pass_on_(std::move(pass_on)) {
  const ControllerConfig& c = shell.config.controller;
  if (c.policy_hook.empty()) return;
  hook_ = std::make_unique<PolicyHook>(
      c.policy_hook, c.policy_hook_timeout,
      [this](std::function<void()> work) { shell_.loop.post(std::move(work)); });
}

SubmitHook::~SubmitHook() = default;

bool SubmitHook::asks(rpc::Session& session, const net::MessageHeader& header,
                      core::ClientMessage& message) {
  if (!hook_ || !session.identity) return false;
  const HookQuestion question = question_of(shell_.core.state(), *session.identity, message);
  if (question.jobs.empty()) return false;
  if (question.jobs.size() > kMostAsked) {
    connections_.refuse(
        session, header.request,
        {ErrorCode::limit_exceeded,
         fmt::format("the policy hook would be asked about {} kinds of replicas at once; apply "
                     "services with at most {} together",
                     question.jobs.size(), kMostAsked)});
    return true;
  }
  const auto about = std::make_shared<core::ClientMessage>(std::move(message));
  const auto asked =
      hook_->ask(question, [this, id = session.id, header, uid = session.identity->owner.uid,
                            about](Result<HookAnswer> answer) {
        rpc::Session* asker = connections_.find(id);
        if (asker == nullptr || !asker->identity || asker->identity->owner.uid != uid) return;
        answered(*asker, header, std::move(*about), std::move(answer));
      });
  if (!asked) connections_.refuse(session, header.request, asked.error());
  return true;
}

void SubmitHook::answered(rpc::Session& session, const net::MessageHeader& header,
                          core::ClientMessage&& message, Result<HookAnswer> answer) {
  const std::string user = session.identity->owner.user;
  const auto refuse_it = [&](const Error& error) {
    (void)shell_.kept(
        shell_.audit.refused(session, *proto::find_message(header.type), "policy hook", error));
    connections_.refuse(session, header.request, error);
  };
  if (answer) {
    if (auto set = set_all(message, *answer); !set) {
      if (set.error().code == ErrorCode::permission_denied) return refuse_it(set.error());
      answer = tl::unexpected(set.error());
    }
  }
  if (!answer) {
    const bool accept = shell_.config.controller.policy_hook_failure == HookFailure::accept;
    shell_.log.write(failures_, LogLevel::warning,
                     accept ? "a job or service was taken without the policy hook's word"
                            : "a job or service was refused, because the policy hook said nothing",
                     {{"user", user}, {"why", answer.error().message}});
    if (!accept)
      return refuse_it({ErrorCode::unavailable,
                        "the site's policy hook gave no answer, and without one nothing is "
                        "taken (controller.policy_hook); try again later, or tell an "
                        "administrator"});
  } else if (answer->action == "deny") {
    const bool service = message.is<proto::ApplyTenancy>();
    return refuse_it(
        {ErrorCode::permission_denied, !answer->message.empty() ? answer->message
                                       : service ? "the site's policy hook refuses this service"
                                                 : "the site's policy hook refuses this job"});
  } else if (answer->action == "warn" && !answer->message.empty()) {
    if (warnings_.size() >= kMostHookWarnings) warnings_.clear();
    warnings_[{session.id, header.request}] = answer->message;
  }
  pass_on_(session, header, *session.identity, std::move(message));
}

void SubmitHook::add_warning(core::Reply& reply) {
  const auto it = warnings_.find({reply.connection, reply.request});
  if (it == warnings_.end()) return;
  if (auto* submitted = reply.message.get_if<proto::SubmitReply>())
    submitted->warnings.push_back(it->second);
  if (auto* planned = reply.message.get_if<proto::TenancyPlanned>())
    planned->warnings.push_back(it->second);
  warnings_.erase(it);
}

}  // namespace gantry::ctld
