// SetSecret, RemoveSecret, ListSecrets: the secrets of a tenant, without their content. Users with
// the right edit_secrets make, replace and remove them; everybody who sees the tenant sees their
// names and versions. For all others the tenant does not seem to exist.
#include <algorithm>

#include <fmt/core.h>

#include "common/proto/secrets.h"
#include "config/values.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_secret.h"
#include "ctld/core/handler.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/tenancy/secrets.h"
#include "ctld/core/tenancy/subject.h"

namespace gantry::core {
namespace {

Error no_tenant(const std::string& name) {
  return {ErrorCode::not_found, fmt::format("there is no tenant {}", name)};
}

Result<void> check_editor(const State& state, const Identity& who, const std::string& tenant) {
  if (!Sight(state, who).tenant(tenant) || state.tenancy.tenant(tenant) == nullptr)
    return tl::unexpected(no_tenant(tenant));
  if (has_right(state, who, tenant, TenantRight::edit_secrets)) return {};
  return fail(ErrorCode::permission_denied,
              fmt::format("{} may not change secrets of tenant {}: its admins may", who.owner.user,
                          tenant));
}

Result<void> check_name(const std::string& name) {
  if (config::is_word(name)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{:.80}\" is no name of a secret; it has 1 to 64 letters, digits, '-', "
                          "'_' and '.', and begins with a letter, a digit or '_'",
                          name));
}

// Bytes of all sealed versions of the tenant.
std::size_t sealed_bytes(const TenantSecrets& secrets) {
  std::size_t bytes = 0;
  for (const auto& [name, secret] : secrets.by_name)
    for (const SealedVersion& version : secret.versions) bytes += version.sealed.size();
  return bytes;
}

Result<void> check_room(const State& state, const proto::SetSecret& m) {
  if (m.keep < 1 || m.keep > proto::kMaxSecretVersions)
    return fail(ErrorCode::invalid_argument,
                fmt::format("1 to {} versions of a secret can be kept, not {}",
                            proto::kMaxSecretVersions, m.keep));
  const auto it = state.secrets.tenants.find(m.tenant);
  if (it == state.secrets.tenants.end()) return {};
  if (it->second.by_name.size() >= kMostSecrets && !it->second.by_name.contains(m.name))
    return fail(ErrorCode::limit_exceeded,
                fmt::format("tenant {} has {} secrets, as many as one may have", m.tenant,
                            it->second.by_name.size()));
  if (sealed_bytes(it->second) + m.sealed.size() > kMostSealedBytes)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the secrets of tenant {} would have more than {} MiB together, all "
                            "versions counted: keep fewer of them",
                            m.tenant, kMostSealedBytes >> 20));
  return {};
}

// Jobs of the tenant that name the secret and have not ended.
std::uint64_t waiting_for(const State& state, const std::string& tenant, const std::string& name) {
  std::uint64_t count = 0;
  for (const auto& [id, uses] : state.secrets.wanted) {
    const Job* job = state.jobs.find(id);
    if (job == nullptr || job->phase == Phase::ended) continue;
    if (std::none_of(uses.begin(), uses.end(), [&](const SecretUse& u) { return u.name == name; }))
      continue;
    count += tenant_name_of(state, state.partition(class_of(state, *job).partition)) == tenant;
  }
  return count;
}

proto::SecretRow row_of(const State& state, const std::string& tenant, const std::string& name) {
  proto::SecretRow row{tenant, name, {}, waiting_for(state, tenant, name)};
  if (const SecretState* secret = state.secrets.find(tenant, name))
    row.versions.assign(secret->versions.begin(), secret->versions.end());
  return row;
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::SetSecret&& message) {
  auto sound = check_editor(ctx.state, from.who, message.tenant);
  if (sound) sound = check_name(message.name);
  if (sound) sound = check_room(ctx.state, message);
  // The shell seals the content before the core sees it; nothing else may get into the journal.
  if (sound && (!message.content.empty() || message.sealed.empty() ||
                message.version != next_version(ctx.state, message.tenant, message.name)))
    sound = fail(ErrorCode::internal, "the secret was not sealed");
  if (!sound) return refuse(ctx, from, sound.error());
  ctx.record(event::SecretSet{message.tenant, message.name, message.version,
                              std::move(message.sealed), from.who.owner.user, message.keep});
  ctx.reply(from, proto::SecretList{{row_of(ctx.state, message.tenant, message.name)}});
}

static void handle(Context& ctx, const ClientRequest& from, proto::RemoveSecret&& message) {
  if (auto r = check_editor(ctx.state, from.who, message.tenant); !r)
    return refuse(ctx, from, r.error());
  const SecretState* secret = ctx.state.secrets.find(message.tenant, message.name);
  if (secret == nullptr || (message.version != 0 && secret->find(message.version) == nullptr))
    return refuse(ctx, from,
                  {ErrorCode::not_found,
                   fmt::format("tenant {} has no secret {:.80}{}", message.tenant, message.name,
                               message.version == 0 ? "" : fmt::format("@{}", message.version))});
  ctx.record(event::SecretRemoved{message.tenant, message.name, message.version});
  ctx.reply(from, proto::SecretList{{row_of(ctx.state, message.tenant, message.name)}});
}

static void handle(Context& ctx, const ClientRequest& from, proto::ListSecrets&& message) {
  const Sight sight(ctx.state, from.who);
  proto::SecretList reply;
  std::vector<std::string> tenants = message.tenants;
  for (const std::string& tenant : tenants)
    if (!sight.tenant(tenant) || ctx.state.tenancy.tenant(tenant) == nullptr)
      return refuse(ctx, from, no_tenant(tenant));
  if (tenants.empty())
    for (const auto& [tenant, secrets] : ctx.state.secrets.tenants)
      if (sight.tenant(tenant)) tenants.push_back(tenant);
  std::sort(tenants.begin(), tenants.end());
  tenants.erase(std::unique(tenants.begin(), tenants.end()), tenants.end());
  for (const std::string& tenant : tenants) {
    const auto it = ctx.state.secrets.tenants.find(tenant);
    if (it == ctx.state.secrets.tenants.end()) continue;
    for (const auto& [name, secret] : it->second.by_name)
      if (message.name.empty() || message.name == name)
        reply.rows.push_back(row_of(ctx.state, tenant, name));
  }
  if (!message.name.empty() && reply.rows.empty())
    return refuse(ctx, from,
                  {ErrorCode::not_found, fmt::format("there is no secret {:.80}", message.name)});
  ctx.reply(from, std::move(reply));
}

const Subject kSecretMessages{
    .name = "secret",
    .handlers = kHandlers<proto::SetSecret, proto::RemoveSecret, proto::ListSecrets>};

}  // namespace gantry::core
