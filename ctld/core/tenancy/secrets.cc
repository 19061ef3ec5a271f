#include "ctld/core/tenancy/secrets.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "common/text/printable.h"
#include "config/config.h"
#include "config/values.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_secret.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

const std::vector<SecretUse>* wanted_by(const State& state, const Job& job) {
  if (state.secrets.wanted.empty()) return nullptr;
  const auto it = state.secrets.wanted.find(job.is_element() ? job.array : job.id);
  return it == state.secrets.wanted.end() ? nullptr : &it->second;
}

std::string name_of(const SecretUse& use) {
  return use.version == 0 ? use.name : fmt::format("{}@{}", use.name, use.version);
}

// The version that the use refers to now; 0 = there is none.
std::uint32_t version_now(const State& state, const std::string& tenant, const SecretUse& use) {
  const SecretState* secret = state.secrets.find(tenant, use.name);
  if (secret == nullptr) return 0;
  if (use.version == 0) return secret->versions.back().number;
  return secret->find(use.version) == nullptr ? 0 : use.version;
}

tl::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

Result<void> check_file(const SecretUse& use, std::set<std::string>& files) {
  const std::string& file = use.file.empty() ? use.name : use.file;
  if (!config::is_word(use.name))
    return bad(
        fmt::format("\"{:.80}\" is no name of a secret; it has 1 to 64 letters, digits, '-', "
                    "'_' and '.', and begins with a letter, a digit or '_'",
                    use.name));
  if (!config::is_word(file) || file.starts_with(kTokenPrefix))
    return bad(
        fmt::format("\"{:.80}\" is no name for the file of a secret; it has 1 to 64 letters, "
                    "digits, '-', '_' and '.', and begins neither with '-' or '.' nor with "
                    "{}",
                    file, kTokenPrefix));
  if (files.insert(file).second) return {};
  return bad(
      fmt::format("two secrets of the job would be in the file {}: name another file for one "
                  "of them, as --secret={}:OTHER",
                  file, name_of(use)));
}

Result<void> check_audiences(const Context& ctx, const std::vector<std::string>& audiences) {
  if (audiences.empty()) return {};
  if (ctx.config.controller.identity_issuer.empty())
    return fail(ErrorCode::unsupported,
                "--identity: no tokens are made here, as controller.identity_issuer is not set");
  if (audiences.size() > kMostAudiences)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the job asks for tokens for {} audiences; at most {} are allowed",
                            audiences.size(), kMostAudiences));
  std::set<std::string> files;
  for (const std::string& audience : audiences) {
    const bool plain =
        std::all_of(audience.begin(), audience.end(), [](char c) { return c > ' ' && c < 0x7f; });
    if (audience.empty() || audience.size() > kMostAudienceBytes || !plain)
      return bad(
          fmt::format("an audience has 1 to {} printable ASCII characters without blanks, not "
                      "\"{:.80}\"",
                      kMostAudienceBytes, printable(audience)));
    if (!files.insert(token_file(audience)).second)
      return bad(
          fmt::format("the tokens for two audiences would be in the file {}: ask for one of "
                      "them",
                      token_file(audience)));
  }
  return {};
}

}  // namespace

std::string token_file(std::string_view audience) {
  std::string out(kTokenPrefix);
  for (const char c : audience) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '-' || c == '_';
    out += kept ? c : '_';
  }
  return out.substr(0, 200);
}

std::uint32_t next_version(const State& state, const std::string& tenant, const std::string& name) {
  const auto it = state.secrets.tenants.find(tenant);
  if (it == state.secrets.tenants.end()) return 1;
  const SecretState* secret = state.secrets.find(tenant, name);
  const std::uint32_t last = secret == nullptr ? 0 : secret->versions.back().number;
  return std::max(last, it->second.removed) + 1;
}

Result<void> check_secrets(const Context& ctx, const Partition& queue, const JobSpec& spec) {
  if (auto r = check_audiences(ctx, spec.identity_audiences); !r) return r;
  if (spec.secrets.empty()) return {};
  const std::string tenant = tenant_name_of(ctx.state, queue);
  if (tenant.empty()) return bad("secrets belong to tenants, and this job belongs to none");
  if (spec.secrets.size() > kMostSecretsOfJob)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("the job asks for {} secrets; at most {} are allowed",
                            spec.secrets.size(), kMostSecretsOfJob));
  std::set<std::string> files;
  for (const SecretUse& use : spec.secrets) {
    if (auto r = check_file(use, files); !r) return r;
    if (version_now(ctx.state, tenant, use) == 0)
      return fail(ErrorCode::not_found,
                  fmt::format("tenant {} has no secret {}", tenant, name_of(use)));
  }
  return {};
}

Result<std::vector<SecretUse>> secrets_of(const State& state, const Job& job) {
  std::vector<SecretUse> out;
  const std::vector<SecretUse>* wanted = wanted_by(state, job);
  if (wanted == nullptr) return out;
  const std::string tenant = tenant_name_of(state, job);
  for (const SecretUse& use : *wanted) {
    const std::uint32_t version = version_now(state, tenant, use);
    if (version == 0) return fail(ErrorCode::not_found, name_of(use));
    out.push_back({use.name, version, use.file.empty() ? use.name : use.file});
  }
  return out;
}

std::optional<Verdict> verdict_of_secrets(const State& state, const Job& job) {
  if (wanted_by(state, job) == nullptr) return std::nullopt;
  const auto found = secrets_of(state, job);
  if (found) return std::nullopt;
  return Verdict{Reason::secret_missing, 0, 0, found.error().message};
}

void take_secrets(Context& ctx, JobId id) {
  const Job& job = ctx.state.jobs.at(id);
  auto uses = secrets_of(ctx.state, job);
  if (!uses || uses->empty()) return;  // startable() has checked this
  ctx.record(event::SecretsTaken{id, tenant_name_of(ctx.state, job), std::move(*uses)});
}

std::vector<SealedSecret> sealed_for(const State& state, const Job& job) {
  std::vector<SealedSecret> out;
  if (job.active->secrets.empty()) return out;
  const std::string tenant = tenant_name_of(state, job);
  for (const SecretUse& use : job.active->secrets) {
    SealedSecret& one = out.emplace_back(SealedSecret{tenant, use.name, use.version, use.file, {}});
    const SecretState* secret = state.secrets.find(tenant, use.name);
    const SealedVersion* version = secret == nullptr ? nullptr : secret->find(use.version);
    if (version != nullptr) one.sealed = version->sealed;  // else the version has just been removed
  }
  return out;
}

std::optional<IdentityClaims> claims_for(const State& state, const Job& job, const JobSpec& spec,
                                         NodeId node) {
  if (spec.identity_audiences.empty()) return std::nullopt;
  IdentityClaims out;
  out.tenant = tenant_name_of(state, job);
  out.project = state.names.text(job.account);
  out.user = state.names.text(job.user);
  out.job = job.id;
  out.attempt = job.attempt;
  out.node = state.node(node).name;
  for (const std::string& audience : spec.identity_audiences)
    out.audiences.emplace_back(audience, token_file(audience));
  return out;
}

}  // namespace gantry::core
