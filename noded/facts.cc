#include "noded/facts.h"

#include "common/proto/session.h"
#include "common/text/text.h"
#include "common/version.h"
#include "config/gres.h"

namespace gantry::node {

namespace {

// What this release keeps of what jobs are promised.
constexpr std::uint32_t kAbilities = bit_of(NodeAbility::secrets) | bit_of(NodeAbility::storage) |
                                     bit_of(NodeAbility::staging) | bit_of(NodeAbility::doors);

std::string step_address(const NodeSettings& settings, const runtime::NodeFacts& machine) {
  if (!settings.node.address.empty()) return settings.node.address;
  const auto& noded = settings.config.noded;
  const bool anywhere = noded.listen_host == "0.0.0.0" || noded.listen_host == "::";
  return fmt::format("{}:{}", anywhere ? machine.hostname : noded.listen_host, noded.listen_port);
}

}  // namespace

FactsReport node_facts(const NodeSettings& settings, const runtime::NodeFacts& machine) {
  FactsReport out;
  proto::NodeRegister& facts = out.facts;
  facts.abilities = kAbilities;
  facts.node = settings.node.name;
  facts.protocol = proto::kProtocolVersion;
  facts.version = kVersion;
  facts.boot_id = machine.boot_id;
  facts.address = step_address(settings, machine);
  facts.sockets = machine.sockets;
  facts.cores_per_socket = machine.cores_per_socket;
  facts.threads_per_core = machine.threads_per_core;
  facts.memory = settings.node.memory;
  facts.scratch = settings.node.scratch;
  facts.cpus = settings.cpus;
  for (const DeclaredGres& g : declared_gres(settings.node))
    facts.gres.push_back({g.name, g.count});
  // A node that runs nothing needs no resources of the machine.
  if (settings.runs_nothing) return out;

  if (!settings.share_cpus)
    std::erase_if(facts.cpus, [&](std::uint16_t id) {
      return std::none_of(machine.cpus.begin(), machine.cpus.end(),
                          [&](const runtime::CpuFact& c) { return c.id == id; });
    });
  if (facts.cpus.size() < settings.cpus.size())
    out.warnings.push_back(fmt::format("{} CPUs are declared, {} of them exist here",
                                       settings.cpus.size(), facts.cpus.size()));
  if (facts.memory > machine.memory) {
    out.warnings.push_back(fmt::format("{} of memory is declared, {} exists",
                                       format_memory_rounded(facts.memory),
                                       format_memory_rounded(machine.memory)));
    facts.memory = machine.memory;
  }
  if (facts.scratch > machine.scratch_free) {
    out.warnings.push_back(fmt::format("{} of scratch space is declared, {} is free",
                                       format_memory_rounded(facts.scratch),
                                       format_memory_rounded(machine.scratch_free)));
    facts.scratch = machine.scratch_free;
  }
  return out;
}

}  // namespace gantry::node
