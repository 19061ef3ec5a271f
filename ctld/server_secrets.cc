// What the core has no keys for: contents of secrets are sealed before the core sees a SetSecret,
// and opened when an order to a node leaves; identity tokens are signed then, too. See ctld/secrets.
#include <fmt/core.h>

#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/secrets.h"
#include "ctld/http/http_server.h"
#include "ctld/secrets/identity_keys.h"
#include "ctld/secrets/secret_box.h"
#include "ctld/server.h"

namespace gantry::ctld {
namespace {

constexpr Duration kLookAtKeys = minutes(10);

bool has_secrets(const core::State& state) {
  for (const auto& [tenant, secrets] : state.secrets.tenants)
    if (!secrets.by_name.empty()) return true;
  return false;
}

}  // namespace

Result<void> Server::open_secrets() {
  const ControllerConfig& c = config_.controller;
  auto box = secrets::SecretBox::load(c.state_dir + "/secrets.key");
  if (!box) return tl::unexpected(box.error());
  box_ = std::make_unique<secrets::SecretBox>(std::move(*box));
  if (box_->is_new() && has_secrets(core_->state()))
    log_.write(LogLevel::error,
               "the key of the secrets was missing, and a new one was made: the secrets that are "
               "there cannot be opened until the old file is back",
               {{"file", c.state_dir + "/secrets.key"}});
  if (c.identity_issuer.empty()) return {};
  auto keys = secrets::IdentityKeys::load(
      c.state_dir + "/identity.keys",
      {c.identity_issuer, c.identity_lifetime, c.identity_key_time}, clock_.now());
  if (!keys) return tl::unexpected(keys.error());
  identity_ = std::move(*keys);
  keys_ = loop_.every(kLookAtKeys, [this] {
    if (auto done = identity_->look(clock_.now()); !done)
      log_.write(LogLevel::error, "the keys that sign identity tokens could not be renewed",
                 {{"error", done.error().message}});
  });
  return {};
}

Result<void> Server::seal(proto::SetSecret& message) const {
  message.sealed.clear();
  message.version = core::next_version(core_->state(), message.tenant, message.name);
  const std::size_t bytes = message.content.size();
  if (bytes > 0 && bytes <= proto::kMaxSecretBytes)
    message.sealed =
        box_->seal({message.tenant, message.name, message.version}, message.content);
  secrets::wipe(message.content);
  if (bytes == 0) return fail(ErrorCode::invalid_argument, "the content of the secret is empty");
  if (bytes <= proto::kMaxSecretBytes) return {};
  return fail(ErrorCode::limit_exceeded,
              fmt::format("the content of the secret has {} bytes; at most {} are allowed", bytes,
                          proto::kMaxSecretBytes));
}

// Fills in the contents and the tokens that an order carries to its node.
Result<void> Server::prepare(core::Order& order) {
  auto* launch = std::get_if<proto::Launch>(&order.message);
  for (const core::SealedSecret& one : order.blobs.sealed) {
    if (launch == nullptr) break;
    if (one.sealed.empty())
      return fail(ErrorCode::not_found,
                  fmt::format("secret {}@{} of tenant {} was removed after the job was given its "
                              "nodes",
                              one.name, one.version, one.tenant));
    auto content = box_->open({one.tenant, one.name, one.version}, one.sealed);
    if (!content) return tl::unexpected(content.error());
    launch->secrets.push_back({one.file, std::move(*content)});
  }
  if (!order.blobs.identity) return {};
  if (!identity_)
    return fail(ErrorCode::unsupported,
                "no identity tokens are made any more: controller.identity_issuer is not set");
  auto* renewed = std::get_if<proto::IdentityTokens>(&order.message);
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
    auto token = identity_->token(claims, clock_.now());
    if (!token) return tl::unexpected(token.error());
    auto& list = launch != nullptr ? launch->identity : renewed->tokens;
    list.push_back({audience, file, std::move(*token), identity_->lifetime()});
  }
  return {};
}

void Server::forget_contents(core::Order& order) {
  if (auto* launch = std::get_if<proto::Launch>(&order.message))
    for (proto::SecretFile& one : launch->secrets) secrets::wipe(one.content);
}

http::Response Server::identity_page(const std::string& path) const {
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
