#include "noded/shim/process/task_environment.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "common/job/gpu_bind.h"
#include "noded/machine/discover.h"
#include "noded/machine/files.h"

namespace gantry::runtime {
namespace {

// The devices are those of this node, whatever the environment of srun says: that one may come from
// another node, or from outside of the job. The program reads these variables; nothing of ours goes
// by them.
void put_gpus(const LaunchRequest& job, std::map<std::string, std::string>& env) {
  constexpr std::array<std::string_view, 9> kNames{
      "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
      "GPU_DEVICE_ORDINAL",   "SLURM_JOB_GPUS",         "GANTRY_JOB_GPUS",
      "SLURM_GPUS_ON_NODE",   "GANTRY_GPUS_ON_NODE",    "GANTRY_GPU_NUMA"};
  const auto is_ours = [&](std::string_view name) {
    return name.starts_with("CUDA_MPS_") ||
           std::find(kNames.begin(), kNames.end(), name) != kNames.end();
  };
  for (const auto& [name, value] : job.env)
    if (is_ours(name)) env[name] = value;
  const auto held = job.env.find("SLURM_JOB_GPUS");
  if (held != job.env.end()) env["SLURM_STEP_GPUS"] = env["GANTRY_STEP_GPUS"] = held->second;
}

// The same: where the job's secrets and tokens are, if it has some.
void put_secret_places(const LaunchRequest& job, std::map<std::string, std::string>& env) {
  if (job.secrets_dir.empty()) return;
  for (const char* name :
       {"GANTRY_SECRETS_DIR", "GANTRY_IDENTITY_TOKEN_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE"})
    if (const auto it = job.env.find(name); it != job.env.end()) env[name] = it->second;
}

// Distance of each GPU from these cores; empty: not known.
std::vector<std::uint32_t> distances(const std::vector<VisibleGpu>& gpus,
                                     const std::vector<std::uint16_t>& cpus) {
  std::vector<std::uint32_t> out;
  if (cpus.empty()) return out;
  const NumaMap numa = NumaMap::read();
  for (const VisibleGpu& gpu : gpus) out.push_back(numa.distance(cpus, gpu.numa));
  return out;
}

// A client of an older release sends the binding only as a variable. A client of today does so,
// too, if the variable cannot be read; that matters only on nodes with GPUs.
Result<GpuBind> gpu_bind_of(const StepRequest& step) {
  if (step.gpu_bind) return *step.gpu_bind;
  const auto variable = step.env.find(kGpuBindVariable);
  return variable == step.env.end() ? GpuBind{} : parse_gpu_bind(variable->second);
}

// Numbers from 0 on instead of places among the job's GPUs, where GPUs have numbers.
void number_again(std::vector<VisibleGpu>& gpus) {
  std::vector<int> numbers;
  for (const VisibleGpu& gpu : gpus) {
    if (gpu.shown.empty() || gpu.files.empty()) return;
    numbers.push_back(std::stoi(gpu.shown));
  }
  for (std::size_t i = 0; i < gpus.size(); ++i)
    gpus[i].shown = std::to_string(
        std::count_if(numbers.begin(), numbers.end(), [&](int n) { return n < numbers[i]; }));
}

bool has(const StepRequest& step, std::size_t place) {
  return !step.gpus || std::find(step.gpus->begin(), step.gpus->end(), place) != step.gpus->end();
}

std::string joined(const std::vector<VisibleGpu>& gpus, std::string (*name)(const VisibleGpu&)) {
  std::string out;
  for (const VisibleGpu& gpu : gpus) out += (out.empty() ? "" : ",") + name(gpu);
  return out;
}

// The variables of a step that has only some of the job's GPUs.
void put_own_gpus(const LaunchRequest& job, const StepRequest& step,
                  const std::vector<VisibleGpu>& own, std::map<std::string, std::string>& env) {
  if (!step.gpus || job.visible_gpus.empty()) return;
  env["CUDA_VISIBLE_DEVICES"] = joined(own, [](const VisibleGpu& gpu) { return gpu.name(); });
  env["NVIDIA_VISIBLE_DEVICES"] = joined(own, [](const VisibleGpu& gpu) { return gpu.uuid; });
  env["SLURM_GPUS_ON_NODE"] = env["GANTRY_GPUS_ON_NODE"] = std::to_string(own.size());
  // The numbers of the job's GPUs stand in the order of its devices; slices of one GPU share one.
  const auto held = job.env.find("SLURM_JOB_GPUS");
  const std::vector<std::string> all =
      held == job.env.end() ? std::vector<std::string>() : split(held->second, ',');
  if (all.size() != job.visible_gpus.size()) return;
  std::string numbers;
  for (const std::uint16_t place : *step.gpus)
    if (place < all.size()) numbers += (numbers.empty() ? "" : ",") + all[place];
  env["SLURM_STEP_GPUS"] = env["GANTRY_STEP_GPUS"] = env["GPU_DEVICE_ORDINAL"] = numbers;
}

// Slurm's line of --gpu-bind=verbose. Masks and lists count the step's GPUs from 0.
std::string gpu_note(const std::vector<VisibleGpu>& all, const std::vector<std::size_t>& own) {
  std::uint64_t mask = 0;
  std::string places, names;
  for (const std::size_t gpu : own) {
    mask |= std::uint64_t{1} << gpu % 64;
    places += (places.empty() ? "" : ",") + std::to_string(gpu);
    names += (names.empty() ? "" : ",") + all.at(gpu).name();
  }
  const std::uint64_t held = all.size() >= 64 ? ~std::uint64_t{0} : (1ull << all.size()) - 1;
  return fmt::format(
      "gpu-bind: usable_gres={:#x}; bit_alloc={:#x}; local_inx={}; global_list={}; "
      "local_list={}\n",
      mask, held, all.size(), places, names);
}

// Applies --gpu-bind to this task, which has these cores.
Result<void> bind_gpus(const StepRequest& step, const std::vector<VisibleGpu>& all,
                       std::uint32_t index, const std::vector<std::uint16_t>& cpus,
                       std::map<std::string, std::string>& env, std::string& note) {
  if (all.empty()) return {};
  ASSIGN(bind, gpu_bind_of(step));
  ASSIGN(own, gpus_of_task(*bind, index, all.size(),
                           bind->kind == GpuBind::Kind::closest ? distances(all, cpus)
                                                                : std::vector<std::uint32_t>()));
  if (bind->verbose) note = gpu_note(all, *own);
  if (bind->kind == GpuBind::Kind::none) return {};
  std::string& visible = env["CUDA_VISIBLE_DEVICES"];
  visible.clear();
  for (const std::size_t gpu : *own) visible += (visible.empty() ? "" : ",") + all.at(gpu).name();
  return {};
}

}  // namespace

std::vector<VisibleGpu> gpus_of_step(const LaunchRequest& job, const StepRequest& step,
                                     bool alone) {
  std::vector<VisibleGpu> out;
  for (std::size_t i = 0; i < job.visible_gpus.size(); ++i)
    if (has(step, i)) out.push_back(job.visible_gpus[i]);
  if (alone) number_again(out);
  return out;
}

std::vector<DeviceRule> devices_closed_to(const LaunchRequest& job, const StepRequest& step) {
  std::vector<DeviceRule> out;
  for (std::size_t i = 0; i < job.visible_gpus.size(); ++i) {
    if (has(step, i)) continue;
    const std::vector<std::string>& files = job.visible_gpus[i].files;
    for (const LaunchDevice& d : job.devices)
      if (std::find(files.begin(), files.end(), d.path) != files.end())
        out.push_back({d.major, d.minor, d.access});
  }
  return out;
}

Result<TaskEnvironment> task_environment(const LaunchRequest& job, const StepRequest& step,
                                         const std::vector<VisibleGpu>& gpus, std::uint32_t index,
                                         const std::vector<std::uint16_t>& cpus) {
  std::map<std::string, std::string> all{{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                         {"HOME", job.owner.home},
                                         {"USER", job.owner.user},
                                         {"LOGNAME", job.owner.user},
                                         {"SHELL", job.owner.shell}};
  for (const auto& [name, value] : step.env) all[name] = value;
  for (const auto& [name, value] : step.task_env[index]) all[name] = value;
  put_gpus(job, all);
  put_secret_places(job, all);
  put_own_gpus(job, step, gpus, all);
  TaskEnvironment out;
  TRY(bind_gpus(step, gpus, index, cpus, all, out.note));
  all["TMPDIR"] = "/tmp";
  for (const auto& [name, value] : all) out.variables.push_back(name + "=" + value);
  return out;
}

}  // namespace gantry::runtime
