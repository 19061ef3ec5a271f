// Setters of Slurm's options that ask for what all nodes have, or that are only stored and shown:
// sockets, threads, how often usage is sampled.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "cli/slurm/submit/job_request.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::int64_t kSampleSeconds = 30;  // Slurm's JobAcctGatherFrequency

Result<void> wrong_value(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

// A step has the nodes of its job; there the numbers set how many tasks it has on each of them,
// unless -n does. "2-2:4" gives sockets as a range, of which the least number counts.
Result<void> take_node_info(SlurmRequest& r, const std::vector<std::string>& parts,
                            std::string_view text) {
  if (parts.size() > 3) return wrong_value(fmt::format("\"{}\" has more than three numbers", text));
  std::uint64_t threads = 1;
  for (const std::string& part : parts) {
    if (part == "*") continue;
    ASSIGN(least, parse_integer("the number of sockets, cores or threads",
                                std::string_view(part).substr(0, part.find('-')), 1, 1024));
    threads *= static_cast<std::uint64_t>(*least);
  }
  if (threads > 65'536) return wrong_value(fmt::format("\"{}\" is more than a node has", text));
  r.threads_of_node = static_cast<std::uint32_t>(threads);
  return {};
}

}  // namespace

namespace set {

Result<void> oversubscribe(SlurmRequest& r, std::string_view) {
  r.spec.given.oversubscribe = true;
  return {};
}

Result<void> tasks_per_core(SlurmRequest& r, std::string_view text) {
  ASSIGN(n, parse_integer("the greatest number of tasks on a core", text, 1, 1024));
  r.spec.given.tasks_per_core = static_cast<std::uint32_t>(*n);
  return {};
}

Result<void> tasks_per_socket(SlurmRequest& r, std::string_view text) {
  ASSIGN(n, parse_integer("the greatest number of tasks on a socket", text, 1, 65'536));
  r.tasks_per_socket = static_cast<std::uint32_t>(*n);
  return {};
}

Result<void> threads_per_core(SlurmRequest& r, std::string_view text) {
  TRY(one(r, text));
  r.spec.given.threads_per_core = 1;
  return {};
}

Result<void> node_info(SlurmRequest& r, std::string_view text) {
  const auto parts = split(text, ':');
  if (r.inside) return take_node_info(r, parts, text);
  r.threads_of_node = 1;
  const bool plain = std::all_of(parts.begin(), parts.end(),
                                 [](const auto& part) { return part == "1" || part == "*"; });
  if (plain && parts.size() <= 3) return {};
  return wrong_value(
      fmt::format("\"{}\": nodes are not chosen by their sockets, so that each number can "
                  "only be 1 or *",
                  text));
}

Result<void> acctg_freq(SlurmRequest&, std::string_view text) {
  for (const std::string& item : split_list(text)) {
    const std::size_t equals = item.find('=');
    const std::string_view kind = std::string_view(item).substr(0, std::min(equals, item.size()));
    const bool named = equals != std::string::npos;
    if (named && kind != "task" && kind != "energy" && kind != "network" && kind != "filesystem")
      return wrong_value(fmt::format("\"{}\" is not task, energy, network or filesystem", kind));
    ASSIGN(n, parse_integer("seconds between two samples", named ? item.substr(equals + 1) : item,
                            0, 86'400));
    if ((!named || kind == "task") && (*n == 0 || *n > kSampleSeconds))
      return fail(ErrorCode::usage,
                  fmt::format("Invalid accounting frequency requested: {} s, and at most {} s lie "
                              "between two samples",
                              *n, kSampleSeconds));
  }
  return {};
}

// "low", "medium,memory=high", "1200,verbose": words or MHz for the cores and for the memory.
Result<void> gpu_freq(SlurmRequest& r, std::string_view text) {
  const auto is_clock = [](std::string_view word) {
    return word == "low" || word == "medium" || word == "high" || word == "highm1" ||
           (!word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos);
  };
  for (const std::string& item : split(text, ',')) {
    std::string_view word = item;
    const bool memory = word.starts_with("memory=");
    if (memory) word.remove_prefix(7);
    if (is_clock(word) || (!memory && word == "verbose")) continue;
    return wrong_value(
        fmt::format("\"{}\" is not low, medium, high, highm1, a number of MHz, one of these "
                    "behind memory=, or verbose",
                    item));
  }
  r.gpu_freq = text;
  return {};
}

Result<void> gpus_per_socket(SlurmRequest& r, std::string_view text) {
  ASSIGN(n, parse_integer("the number of GPUs of a socket", text, 1, 64));
  r.gpus_per_socket = static_cast<std::uint32_t>(*n);
  return {};
}

Result<void> sockets_per_node(SlurmRequest& r, std::string_view text) {
  if (text != "1")
    return wrong_value(fmt::format(
        "\"{}\": nodes are not chosen by their sockets, so that it can only be 1", text));
  r.sockets_per_node = 1;
  return {};
}

}  // namespace set

namespace {

constexpr std::uint32_t kOne = 1000;  // GpuWish counts in thousandths

using Count = std::optional<std::uint32_t>;

tl::unexpected<Error> wrong_gpus(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

bool above(const Count& part, const Count& whole) {
  return part && whole && *part > *whole;
}

// The sentence of the controller's refusal.
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

// Turns "2" into "gres:gpu:2"; with the prefix "gres:" also "gpu:2,fpga" into
// "gres:gpu:2,gres:fpga".
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

namespace {

constexpr std::string_view kInherited[] = {
    "account", "acctg-freq", "begin", "chdir",    "comment",     "deadline", "exclude",
    "hold",    "job-name",   "mem",   "nice",     "no-kill",     "priority", "propagate",
    "qos",     "signal",     "time",  "time-min", "reservation", "wckey"};

bool has(const std::vector<Given>& given, std::string_view name) {
  return std::any_of(given.begin(), given.end(),
                     [&](const Given& one) { return one.option->name == name; });
}

bool is_replaced(std::string_view name, const std::vector<Given>& by) {
  return has(by, name) || (name == "mem" && (has(by, "mem-per-cpu") || has(by, "mem-per-gpu")));
}

}  // namespace

void inherit_options(const std::vector<Given>& from, std::vector<Given>& to) {
  std::vector<Given> more;
  for (const Given& one : from) {
    const std::string_view name = one.option->name;
    const bool inherited =
        std::find(std::begin(kInherited), std::end(kInherited), name) != std::end(kInherited);
    if (inherited && !is_replaced(name, to)) more.push_back(one);
  }
  to.insert(to.begin(), more.begin(), more.end());
}

}  // namespace gantry::cli::slurm
