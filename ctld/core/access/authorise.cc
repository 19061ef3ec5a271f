// Applies the rules of authorise.h; the rights by message are in the table of messages.
#include "ctld/core/access/authorise.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/proto/any/any_message.h"
#include "common/proto/budget.h"
#include "common/proto/control.h"
#include "common/proto/message_table.h"
#include "common/proto/session.h"
#include "common/proto/tenancy.h"
#include "ctld/core/access/front_door.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

// True if the message makes something that lasts longer than a token.
bool makes(const proto::AnyMessage& message) {
  if (const auto* key = message.get_if<proto::RegisterKey>()) return !key->remove;
  if (const auto* apply = message.get_if<proto::ApplyTenancy>()) return !apply->dry_run;
  const auto* decide = message.get_if<proto::DecideIncrease>();
  return decide == nullptr || decide->state == proto::IncreaseState::approved;
}

Result<void> check(const State& state, const Identity& who, const proto::MessageRow& row,
                   const proto::AnyMessage& message) {
  const auto sender = who.inside ? proto::Sender::job : proto::Sender::client;
  if (auto sent = proto::check_sender(static_cast<std::uint16_t>(row.type), sender,
                                      proto::Place::controller);
      !sent)
    return sent;
  if (who.token_ends && row.lasts && makes(message))
    return fail(ErrorCode::permission_denied,
                "a token makes nothing that holds when the token does no more: ask with a munge "
                "credential or a registered key");
  if (who.by_login_node && proto::needs_credential(row))
    return fail(ErrorCode::unauthenticated,
                "a login node's word is not enough for this: ask with a munge credential or a "
                "registered key");
  if (row.type == proto::MessageType::ReadAudit && !reads_audit(state, who))
    return fail(
        ErrorCode::permission_denied,
        fmt::format("{} is neither auditor nor administrator of this cluster", who.owner.user));
  switch (row.right) {
    case proto::Right::everybody: return {};
    case proto::Right::operators:
      if (is_operator(state, who)) return {};
      return fail(
          ErrorCode::permission_denied,
          fmt::format("{} is neither operator nor administrator of this cluster", who.owner.user));
    case proto::Right::admins: break;
  }
  if (is_admin(who)) return {};
  return fail(ErrorCode::permission_denied,
              fmt::format("{} is no administrator of this cluster", who.owner.user));
}

// True if a grant for the whole cluster gives the asker a role that `fits`.
template <class Fits>
bool granted(const State& state, const Identity& who, Fits fits) {
  if (who.inside) return false;
  const auto& grants = state.tenancy.compiled.cluster_grants;
  return std::any_of(grants.begin(), grants.end(), [&](const tenancy::Grant& grant) {
    return is_to(grant, who) && fits(grant.role);
  });
}

}  // namespace

Result<void> authorise(const State& state, const Identity& who, const proto::AnyMessage& message) {
  const auto row = proto::find_message(static_cast<std::uint16_t>(message.type()));
  GANTRY_ASSERT(row.has_value(), "a message has a type");
  return check(state, who, *row, message);
}

void take_grants(const State& state, Identity& who) {
  if (granted(state, who, [](tenancy::Role role) { return role == tenancy::Role::admin; }))
    who.role = proto::Role::admin;
}

bool is_admin(const Identity& who) {
  return who.role == proto::Role::admin && !who.inside;
}

bool is_operator(const State& state, const Identity& who) {
  return is_admin(who) || granted(state, who, [](tenancy::Role role) {
           return role >= tenancy::Role::operator_role;
         });
}

bool reads_audit(const State& state, const Identity& who) {
  return is_admin(who) ||
         granted(state, who, [](tenancy::Role role) { return role == tenancy::Role::auditor; });
}

bool sees_all(const State& state, const Identity& who) {
  return is_operator(state, who) ||
         granted(state, who, [](tenancy::Role role) { return role == tenancy::Role::auditor; });
}

Reach::Reach(const State& state, const Identity& who)
    : admin_(is_operator(state, who)), sees_all_(sees_all(state, who)), uid_(who.owner.uid) {
  if (admin_ || who.inside) return;
  for (const auto& [name, tenant] : state.tenancy.compiled.tenants) {
    const bool change = has_right(state, who, name, TenantRight::change_jobs);
    const bool read = has_right(state, who, name, TenantRight::read_output);
    const bool see = has_right(state, who, name, TenantRight::see);
    for (const PartitionId id : state.queues_of_tenant(name)) {
      if (see) sees_.push_back(id);
      if (change) changes_.push_back(id);
      if (read) reads_.push_back(id);
    }
  }
  for (auto* list : {&sees_, &changes_, &reads_}) std::sort(list->begin(), list->end());
}

const std::vector<PartitionId>& Reach::queues(May what) const {
  if (what == May::see) return sees_;
  return what == May::change ? changes_ : reads_;
}

bool Reach::may(May what, const State& state, const Job& job) const {
  if (admin_ || job.uid == uid_ || (sees_all_ && what == May::see)) return true;
  const std::vector<PartitionId>& own = queues(what);
  return !own.empty() && std::binary_search(own.begin(), own.end(), class_of(state, job).partition);
}

bool may(May what, const State& state, const Identity& who, const Job& job) {
  if (is_admin(who) || job.uid == who.owner.uid) return true;
  if (who.inside) return false;
  if (is_operator(state, who) || (what == May::see && sees_all(state, who))) return true;
  const std::string& payer = state.partition(class_of(state, job).partition).payer();
  const TenantRight right = what == May::see      ? TenantRight::see
                            : what == May::change ? TenantRight::change_jobs
                                                  : TenantRight::read_output;
  return has_right(state, who, payer, right);
}

Result<void> may_go_on(const State& state, const Identity& who, const Job& job) {
  const std::string& payer = state.partition(class_of(state, job).partition).payer();
  if (is_operator(state, who) || state.tenancy.tenant(payer) == nullptr) return {};
  // A running job may resume jobs of its own tenant. This also holds while the user database, which
  // names the groups of its owner, does not answer.
  const Job* own = who.inside ? state.jobs.find(who.inside->job) : nullptr;
  if (own != nullptr && state.partition(class_of(state, *own).partition).payer() == payer)
    return {};
  if (has_right(state, who, payer, TenantRight::submit)) return {};
  return fail(
      ErrorCode::permission_denied,
      fmt::format("{} may not submit any more to tenant {}, which pays for the job: it can be "
                  "held and cancelled",
                  who.owner.user, payer));
}

std::string who_text(const Identity& who) {
  return is_admin(who) ? fmt::format("{} (administrator)", who.owner.user) : who.owner.user;
}

}  // namespace gantry::core
