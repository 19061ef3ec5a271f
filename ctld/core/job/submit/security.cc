#include "ctld/core/job/submit/security.h"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "ctld/core/context.h"
#include "ctld/core/job/submit/sandbox.h"
#include "ctld/core/request.h"
#include "ctld/core/tenancy/queues.h"

namespace gantry::core {
namespace {

using tenancy::SecurityProfile;

constexpr std::string_view kHub = "docker.io";  // where names without a registry are looked for

// Whether the image is a file or a directory of the nodes. noded/image/manifest.h has the forms.
bool is_file(std::string_view image) {
  for (const std::string_view start : {"/", "./", "../", "oci:", "oci-archive:", "docker-archive:"})
    if (image.starts_with(start)) return true;
  return false;
}

// The full name of an image in a registry: "ubuntu:24.04" is "docker.io/library/ubuntu:24.04".
std::string whole_name(std::string image) {
  constexpr std::string_view kDocker = "docker://";
  if (image.starts_with(kDocker)) image.erase(0, kDocker.size());
  const auto hash = image.find('#');
  if (hash != std::string::npos) {
    image[hash] = '/';
    return image;
  }
  const auto slash = image.find('/');
  const std::string first = image.substr(0, slash);
  if (slash != std::string::npos &&
      (first == "localhost" || first.find_first_of(".:") != std::string::npos))
    return image;
  return fmt::format("{}/{}{}", kHub, slash == std::string::npos ? "library/" : "", image);
}

// Other parts could make the name mean another registry than it seems to.
bool is_plain(std::string_view name) {
  const auto slash = name.find('/');
  if (name.substr(0, slash).find('@') != std::string_view::npos) return false;
  while (!name.empty()) {
    const auto end = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return true;
}

bool comes_from(std::string_view name, std::string_view registry) {
  while (registry.ends_with('/')) registry.remove_suffix(1);
  return name.starts_with(registry) && name.size() > registry.size() &&
         std::string_view("/:@").find(name[registry.size()]) != std::string_view::npos;
}

bool has_digest(std::string_view name) {
  constexpr std::string_view kDigest = "@sha256:";
  constexpr std::size_t kDigits = 64;
  const auto at = name.find(kDigest);
  if (at == std::string_view::npos) return false;
  const std::string_view digits = name.substr(at + kDigest.size());
  return digits.size() == kDigits && std::all_of(digits.begin(), digits.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Result<void> check_image(const tenancy::Tenant& tenant, const std::string& image) {
  const tenancy::TenantSecurity& security = tenant.security;
  if (image.empty()) return {};
  const bool by_digest = security.images_by_digest.value_or(false);
  if (security.registries.empty() && !by_digest) return {};
  const auto refused = [&](const std::string& why) {
    return fail(ErrorCode::permission_denied,
                fmt::format("tenant {} may not use the image {}: {}", tenant.name, image, why));
  };
  if (is_file(image)) {
    if (security.registries.empty())
      return refused(
          "it is a file of the nodes, and images are named by digest "
          "(security.images_by_digest of its document)");
    return refused(
        fmt::format("it is a file of the nodes, and images come from {} "
                    "(security.registries of its document)",
                    fmt::join(security.registries, ", ")));
  }
  const std::string name = whole_name(image);
  if (!is_plain(name)) return refused("its name is not REGISTRY/PATH[:TAG][@DIGEST]");
  if (!security.registries.empty() &&
      std::none_of(security.registries.begin(), security.registries.end(),
                   [&](const std::string& registry) { return comes_from(name, registry); }))
    return refused(fmt::format("images come from {} (security.registries of its document)",
                               fmt::join(security.registries, ", ")));
  if (by_digest && !has_digest(name))
    return refused(
        "it must be named by digest, IMAGE@sha256:DIGEST "
        "(security.images_by_digest of its document)");
  return {};
}

// What the job asks for that the security profile forbids; "" if nothing.
std::string breaks(SecurityProfile profile, Uid uid, const JobSpec& spec) {
  if (profile >= SecurityProfile::baseline && spec.network == NetworkMode::host)
    return "it has no network of the host";
  if (profile >= SecurityProfile::restricted && uid == Uid(0)) return "it has no jobs of root";
  return {};
}

// A tenant whose document allows the host's network, and names no profile, gets the rules from
// before profiles existed.
SecurityProfile enforced(const tenancy::Tenant& tenant) {
  return tenant.security.enforce.value_or(tenant.jobs.host_network.value_or(false)
                                              ? SecurityProfile::privileged
                                              : SecurityProfile::restricted);
}

}  // namespace

Result<void> check_security(const State& state, Uid uid, const Partition& partition,
                            const JobSpec& spec) {
  if (auto r = check_sandbox(state, partition, spec); !r) return r;
  const CompiledTenant* tenant = tenant_of(state, partition);
  if (tenant == nullptr) return {};
  const tenancy::Tenant& t = tenant->effective;
  // Without a profile the limit about the host's network decides (check_host_network).
  if (!t.security.enforce && spec.network == NetworkMode::host)
    return check_image(t, spec.container.image);
  const SecurityProfile profile = enforced(t);
  if (const std::string why = breaks(profile, uid, spec); !why.empty())
    return fail(ErrorCode::permission_denied,
                fmt::format("tenant {} has the security profile {} (security.enforce of its "
                            "document): {}",
                            t.name, enum_name(profile), why));
  return check_image(t, spec.container.image);
}

Result<void> apply_security(Context& ctx, const Identity& who, const Partition& partition,
                            JobSpec& spec, std::vector<std::string>& warnings) {
  resolve_sandbox(ctx.state, partition, spec);
  resolve_abilities(ctx.state, partition, spec);
  if (auto r = check_security(ctx.state, who.owner.uid, partition, spec); !r) return r;
  const CompiledTenant* tenant = tenant_of(ctx.state, partition);
  if (tenant == nullptr) return {};
  const tenancy::TenantSecurity& security = tenant->effective.security;
  const auto found = [&](const std::optional<SecurityProfile>& profile) {
    const std::string why = profile ? breaks(*profile, who.owner.uid, spec) : std::string();
    return why.empty() ? why
                       : fmt::format("the job breaks the security profile {} of tenant {}: {}",
                                     enum_name(*profile), tenant->effective.name, why);
  };
  if (std::string text = found(security.audit); !text.empty())
    ctx.note(fmt::format("a job of {} ({}): {}", who.owner.user, spec.name, text));
  if (std::string text = found(security.warn); !text.empty()) warnings.push_back(std::move(text));
  return {};
}

}  // namespace gantry::core
