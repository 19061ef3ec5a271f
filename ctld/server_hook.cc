// Submits, and services, that wait for the word of the site's policy hook before the core sees
// them.
#include <fmt/core.h>

#include "ctld/core/services/replica_job.h"
#include "ctld/policy_hook.h"
#include "ctld/server.h"

namespace gantry::ctld {
namespace {

constexpr std::size_t kMostAsked = 256;            // jobs in one question
constexpr std::size_t kMostHookWarnings = 10'000;  // that are kept for answers to submits

std::vector<JobSpec*> jobs_of(core::ClientMessage& message) {
  std::vector<JobSpec*> out;
  if (auto* one = std::get_if<proto::SubmitJob>(&message)) out.push_back(&one->spec);
  if (auto* several = std::get_if<proto::SubmitTogether>(&message))
    for (proto::SubmitJob& part : several->parts) out.push_back(&part.spec);
  return out;
}

// Returns the jobs that the replicas would be of all services that somebody applies: one for each
// version in each shape. The controller submits replicas itself, later and again and again, and
// asks no more.
std::vector<JobSpec> replicas_in(const core::State& state, const core::Identity& who,
                                 const core::ClientMessage& message) {
  std::vector<JobSpec> out;
  const auto* apply = std::get_if<proto::ApplyTenancy>(&message);
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

// Puts the values that the hook sets into the jobs of a submit. They are refused for a service,
// because its document says itself what is so.
Result<void> set_all(core::ClientMessage& message, const HookAnswer& answer) {
  if (!answer.set.empty() && std::holds_alternative<proto::ApplyTenancy>(message))
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

bool Server::asks_hook(rpc::Session& session, const net::MessageHeader& header,
                       core::ClientMessage& message) {
  if (!hook_ || !session.identity) return false;
  const HookQuestion question = question_of(core_->state(), *session.identity, message);
  if (question.jobs.empty()) return false;
  if (question.jobs.size() > kMostAsked) {
    refuse(session, header.request,
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
        rpc::Session* asker = find_session(id);
        if (asker == nullptr || !asker->identity || asker->identity->owner.uid != uid) return;
        hook_answered(*asker, header, std::move(*about), std::move(answer));
      });
  if (!asked) refuse(session, header.request, asked.error());
  return true;
}

void Server::hook_answered(rpc::Session& session, const net::MessageHeader& header,
                           core::ClientMessage&& message, Result<HookAnswer> answer) {
  const std::string user = session.identity->owner.user;
  const auto refuse_it = [&](const Error& error) {
    (void)kept(audit_.refused(session, *proto::find_message(header.type), "policy hook", error));
    refuse(session, header.request, error);
  };
  if (answer) {
    if (auto set = set_all(message, *answer); !set) {
      if (set.error().code == ErrorCode::permission_denied) return refuse_it(set.error());
      answer = tl::unexpected(set.error());
    }
  }
  if (!answer) {
    const bool accept = config_.controller.policy_hook_failure == HookFailure::accept;
    log_.write(hook_failures_, LogLevel::warning,
               accept ? "a job or service was taken without the policy hook's word"
                      : "a job or service was refused, because the policy hook said nothing",
               {{"user", user}, {"why", answer.error().message}});
    if (!accept)
      return refuse_it({ErrorCode::unavailable,
                        "the site's policy hook gave no answer, and without one nothing is "
                        "taken (controller.policy_hook); try again later, or tell an "
                        "administrator"});
  } else if (answer->action == "deny") {
    const bool service = std::holds_alternative<proto::ApplyTenancy>(message);
    return refuse_it(
        {ErrorCode::permission_denied, !answer->message.empty() ? answer->message
                                       : service ? "the site's policy hook refuses this service"
                                                 : "the site's policy hook refuses this job"});
  } else if (answer->action == "warn" && !answer->message.empty()) {
    if (hook_warnings_.size() >= kMostHookWarnings) hook_warnings_.clear();
    hook_warnings_[{session.id, header.request}] = answer->message;
  }
  step_as(session, header, *session.identity, std::move(message));
}

void Server::add_hook_warning(core::Reply& reply) {
  const auto it = hook_warnings_.find({reply.connection, reply.request});
  if (it == hook_warnings_.end()) return;
  if (auto* submitted = std::get_if<proto::SubmitReply>(&reply.message))
    submitted->warnings.push_back(it->second);
  if (auto* planned = std::get_if<proto::TenancyPlanned>(&reply.message))
    planned->warnings.push_back(it->second);
  hook_warnings_.erase(it);
}

void Server::open_hook() {
  const ControllerConfig& c = config_.controller;
  if (c.policy_hook.empty()) return;
  hook_ = std::make_unique<PolicyHook>(
      c.policy_hook, c.policy_hook_timeout,
      [this](std::function<void()> work) { loop_.post(std::move(work)); });
}

}  // namespace gantry::ctld
