// The rules of authorise.h as a table by message.
#include "ctld/core/authorise.h"

#include <algorithm>

#include <fmt/core.h>

#include "ctld/core/tenant_submit.h"

namespace gantry::core {
namespace {

enum class Who : std::uint8_t { nobody, everybody, operators, admin };

// Deny by default: a message without a line of its own is nobody's. "Everybody" means that the
// handler looks only at jobs for which may_see() or may_change() says yes.
template <class Message>
constexpr Who kWho = Who::nobody;
template <>
constexpr Who kWho<proto::SubmitJob> = Who::everybody;
template <>
constexpr Who kWho<proto::SubmitTogether> = Who::everybody;
template <>
constexpr Who kWho<proto::ListJobs> = Who::everybody;
template <>
constexpr Who kWho<proto::ShowJob> = Who::everybody;
template <>
constexpr Who kWho<proto::CancelJobs> = Who::everybody;
template <>
constexpr Who kWho<proto::HoldJobs> = Who::everybody;
template <>
constexpr Who kWho<proto::ReleaseJobs> = Who::everybody;
template <>
constexpr Who kWho<proto::RequeueJobs> = Who::everybody;
template <>
constexpr Who kWho<proto::UpdateJob> = Who::everybody;
template <>
constexpr Who kWho<proto::WaitJobs> = Who::everybody;
template <>
constexpr Who kWho<proto::ReadLog> = Who::everybody;
template <>
constexpr Who kWho<proto::StepCreate> = Who::everybody;
template <>
constexpr Who kWho<proto::StepAttach> = Who::everybody;
template <>
constexpr Who kWho<proto::SetTrigger> = Who::everybody;  // see its handler
template <>
constexpr Who kWho<proto::ListTriggers> = Who::everybody;
template <>
constexpr Who kWho<proto::ClearTriggers> = Who::everybody;
template <>
constexpr Who kWho<proto::StepDone> = Who::everybody;
template <>
constexpr Who kWho<proto::SignalStep> = Who::everybody;
template <>
constexpr Who kWho<proto::NotifyJobs> = Who::everybody;
template <>
constexpr Who kWho<proto::TopJobs> = Who::everybody;
template <>
constexpr Who kWho<proto::SuspendJobs> = Who::operators;
template <>
constexpr Who kWho<proto::ResumeJobs> = Who::operators;
template <>
constexpr Who kWho<proto::EndAllocation> = Who::everybody;
template <>
constexpr Who kWho<proto::ListNodes> = Who::everybody;
template <>
constexpr Who kWho<proto::ListPartitions> = Who::everybody;
template <>
constexpr Who kWho<proto::ShowConfig> = Who::everybody;
template <>
constexpr Who kWho<proto::ShowStats> = Who::everybody;
template <>
constexpr Who kWho<proto::Ping> = Who::everybody;
template <>
constexpr Who kWho<proto::ApplyTenancy> = Who::everybody;  // of their own tenant; see its handler
template <>
constexpr Who kWho<proto::GetTenancy> = Who::everybody;
template <>
constexpr Who kWho<proto::TenancyHistory> = Who::everybody;
template <>
constexpr Who kWho<proto::TenantUsage> = Who::everybody;
template <>
constexpr Who kWho<proto::ShareTree> = Who::everybody;
template <>
constexpr Who kWho<proto::PriorityTuples> = Who::everybody;
template <>
constexpr Who kWho<proto::CheckpointJobs> = Who::everybody;
template <>
constexpr Who kWho<proto::ListReservations> = Who::everybody;
template <>
constexpr Who kWho<proto::TenantEvents> = Who::everybody;  // of tenants in which they have a role
template <>
constexpr Who kWho<proto::QueryLedger> = Who::everybody;  // their own, and of tenants with a role
template <>
constexpr Who kWho<proto::ListBudgets> = Who::everybody;  // their own, and of tenants with a role
template <>
constexpr Who kWho<proto::AskIncrease> = Who::everybody;  // of their own tenant; see its handler
template <>
constexpr Who kWho<proto::DecideIncrease> = Who::everybody;  // see its handler
template <>
constexpr Who kWho<proto::ListIncreases> = Who::everybody;
template <>
constexpr Who kWho<proto::MakeReservation> = Who::operators;
template <>
constexpr Who kWho<proto::RemoveReservation> = Who::operators;
template <>
constexpr Who kWho<proto::UpdateNodes> = Who::operators;
template <>
constexpr Who kWho<proto::UpdatePartition> = Who::operators;
template <>
constexpr Who kWho<proto::ListMeters> = Who::operators;
template <>
constexpr Who kWho<proto::ImportMeter> = Who::admin;
template <>
constexpr Who kWho<proto::EnrollNode> = Who::admin;
template <>
constexpr Who kWho<proto::RegisterKey> = Who::everybody;  // for themselves; see its handler

template <class Message>
Result<void> check(const State& state, const Identity& who, const Message&) {
  constexpr Who allowed = kWho<Message>;
  if (allowed == Who::everybody || (allowed == Who::admin && is_admin(who))) return {};
  if (allowed != Who::operators)
    return fail(ErrorCode::permission_denied,
                fmt::format("{} is no administrator of this cluster", who.owner.user));
  if (is_operator(state, who)) return {};
  return fail(
      ErrorCode::permission_denied,
      fmt::format("{} is neither operator nor administrator of this cluster", who.owner.user));
}

// Has a grant that reaches over the whole cluster this role at least?
bool granted(const State& state, const Identity& who, tenancy::Role least) {
  if (who.inside) return false;
  for (const tenancy::Grant& grant : state.tenancy.compiled.cluster_grants) {
    const bool mine = grant.user.empty() ? std::find(who.groups.begin(), who.groups.end(),
                                                     grant.group) != who.groups.end()
                                         : grant.user == who.owner.user;
    if (mine && grant.role >= least) return true;
  }
  return false;
}

}  // namespace

Result<void> authorise(const State& state, const Identity& who, const ClientMessage& message) {
  // A key holds until somebody removes it; a token, and what it makes, has an end.
  const auto* key = std::get_if<proto::RegisterKey>(&message);
  const bool lasting =
      std::holds_alternative<proto::EnrollNode>(message) || (key != nullptr && !key->remove);
  if (who.token_ends && lasting)
    return fail(ErrorCode::permission_denied,
                "a token registers no keys, which would hold when it does no more");
  return std::visit([&](const auto& m) { return check(state, who, m); }, message);
}

void take_grants(const State& state, Identity& who) {
  if (granted(state, who, tenancy::Role::admin)) who.role = proto::Role::admin;
}

bool is_admin(const Identity& who) {
  return who.role == proto::Role::admin && !who.inside;
}

bool is_operator(const State& state, const Identity& who) {
  return is_admin(who) || granted(state, who, tenancy::Role::operator_role);
}

Reach::Reach(const State& state, const Identity& who)
    : admin_(is_operator(state, who)), uid_(who.owner.uid) {
  if (admin_ || who.inside) return;
  for (const auto& [name, tenant] : state.tenancy.compiled.tenants) {
    const auto role = role_in(state, who, name);
    if (!role) continue;
    for (const PartitionId id : state.queues_of_tenant(name)) {
      sees_.push_back(id);
      if (*role >= tenancy::Role::tenant_admin) changes_.push_back(id);
    }
  }
  std::sort(sees_.begin(), sees_.end());
  std::sort(changes_.begin(), changes_.end());
}

bool Reach::may(May what, const State& state, const Job& job) const {
  if (admin_ || job.uid == uid_) return true;
  const std::vector<PartitionId>& queues = what == May::see ? sees_ : changes_;
  return !queues.empty() &&
         std::binary_search(queues.begin(), queues.end(), class_of(state, job).partition);
}

bool may(May what, const State& state, const Identity& who, const Job& job) {
  if (is_admin(who) || job.uid == who.owner.uid) return true;
  if (who.inside) return false;
  if (is_operator(state, who)) return true;
  const auto role = role_in(state, who, state.partition(class_of(state, job).partition).payer());
  return role && (what == May::see || *role >= tenancy::Role::tenant_admin);
}

std::string who_text(const Identity& who) {
  return is_admin(who) ? fmt::format("{} (administrator)", who.owner.user) : who.owner.user;
}

}  // namespace gantry::core
