// Tokens that act for users (rpc/identity.cc checks them), identity tokens with which users call
// services, and pages of the audit log for auditors without access to this machine.
#include "ctld/answers.h"

#include "common/audit/audit_reader.h"
#include "common/auth/token.h"
#include "common/auth/users.h"
#include "common/codec/codec.h"
#include "common/proto/control.h"
#include "common/proto/session.h"
#include "ctld/core/request.h"
#include "ctld/notary.h"
#include "ctld/rpc/token_rules.h"

namespace gantry::ctld {
namespace {

constexpr std::size_t kMostPageBytes = 2u << 20;

Result<proto::TokenMade> service_token(const core::State& state, const Notary& notary,
                                       const core::Identity& who, const proto::MakeToken& message,
                                       Instant now, const Logger& log) {
  ASSIGN(wish, core::service_token_for(state, who, message, now));
  auto made = notary.service_token(*wish);
  if (made)
    log.write(LogLevel::info, "made an identity token",
              {{"user", wish->user}, {"tenant", wish->tenant}, {"audience", wish->audience}});
  return made;
}

Result<proto::TokenMade> user_token(const auth::SigningSeed& key, const core::Identity& who,
                                    const proto::MakeToken& message, Duration longest, Instant now,
                                    const Logger& log) {
  if (!message.tenant.empty())
    return fail(ErrorCode::invalid_argument, "a tenant belongs to a token with an audience");
  ASSIGN(token, rpc::token_for(who, message, longest, now));
  TRY(auth::find_user(token->user));
  log.write(LogLevel::info, "made a token",
            {{"user", token->user},
             {"by", who.owner.user},
             {"seconds", (token->expires - token->issued).seconds()}});
  return proto::TokenMade{auth::make_token(key, *token), token->user, token->expires};
}

}  // namespace

void Answers::make_token(const Asked& asked, const proto::MakeToken& message) {
  const auto made =
      message.audience.empty()
          ? user_token(token_, asked.who, message, shell_.config.controller.max_token_lifetime,
                       shell_.clock.now(), shell_.log)
          : service_token(shell_.core.state(), notary_, asked.who, message, shell_.clock.now(),
                          shell_.log);
  if (!made) return connections_.refuse(asked.session, asked.request, made.error());
  connections_.send(asked.session, asked.request, *made);
}

void Answers::read_audit(const Asked& asked, const proto::ReadAudit& message) {
  const std::string directory = shell_.config.controller.state_dir + "/audit";
  const std::size_t most = message.most == 0 || message.most > proto::kMostAuditLines
                               ? proto::kMostAuditLines
                               : message.most;
  auto page = message.newest ? audit::newest_page(directory, most, kMostPageBytes)
                             : audit::page_after(directory, message.after, most, kMostPageBytes);
  if (!page) return connections_.refuse(asked.session, asked.request, page.error());
  const proto::AuditPage reply{std::move(page->lines), page->more};
  connections_.send(asked.session, asked.request, reply);
}

}  // namespace gantry::ctld
