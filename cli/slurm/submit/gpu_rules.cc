#include "cli/slurm/submit/gpu_rules.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::uint32_t kOne = 1000;  // GpuWish counts in thousandths

using Count = std::optional<std::uint32_t>;

tl::unexpected<Error> wrong_gpus(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

bool above(const Count& part, const Count& whole) {
  return part && whole && *part > *whole;
}

// The sentence with which the controller's refusal would be told.
tl::unexpected<Error> not_available(const Invocation& call) {
  const std::string_view program = call.program();
  return wrong_gpus(fmt::format("{}Requested node configuration is not available",
                                program == "sbatch"   ? "Batch job submission failed: "
                                : program == "salloc" ? "Job submit/allocate failed: "
                                                      : "Unable to allocate resources: "));
}

struct Asked {
  Count job, node, task, socket;
};

Result<void> check_order(const Asked& gpus) {
  if (above(gpus.node, gpus.job) || above(gpus.task, gpus.job) || above(gpus.socket, gpus.job))
    return wrong_gpus("Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket");
  if (above(gpus.task, gpus.node) || above(gpus.socket, gpus.node))
    return wrong_gpus("Failed to ensure --gpus >= --gpus-per-task");
  return {};
}

Result<void> settle_sockets(const SlurmRequest& r, Asked& gpus) {
  if (!gpus.socket) return {};
  if (!r.sockets_per_node)
    return wrong_gpus("--gpus-per-socket option requires --sockets-per-node specification");
  if (gpus.node && *gpus.node % *gpus.socket != 0)
    return wrong_gpus(
        "Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of "
        "--gpus-per-socket.");
  if (gpus.node && *gpus.node / *gpus.socket != *r.sockets_per_node)
    return wrong_gpus(
        "Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-socket "
        "required number of sockets differ from --sockets-per-node.");
  gpus.node = *gpus.socket * *r.sockets_per_node;
  return {};
}

Result<void> settle_nodes(SlurmRequest& r, const Asked& gpus) {
  if (!gpus.job || !gpus.node) return {};
  if (*gpus.job % *gpus.node != 0)
    return wrong_gpus(
        "Failed to validate job spec, --gpus is not multiple of --gres=gpu/--gpus-per-node");
  const std::uint32_t nodes = *gpus.job / *gpus.node;
  if (r.nodes && (nodes < r.nodes->first || nodes > r.nodes->second))
    return wrong_gpus(
        fmt::format("Failed to validate job spec. Based on --gpu and "
                    "--gres=gpu/--gpus-per-node required nodes ({}) doesn't fall between "
                    "min_nodes ({}) and max_nodes ({}) boundaries.",
                    nodes, r.nodes->first, r.nodes->second));
  r.nodes = {nodes, nodes};
  return {};
}

Result<void> settle_tasks(const Invocation& call, SlurmRequest& r, const Asked& gpus) {
  if (!gpus.task) return {};
  if (gpus.job) {
    if (*gpus.job % *gpus.task != 0)
      return wrong_gpus("Failed to validate job spec, --gpus not multiple of --gpus-per-task");
    const std::uint32_t tasks = *gpus.job / *gpus.task;
    if (r.tasks && *r.tasks != tasks)
      return wrong_gpus(
          "Failed to validate job spec. Based on --gpus and --gpus-per-task number of requested "
          "tasks differ from -n/--ntasks.");
    r.tasks = tasks;
  }
  if (!gpus.node) return {};
  if (*gpus.node % *gpus.task != 0)
    return wrong_gpus(
        "Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-task.");
  const std::uint32_t here = *gpus.node / *gpus.task;
  const Count& asked = r.spec.shape.tasks_per_node;
  if (asked && *asked != here)
    return wrong_gpus(
        "Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-task "
        "requested number of tasks per node differ from --ntasks-per-node.");
  if (r.tasks && r.nodes && *r.tasks > std::uint64_t{here} * r.nodes->second)
    return not_available(call);
  return {};
}

}  // namespace

Result<void> settle_gpus(const Invocation& call, SlurmRequest& r, std::span<const Given> given) {
  const auto was_given = [&](std::string_view name) {
    return std::any_of(given.begin(), given.end(),
                       [&](const Given& g) { return g.option->name == name; });
  };
  GpuWish& wish = r.gpus;
  Asked gpus;
  for (const auto& [from, to] :
       {std::pair(&wish.in_all, &gpus.job), std::pair(&wish.per_node, &gpus.node),
        std::pair(&wish.per_task, &gpus.task)}) {
    if (*from && **from % kOne != 0) return {};  // a part of one GPU
    if (*from && **from > 0) *to = **from / kOne;
  }
  gpus.socket = r.gpus_per_socket;
  TRY(check_order(gpus));
  TRY(settle_sockets(r, gpus));
  if (r.cpus_per_gpu && was_given("cpus-per-task"))
    return wrong_gpus("--cpus-per-gpu is mutually exclusive with --cpus-per-task");
  TRY(settle_nodes(r, gpus));
  TRY(settle_tasks(call, r, gpus));
  if (gpus.job && r.nodes && *gpus.job < r.nodes->first)
    return wrong_gpus("Failed to validate job spec, --gpus < -N");
  if (gpus.node) wish.per_node = *gpus.node * kOne;
  return {};
}

namespace {

// "gres:gpu:2" of "2", and of "gpu:2,fpga" with a prefix of "gres:" it is "gres:gpu:2,gres:fpga".
std::string told(std::string_view prefix, std::string_view value) {
  std::string out;
  for (const std::string& item : split_list(value)) {
    const std::string_view name = item;
    if (name == "none" || name == "0") continue;
    out += out.empty() ? "" : ",";
    out += prefix;
    out += name.starts_with("gres/") ? name.substr(5) : name;
  }
  return out;
}

std::string megabytes(std::string_view text) {
  const auto bytes = parse_memory(text);
  return bytes ? fmt::format("gres:gpu:{}", *bytes >> 20) : "";
}

}  // namespace

AskedTres asked_tres(std::span<const Given> given) {
  AskedTres out;
  std::string gres, by_node;
  for (const Given& g : given) {
    const std::string_view name = g.option->name;
    if (name == "gpus") out.per_job = told("gres:gpu:", g.value);
    if (name == "gpus-per-node") by_node = told("gres:gpu:", g.value);
    if (name == "gres") gres = told("gres:", g.value);
    if (name == "gpus-per-socket") out.per_socket = told("gres:gpu:", g.value);
    if (name == "gpus-per-task") out.per_task = told("gres:gpu:", g.value);
    if (name == "cpus-per-gpu") out.cpus = told("gres:gpu:", g.value);
    if (name == "mem-per-gpu") out.memory = megabytes(g.value);
    if (name == "gpu-bind") out.bind = "gpu:" + g.value;
    if (name == "gpu-freq") out.freq = "gpu:" + g.value;
  }
  out.per_node = by_node + (by_node.empty() || gres.empty() ? "" : ",") + gres;
  return out;
}

}  // namespace gantry::cli::slurm
