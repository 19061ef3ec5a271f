// gctl mig: shows where the planner would switch MIG mode, with the command that does it. Gantry
// partitions GPUs in MIG mode but never switches the mode itself. Switching needs an idle GPU
// without any other client of the driver, and on some models a reset.
#include <fmt/core.h>

#include <set>

#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "cli/table.h"
#include "common/proto/cluster.h"
#include "common/proto/gpu_rows.h"

namespace gantry::cli::gctl_mig {
namespace {

struct Mig {
  std::string format;
  bool no_header = false;
  bool json = false;
};

constexpr Option kOptions[] = {
    takes("format", 'o', "FORMAT",
          "These columns, as %10N: N node, g GPU, m model, w wanted mode, s what the jobs wait "
          "for, n how many jobs (at least), j the first of them, r why, c the command",
          put<&Mig::format>),
    flag("json", "As JSON", put<&Mig::json>),
    flag("noheader", 'h', "No header", put<&Mig::no_header>),
};

struct Row {
  proto::MigModeRow plan;
  std::string pci;  // "" = the node did not report it
};
using O = std::string&;
using R = const Row&;

void put_command(O o, R r) {
  const std::string gpu = r.pci.empty() ? std::to_string(r.plan.gpu) : r.pci;
  o += fmt::format("nvidia-smi -i {} -mig {}", gpu, r.plan.on ? 1 : 0);
}

constexpr Column<Row> kColumns[] = {
    {'N', "Node", "NODE", [](O o, R r) { o += r.plan.node; }},
    {'g', "Gpu", "GPU", [](O o, R r) { o += std::to_string(r.plan.gpu); }},
    {'m', "Model", "MODEL", [](O o, R r) { o += r.plan.model; }},
    {'w', "Mig", "MIG", [](O o, R r) { o += r.plan.on ? "on" : "off"; }},
    {'s', "For", "FOR",
     [](O o, R r) { o += r.plan.profile.empty() ? "whole GPUs" : r.plan.profile; }},
    {'n', "Jobs", "JOBS", [](O o, R r) { o += std::to_string(r.plan.jobs); }},
    {'j', "First", "FIRST", [](O o, R r) { o += std::to_string(r.plan.first.value()); }},
    {'r', "Why", "WHY",
     [](O o, R r) { o += r.plan.only_way ? "the only way" : "others are in use"; }},
    {'c', "Command", "COMMAND", put_command}};
constexpr std::string_view kFormat = "%N %.3g %m %w %s %.4n %.5j %r %c";

// Adds the PCI addresses that the command needs; the nodes named in the plan have them.
Result<std::vector<Row>> with_addresses(Session& session, proto::MigModePlan plan) {
  std::set<std::string> names;
  for (const proto::MigModeRow& row : plan.rows) names.insert(row.node);
  ASSIGN(nodes, session.call<proto::ListNodesReply>(
                    proto::ListNodes{{names.begin(), names.end()}, {}, true}));
  std::vector<Row> rows;
  for (proto::MigModeRow& row : plan.rows) {
    std::string pci;
    for (const proto::NodeRow& node : nodes->nodes)
      for (const GpuDevice& gpu : node.gpus.gpus)
        if (node.name == row.node && gpu.index == row.gpu) pci = gpu.pci;
    rows.push_back({std::move(row), std::move(pci)});
  }
  return rows;
}

Result<int> run(const Invocation& in) {
  Mig mig;
  OPERANDS(operands, in, &mig, 0, 0);
  const auto columns = infos(std::span<const Column<Row>>(kColumns));
  ASSIGN(layout, parse_format(mig.format.empty() ? kFormat : std::string_view(mig.format), columns,
                              mig.format.empty()));
  ASSIGN(session, Session::open(in.program()));
  ASSIGN(plan, session->call<proto::MigModePlan>(proto::PlanMigModes{}));
  if (mig.json) return print_pretty(*plan);
  if (plan->rows.empty()) {
    fmt::print(stderr, "no job waits for a GPU whose MIG mode could be switched\n");
    return 0;
  }
  ASSIGN(rows, with_addresses(*session, std::move(*plan)));
  TableWriter table(*layout, {.header = !mig.no_header, .colour = wants_colour(stdout)}, stdout);
  for (const Row& row : *rows) add_row(table, std::span<const Column<Row>>(kColumns), row);
  return 0;
}

}  // namespace

const Command kGctlMig{
    {"mig", "Where MIG mode would have to be switched for jobs that wait (operators)"},
    {.description =
         "Lists idle GPUs that would serve waiting jobs if their MIG mode were the other one. It "
         "is "
         "a proposal: Gantry makes and destroys slices, and never switches the mode, which needs "
         "an "
         "idle GPU and on some models a reset.\n\n"
         "To do it: drain the GPU (`gctl drain NODE --gpu N -r TEXT`), run the command on its "
         "node, "
         "with a reset where the driver asks for one (`nvidia-smi -i GPU --gpu-reset`), start the "
         "node's gantry-noded again (its jobs run on), and resume the GPU (`gctl resume NODE --gpu "
         "N`). The driver refuses while monitoring or another client has the GPU open.",
     .options = kOptions,
     .examples = {{"gctl mig", "What is worth switching now"},
                  {"gctl drain gpu01 --gpu 3 -r 'MIG mode'",
                   "First: nothing new starts on the GPU"},
                  {"gctl resume gpu01 --gpu 3", "Last: it takes jobs again, in its new mode"}},
     .run = run}};

}  // namespace gantry::cli::gctl_mig
