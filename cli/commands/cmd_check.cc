// gantry check: tells whether the cluster is as its configuration says, with one line for each
// thing that is not.
#include <fmt/core.h>

#include "cli/cluster/cluster_check.h"
#include "cli/command.h"
#include "cli/session.h"
#include "common/job/verdict_text.h"

namespace gantry::cli {
namespace {

struct NoOptions {};

constexpr Example kExamples[] = {{"gantry check", "What is wrong with nodes and GPUs"}};
constexpr ExitDoc kExits[] = {{"0", "nothing is wrong"},
                              {"1", "something is, or no answer"},
                              {"2", "the command line is wrong"}};

Result<int> run(const Invocation& in) {
  NoOptions none;
  const auto operands = in.parse(&none, 0, 0);
  if (!operands) return tl::unexpected(operands.error());
  if (!*operands) return 0;
  auto session = Session::open(in.program());
  if (!session) return tl::unexpected(session.error());
  const auto nodes = session->call<proto::ListNodesReply>(proto::ListNodes{{}, {}, true});
  if (!nodes) return tl::unexpected(nodes.error());
  const auto wrong = check_cluster(nodes->nodes);
  for (const std::string& line : wrong) fmt::print("{}\n", line);
  std::size_t gpus = 0;
  for (const proto::NodeRow& node : nodes->nodes) gpus += node.gpus.gpus.size();
  fmt::print("{}, {}: {}\n", counted(static_cast<std::int64_t>(nodes->nodes.size()), "node"),
             counted(static_cast<std::int64_t>(gpus), "GPU"),
             wrong.empty() ? "good" : fmt::format("{} not as they should be", wrong.size()));
  const auto off = layers_that_are_off(nodes->nodes);
  if (!off.empty()) fmt::print("Isolation layers that are off:\n");
  for (const std::string& line : off) fmt::print("  {}\n", line);
  return wrong.empty() ? 0 : 1;
}

}  // namespace

extern const Command kCheck;
const Command kCheck{
    .name = "check",
    .summary = "Say what is wrong with the cluster",
    .description =
        "Asks the controller for its nodes, and names those that are down or drained, and GPUs, "
        "drivers and slices that are not as they should be, each with why. Says too which layers "
        "of "
        "isolation the nodes could not put around jobs.",
    .examples = kExamples,
    .exits = kExits,
    .run = run};

}  // namespace gantry::cli
