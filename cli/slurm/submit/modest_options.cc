// The setters of Slurm's options that ask for what all nodes have, or that are only shown with the
// job: sockets, threads, how often usage is sampled.
#include <fmt/core.h>

#include <algorithm>

#include "cli/slurm/submit/job_request.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::int64_t kSampleSeconds = 30;  // Slurm's JobAcctGatherFrequency

Result<void> wrong_value(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

// A step has the nodes of its job: there the numbers say how many tasks it has on each of them,
// unless -n does. "2-2:4" says sockets as a range, of which the least number counts.
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

}  // namespace gantry::cli::slurm
