#include "ctld/notary.h"

#include <fmt/core.h>

#include "common/proto/gate.h"
#include "common/proto/node_order.h"
#include "common/proto/secrets.h"
#include "common/proto/session.h"
#include "ctld/core/core.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/secrets.h"
#include "ctld/core/turn_out.h"

namespace gantry::ctld {
namespace {

constexpr Duration kLookAtKeys = minutes(10);

bool has_secrets(const core::State& state) {
  for (const auto& [tenant, secrets] : state.secrets.tenants)
    if (!secrets.by_name.empty()) return true;
  return false;
}

}  // namespace

Result<std::unique_ptr<Notary>> Notary::open(const ControllerConfig& config, const core::Core& core,
                                             loop::ClusterClock& clock, loop::Loop& loop,
                                             const Logger& log) {
  std::unique_ptr<Notary> out(new Notary(core, clock));
  const std::string file = config.state_dir + "/secrets.key";
  ASSIGN(box, secrets::SecretBox::load(file));
  out->box_ = std::make_unique<secrets::SecretBox>(std::move(*box));
  if (out->box_->is_new() && has_secrets(core.state()))
    log.write(LogLevel::error,
              "the key of the secrets was missing, and a new one was made: the secrets that are "
              "there cannot be opened until the old file is back",
              {{"file", file}});
  if (config.identity_issuer.empty()) return out;
  ASSIGN(keys, secrets::IdentityKeys::load(
                   config.state_dir + "/identity.keys",
                   {config.identity_issuer, config.identity_lifetime, config.identity_key_time},
                   clock.now()));
  out->identity_ = std::move(*keys);
  out->look_ = loop.every(kLookAtKeys, [&keys = *out->identity_, &clock, &log] {
    if (auto done = keys.look(clock.now()); !done)
      log.write(LogLevel::error, "the keys that sign identity tokens could not be renewed",
                {{"error", done.error().message}});
  });
  return out;
}

Result<void> Notary::seal(proto::SetSecret& message) const {
  message.sealed.clear();
  message.version = core::next_version(core_.state(), message.tenant, message.name);
  const std::size_t bytes = message.content.size();
  if (bytes > 0 && bytes <= proto::kMaxSecretBytes)
    message.sealed = box_->seal({message.tenant, message.name, message.version}, message.content);
  secrets::wipe(message.content);
  if (bytes == 0) return fail(ErrorCode::invalid_argument, "the content of the secret is empty");
  if (bytes <= proto::kMaxSecretBytes) return {};
  return fail(ErrorCode::limit_exceeded,
              fmt::format("the content of the secret has {} bytes; at most {} are allowed", bytes,
                          proto::kMaxSecretBytes));
}

void Notary::prepare(proto::GateTable& table) const {
  for (proto::GateService& service : table.services) {
    const std::string password = box_->password(service.name);
    for (proto::GateReplica& replica : service.replicas) replica.password = password;
  }
  if (!identity_ || table.unchanged) return;
  table.issuer = identity_->issuer();
  table.keys = identity_->published();
}

Result<void> Notary::prepare(core::Order& order) const {
  auto* launch = order.message.get_if<proto::Launch>();
  if (launch != nullptr && launch->door && launch->spec.replica)
    launch->door->password = box_->password(launch->spec.replica->service);
  for (const core::SealedSecret& one : order.blobs.sealed) {
    if (launch == nullptr) break;
    if (one.sealed.empty())
      return fail(ErrorCode::not_found,
                  fmt::format("secret {}@{} of tenant {} was removed after the job was given its "
                              "nodes",
                              one.name, one.version, one.tenant));
    ASSIGN(content, box_->open({one.tenant, one.name, one.version}, one.sealed));
    launch->secrets.push_back({one.file, std::move(*content)});
  }
  if (!order.blobs.identity) return {};
  if (!identity_)
    return fail(ErrorCode::unsupported,
                "no identity tokens are made any more: controller.identity_issuer is not set");
  auto* renewed = order.message.get_if<proto::IdentityTokens>();
  const core::IdentityClaims& who = *order.blobs.identity;
  for (const auto& [audience, file] : who.audiences) {
    secrets::Claims claims;
    claims.audience = audience;
    claims.tenant = who.tenant;
    claims.project = who.project;
    claims.user = who.user;
    claims.node = who.node;
    claims.job = who.job.value();
    claims.attempt = who.attempt.value();
    ASSIGN(token, identity_->token(claims, clock_.now(), identity_->lifetime()));
    auto& list = launch != nullptr ? launch->identity : renewed->tokens;
    list.push_back({audience, file, std::move(*token), identity_->lifetime()});
  }
  return {};
}

Result<proto::TokenMade> Notary::service_token(const core::ServiceTokenWish& wish) const {
  if (!identity_)
    return fail(ErrorCode::unsupported,
                "no identity tokens are made here, as controller.identity_issuer is not set");
  const Instant now = clock_.now();
  const Duration valid = std::min(wish.lifetime, identity_->lifetime());
  secrets::Claims claims;
  claims.audience = wish.audience;
  claims.tenant = wish.tenant;
  claims.user = wish.user;
  ASSIGN(token, identity_->token(claims, now, valid));
  return proto::TokenMade{std::move(*token), wish.user, now + valid, wish.tenant};
}

void Notary::forget_contents(core::Order& order) {
  if (auto* launch = order.message.get_if<proto::Launch>())
    for (proto::SecretFile& one : launch->secrets) secrets::wipe(one.content);
}

http::Response Notary::page(const std::string& path) const {
  constexpr std::string_view kJson = "application/json";
  if (!identity_)
    return {404, "text/plain; charset=utf-8", "controller.identity_issuer is not set\n"};
  if (path == "/.well-known/openid-configuration")
    return {200, std::string(kJson), identity_->configuration()};
  if (path == "/.well-known/jwks.json") return {200, std::string(kJson), identity_->published()};
  return {404, "text/plain; charset=utf-8",
          "there are /.well-known/openid-configuration and /.well-known/jwks.json\n"};
}

}  // namespace gantry::ctld
