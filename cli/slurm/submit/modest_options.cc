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

Result<void> wrong(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

}  // namespace

namespace set {

Result<void> oversubscribe(SlurmRequest& r, std::string_view) {
  r.spec.given.oversubscribe = true;
  return {};
}

Result<void> tasks_per_core(SlurmRequest& r, std::string_view text) {
  const auto n = parse_integer("the greatest number of tasks on a core", text, 1, 1024);
  if (!n) return tl::unexpected(n.error());
  r.spec.given.tasks_per_core = static_cast<std::uint32_t>(*n);
  return {};
}

Result<void> threads_per_core(SlurmRequest& r, std::string_view text) {
  if (auto done = one(r, text); !done) return done;
  r.spec.given.threads_per_core = 1;
  return {};
}

Result<void> node_info(SlurmRequest&, std::string_view text) {
  const auto parts = split(text, ':');
  const bool plain = std::all_of(parts.begin(), parts.end(),
                                 [](const auto& part) { return part == "1" || part == "*"; });
  if (plain && parts.size() <= 3) return {};
  return wrong(
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
      return wrong(fmt::format("\"{}\" is not task, energy, network or filesystem", kind));
    const auto n = parse_integer("seconds between two samples",
                                 named ? item.substr(equals + 1) : item, 0, 86'400);
    if (!n) return tl::unexpected(n.error());
    if ((!named || kind == "task") && (*n == 0 || *n > kSampleSeconds))
      return fail(ErrorCode::usage,
                  fmt::format("Invalid accounting frequency requested: {} s, and at most {} s lie "
                              "between two samples",
                              *n, kSampleSeconds));
  }
  return {};
}

Result<void> gpus_per_socket(SlurmRequest& r, std::string_view text) {
  const auto n = parse_integer("the number of GPUs of a socket", text, 1, 64);
  if (!n) return tl::unexpected(n.error());
  r.gpus_per_socket = static_cast<std::uint32_t>(*n);
  return {};
}

Result<void> sockets_per_node(SlurmRequest& r, std::string_view text) {
  if (text != "1")
    return wrong(fmt::format(
        "\"{}\": nodes are not chosen by their sockets, so that it can only be 1", text));
  r.sockets_per_node = 1;
  return {};
}

}  // namespace set

}  // namespace gantry::cli::slurm
