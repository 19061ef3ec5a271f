// The rules of authorise.h as a table by message.
#include "ctld/core/access/authorise.h"

#include <algorithm>

#include <fmt/core.h>

#include "ctld/core/access/front_door.h"
#include "ctld/core/tenancy/tenant_submit.h"

namespace gantry::core {
namespace {

enum class Who : std::uint8_t { nobody, everybody, operators, admin };

// `lasts`: what it makes gives rights, or runs programs, until somebody takes it back. Whoever has
// shown a token, which has an end, may not ask for it.
struct Permission {
  Who who = Who::nobody;
  bool lasts = true;
};
constexpr Permission kEverybody{Who::everybody, false};
constexpr Permission kOperators{Who::operators, false};
constexpr Permission kAdmin{Who::admin, false};
constexpr Permission lasting(Who who) {
  return {who, true};
}

// Deny by default: a message without a line of its own is nobody's. "Everybody" means that the
// handler looks only at jobs for which may_see() or may_change() says yes.
template <class Message>
constexpr Permission kPermission{};
template <>
constexpr Permission kPermission<proto::SubmitJob> = kEverybody;
template <>
constexpr Permission kPermission<proto::SubmitTogether> = kEverybody;
template <>
constexpr Permission kPermission<proto::ListJobs> = kEverybody;
template <>
constexpr Permission kPermission<proto::ShowJob> = kEverybody;
template <>
constexpr Permission kPermission<proto::CancelJobs> = kEverybody;
template <>
constexpr Permission kPermission<proto::HoldJobs> = kEverybody;
template <>
constexpr Permission kPermission<proto::ReleaseJobs> = kEverybody;
template <>
constexpr Permission kPermission<proto::RequeueJobs> = kEverybody;
template <>
constexpr Permission kPermission<proto::UpdateJob> = kEverybody;
template <>
constexpr Permission kPermission<proto::WaitJobs> = kEverybody;
template <>
constexpr Permission kPermission<proto::ReadLog> = kEverybody;
template <>
constexpr Permission kPermission<proto::StepCreate> = kEverybody;
template <>
constexpr Permission kPermission<proto::StepAttach> = kEverybody;
template <>
constexpr Permission kPermission<proto::SetTrigger> = lasting(Who::everybody);  // see its handler
template <>
constexpr Permission kPermission<proto::ListTriggers> = kEverybody;
template <>
constexpr Permission kPermission<proto::ClearTriggers> = kEverybody;
template <>
constexpr Permission kPermission<proto::StepDone> = kEverybody;
template <>
constexpr Permission kPermission<proto::SignalStep> = kEverybody;
template <>
constexpr Permission kPermission<proto::NotifyJobs> = kEverybody;
template <>
constexpr Permission kPermission<proto::TopJobs> = kEverybody;
template <>
constexpr Permission kPermission<proto::SuspendJobs> = kOperators;
template <>
constexpr Permission kPermission<proto::ResumeJobs> = kOperators;
template <>
constexpr Permission kPermission<proto::EndAllocation> = kEverybody;
template <>
constexpr Permission kPermission<proto::ListNodes> = kEverybody;
template <>
constexpr Permission kPermission<proto::ListPartitions> = kEverybody;
template <>
constexpr Permission kPermission<proto::ShowConfig> = kEverybody;
template <>
constexpr Permission kPermission<proto::ShowStats> = kEverybody;
template <>
constexpr Permission kPermission<proto::Ping> = kEverybody;
template <>
constexpr Permission kPermission<proto::ApplyTenancy> =
    lasting(Who::everybody);  // of their own tenant; see its handler
template <>
constexpr Permission kPermission<proto::GetTenancy> = kEverybody;
template <>
constexpr Permission kPermission<proto::TenancyHistory> = kEverybody;
template <>
constexpr Permission kPermission<proto::TenantUsage> = kEverybody;
template <>
constexpr Permission kPermission<proto::ShareTree> = kEverybody;
template <>
constexpr Permission kPermission<proto::PriorityTuples> = kEverybody;
template <>
constexpr Permission kPermission<proto::CheckpointJobs> = kEverybody;
template <>
constexpr Permission kPermission<proto::ListReservations> = kEverybody;
template <>
constexpr Permission kPermission<proto::TenantEvents> =
    kEverybody;  // of tenants in which they have a role
template <>
constexpr Permission kPermission<proto::QueryLedger> =
    kEverybody;  // their own, and of tenants with a role
template <>
constexpr Permission kPermission<proto::ListBudgets> =
    kEverybody;  // their own, and of tenants with a role
template <>
constexpr Permission kPermission<proto::AskIncrease> =
    kEverybody;  // of their own tenant; see its handler
template <>
constexpr Permission kPermission<proto::DecideIncrease> =
    lasting(Who::everybody);  // see its handler
template <>
constexpr Permission kPermission<proto::ListIncreases> = kEverybody;
template <>
constexpr Permission kPermission<proto::MakeReservation> = lasting(Who::operators);
template <>
constexpr Permission kPermission<proto::RemoveReservation> = kOperators;
template <>
constexpr Permission kPermission<proto::UpdateNodes> = kOperators;
template <>
constexpr Permission kPermission<proto::UpdatePartition> = kOperators;
template <>
constexpr Permission kPermission<proto::ListMeters> = kOperators;
template <>
constexpr Permission kPermission<proto::ImportMeter> = kAdmin;
template <>
constexpr Permission kPermission<proto::EnrollNode> = lasting(Who::admin);
template <>
constexpr Permission kPermission<proto::RegisterKey> =
    lasting(Who::everybody);  // for themselves; see its handler

// Answered by the shell; see front_door.h.
template <>
constexpr Permission kPermission<proto::Reconfigure> = kAdmin;
template <>
constexpr Permission kPermission<proto::MakeToken> = kEverybody;  // see rpc/token_rules.h
template <>
constexpr Permission kPermission<proto::QueryHistory> = kEverybody;
template <>
constexpr Permission kPermission<proto::WhatIf> = kEverybody;
template <>
constexpr Permission kPermission<proto::PlanMigModes> = kOperators;

// The part of a lasting message that makes something.
template <class Message>
bool makes(const Message&) {
  return true;
}
bool makes(const proto::RegisterKey& m) {
  return !m.remove;
}
bool makes(const proto::ApplyTenancy& m) {
  return !m.dry_run;
}
bool makes(const proto::DecideIncrease& m) {
  return m.state == proto::IncreaseState::approved;
}

template <class Message>
Result<void> check(const State& state, const Identity& who, const Message& message) {
  if (who.token_ends && kPermission<Message>.lasts && makes(message))
    return fail(ErrorCode::permission_denied,
                "a token makes nothing that holds when the token does no more: ask with a munge "
                "credential or a registered key");
  constexpr Who allowed = kPermission<Message>.who;
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
  return std::visit([&](const auto& m) { return check(state, who, m); }, message);
}
Result<void> authorise(const State& state, const Identity& who, const ShellMessage& message) {
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
