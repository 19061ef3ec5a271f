#include "ctld/core/job/submit/sandbox.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/queues.h"

namespace gantry::core {
namespace {

Sandbox least_of(const CompiledTenant* tenant) {
  return tenant == nullptr ? Sandbox::standard
                           : tenant->effective.security.sandbox.value_or(Sandbox::standard);
}

Result<void> check_tenant(const CompiledTenant& tenant, Sandbox level) {
  const tenancy::TenantSecurity& security = tenant.effective.security;
  const Sandbox least = least_of(&tenant);
  if (level < least)
    return fail(ErrorCode::permission_denied,
                fmt::format("jobs of tenant {} have at least the sandbox {} (security.sandbox of "
                            "its document), and this one would have {}",
                            tenant.effective.name, enum_name(least), enum_name(level)));
  const auto& named = security.sandboxes;
  if (level == least || named.empty() ||
      std::find(named.begin(), named.end(), enum_name(level)) != named.end())
    return {};
  return fail(ErrorCode::permission_denied,
              fmt::format("jobs of tenant {} may not have the sandbox {}: its document names {} "
                          "(security.sandboxes)",
                          tenant.effective.name, enum_name(level), fmt::join(named, ", ")));
}

// What a sandbox with a kernel of its own cannot give; "" = nothing that the job asks for.
std::string lacks(const JobSpec& spec) {
  const JobShape& shape = spec.shape;
  if (spec.kind == JobKind::allocation)
    return "it has no steps (grun, galloc, srun, salloc); start its program with gbatch or sbatch";
  if (shape.gpus_per_node > 0 || shape.gpu_share > 0 || shape.gpu_shards > 0 || shape.all_gpus)
    return "it has no GPUs";
  if (!shape.gres.empty()) return "it has no devices of nodes (--gres)";
  if (spec.network == NetworkMode::host) return "it has no network of the host";
  if (spec.network == NetworkMode::job)
    return "it has no network (--network=job); its loopback is its own";
  return {};
}

// Why the node does not have the sandbox; nullopt if it has it, or if it is not known before the
// node registers.
std::optional<std::string> why_not(const Node& node, Sandbox level) {
  if (node.facts.boot_id.empty()) return std::nullopt;
  for (const SandboxFact& fact : node.facts.sandboxes)
    if (fact.level == level)
      return fact.why_not.empty() ? std::nullopt : std::optional(fact.why_not);
  return level == Sandbox::vm ? "its configuration names no runtime for it (noded.vm_runtime)"
                              : "its node daemon does not know it";
}

}  // namespace

void resolve_sandbox(const State& state, const Partition& partition, JobSpec& spec) {
  const Sandbox level = spec.sandbox.value_or(least_of(tenant_of(state, partition)));
  const bool is_usual = level == Sandbox::standard;
  spec.sandbox = is_usual ? std::nullopt : std::optional(level);
  spec.shape.sandbox = spec.sandbox;
  if (level >= Sandbox::gvisor && spec.network == NetworkMode::job && !spec.network_named)
    spec.network = NetworkMode::loopback;
}

void resolve_abilities(const State& state, const Partition& partition, JobSpec& spec) {
  const CompiledTenant* tenant = tenant_of(state, partition);
  std::uint32_t& out = spec.shape.abilities;
  out = 0;
  const auto needs = [&](bool condition, NodeAbility ability) {
    if (condition) out |= bit_of(ability);
  };
  needs(!spec.secrets.empty() || !spec.identity_audiences.empty(), NodeAbility::secrets);
  needs(!spec.datasets.empty() || (tenant != nullptr && !tenant->effective.storage.path.empty()),
        NodeAbility::storage);
  needs(spec.replica.has_value(), NodeAbility::doors);
  needs(!spec.stage_in.empty() || !spec.stage_out.empty(), NodeAbility::staging);
}

Result<void> check_sandbox(const State& state, const Partition& partition, const JobSpec& spec) {
  const Sandbox level = spec.sandbox.value_or(Sandbox::standard);
  if (const CompiledTenant* tenant = tenant_of(state, partition))
    if (auto r = check_tenant(*tenant, level); !r) return r;
  if (level == Sandbox::standard) return {};
  if (level >= Sandbox::gvisor)
    if (const std::string what = lacks(spec); !what.empty())
      return fail(
          ErrorCode::unsupported,
          fmt::format("a job cannot have this in the sandbox {}: {}", enum_name(level), what));
  std::string first;
  for (const NodeId id : partition.nodes) {
    const Node& node = state.node(id);
    const auto why = why_not(node, level);
    if (!why) return {};
    if (first.empty()) first = fmt::format(" (node {}: {})", node.name, *why);
  }
  return fail(ErrorCode::unsupported, fmt::format("no node of partition {} has the sandbox {}{}",
                                                  partition.name, enum_name(level), first));
}

}  // namespace gantry::core
