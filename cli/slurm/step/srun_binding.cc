#include "cli/slurm/step/srun_binding.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "cli/step/step_run.h"
#include "common/text/split.h"

namespace gantry::cli::slurm {

namespace srun {
Result<void> set_cpu_bind(SrunRequest& r, std::string_view text) {
  ASSIGN(bind, parse_cpu_bind(text));
  r.cpu_bind = std::move(*bind);
  r.cpu_bind_text = text;
  return {};
}

}  // namespace srun

namespace {

// "verbose,map_cpu:0,1" has the type "map_cpu:" and the list "0,1"; "none" has only a type.
struct BindText {
  std::string type, list;
};

BindText read_bind(std::string_view text) {
  BindText out;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    if (const std::size_t colon = word.find(':'); colon != std::string_view::npos) {
      out.type = word.substr(0, colon + 1);
      out.list = text.substr(colon + 1);
      return out;
    }
    constexpr std::string_view kOthers[] = {"v",      "verbose", "q",    "quiet",
                                            "prefer", "p",       "sort", "nosort"};
    if (std::find(std::begin(kOthers), std::end(kOthers), word) == std::end(kOthers))
      out.type = word;
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return out;
}

void put_binding(const std::string& name, const std::string& text, const TaskBind& bind,
                 std::map<std::string, std::string>& out) {
  if (text.empty()) return;
  const BindText parts = read_bind(text);
  const std::string told = bind.verbose ? "verbose" : "quiet";
  const std::string prefer = bind.prefer ? ",prefer" : "";
  out[name] = told + prefer + (parts.type.empty() ? "" : "," + parts.type + parts.list);
  out[name + "_VERBOSE"] = told;
  out[name + "_TYPE"] = parts.type;
  out[name + "_LIST"] = parts.list;
}

}  // namespace

void put_bind_variables(const SrunRequest& r, std::map<std::string, std::string>& out) {
  put_binding("SLURM_CPU_BIND", r.cpu_bind_text, r.cpu_bind, out);
  put_binding("SLURM_MEM_BIND", r.mem_bind_text, r.mem_bind, out);
  if (!r.mem_bind_text.empty()) out["SLURM_MEM_BIND_PREFER"] = r.mem_bind.prefer ? "prefer" : "";
}

void take_tasks_of_node_info(SrunRequest& r, const std::string& group) {
  if (r.threads_of_node == 0 || r.tasks || r.spec.shape.tasks_per_node) return;
  const auto nodes = number_of_env(("SLURM_JOB_NUM_NODES" + group).c_str());
  r.tasks = r.threads_of_node * (r.nodes ? r.nodes->first : nodes.value_or(1));
}

void say_gpu_clocks(const SrunRequest& r) {
  const auto words = split(r.gpu_freq, ',');
  if (std::find(words.begin(), words.end(), "verbose") != words.end())
    fmt::print(stderr, "GpuFreq=control_disabled\n");
}

}  // namespace gantry::cli::slurm
