// Combines what the options say, and chooses the environment that goes with the job.
#include "cli/submit/job_request.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "cli/client_config.h"
#include "common/limits.h"

extern char** environ;  // declared by POSIX

namespace gantry::cli {
namespace {

// The option of this name that was given last, or nullptr if it was not given.
const Given* last_given(std::span<const Given> given, std::string_view name) {
  const Given* found = nullptr;
  for (const Given& g : given)
    if (g.option->name == name) found = &g;
  return found;
}

std::string absolute_path(const std::string& path, const std::string& base) {
  if (path.starts_with('/')) return path;
  if (path == "." || path.empty()) return base;
  return base.ends_with('/') ? base + path : base + "/" + path;
}

Result<std::string> present_directory() {
  const std::unique_ptr<char, decltype(&std::free)> path(::getcwd(nullptr, 0), std::free);
  if (!path)
    return fail(ErrorCode::io_error, fmt::format("the present directory cannot be named ({}); use "
                                                 "--chdir",
                                                 std::strerror(errno)));
  return std::string(path.get());
}

}  // namespace

Result<void> finish_request(JobRequest& r, std::span<const Given> given) {
  JobSpec& spec = r.spec;
  JobShape& shape = spec.shape;
  const Given* mem = last_given(given, "mem");
  const Given* mem_per_cpu = last_given(given, "mem-per-cpu");
  if (mem != nullptr && mem_per_cpu != nullptr && mem->place.empty() == mem_per_cpu->place.empty())
    return fail(ErrorCode::usage, "--mem and --mem-per-cpu exclude each other");
  if (r.nodes) {
    shape.min_nodes = r.nodes->first;
    shape.max_nodes = r.nodes->second;
  } else if (r.tasks && shape.tasks_per_node) {
    shape.min_nodes = (*r.tasks + *shape.tasks_per_node - 1) / *shape.tasks_per_node;
    shape.max_nodes = shape.min_nodes;
  } else if (!shape.required_nodes.empty()) {
    shape.min_nodes = static_cast<std::uint32_t>(shape.required_nodes.size());
    shape.max_nodes = shape.min_nodes;
  } else if (r.tasks && !r.gpus.in_all && !r.gpus.per_task && r.gpus.shards == 0) {
    // The job gets as few nodes as can hold its tasks. If it asks for a total number of GPUs or for
    // GPUs per task, the number of nodes must be given, because otherwise the number of GPUs on a
    // node is not known.
    shape.max_nodes = std::clamp(*r.tasks, 1u, kMaxJobNodes);
  }
  if (r.tasks)
    shape.tasks = *r.tasks;
  else
    shape.tasks = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        std::uint64_t{shape.min_nodes} * shape.tasks_per_node.value_or(1), UINT32_MAX));
  if (r.tasks && r.nodes && *r.tasks < shape.min_nodes)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} tasks cannot use {} nodes; ask for as many tasks as nodes at least",
                            *r.tasks, shape.min_nodes));
  const auto was_given = [&](std::string_view name) { return last_given(given, name) != nullptr; };
  const bool nodes_open = !r.nodes && !r.tasks && !shape.tasks_per_node &&
                          shape.required_nodes.empty() && !was_given("cpus-per-gpu") &&
                          !was_given("exclusive");
  TRY(apply_gpus(r.gpus, nodes_open, shape));
  for (const std::string& node : shape.required_nodes)
    if (std::binary_search(shape.excluded_nodes.begin(), shape.excluded_nodes.end(), node))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("node {} is in --nodelist and in --exclude", node));
  spec.given.tasks = was_given("ntasks");
  spec.given.cpus_per_task = was_given("cpus-per-task");
  spec.given.tasks_per_node = was_given("ntasks-per-node");

  if (r.chdir && r.chdir->starts_with('/')) {
    spec.work_dir = *r.chdir;
  } else {
    ASSIGN(here, present_directory());
    spec.work_dir = absolute_path(r.chdir.value_or(""), *here);
  }
  for (auto* copies : {&spec.stage_in, &spec.stage_out})
    for (StageCopy& copy : *copies) copy.path = absolute_path(copy.path, spec.work_dir);
  if (r.chdir)
    if (const auto here = present_directory(); here && *here != spec.work_dir)
      spec.submit_dir = *here;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) spec.submit_host = host.data();
  return {};
}

std::map<std::string, std::string> job_environment(const ExportRule& rule) {
  std::map<std::string, std::string> out;
  const std::set<std::string_view> wanted(rule.names.begin(), rule.names.end());
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (rule.all || wanted.contains(name)) out.emplace(name, text.substr(equals + 1));
  }
  for (const auto& [name, value] : rule.set) out[name] = value;
  // Tokens are secrets of the user who submits. Other users could read them in the job, and a job
  // needs none, because its node vouches for it.
  for (const char* name : kTokenVariables) out.erase(name);
  return out;
}

}  // namespace gantry::cli
