#include "noded/shim/environment.h"

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

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games";

bool about_the_job(std::string_view name) {
  constexpr std::array<std::string_view, 6> kPrefixes{"SLURM_",  "GANTRY_", "CUDA_VISIBLE_",
                                                      "SLURMD_", "PMI",     "NVIDIA_VISIBLE_"};
  constexpr std::array<std::string_view, 5> kNames{"HOME", "USER", "LOGNAME", "TMPDIR",
                                                   "MASTER_ADDR"};
  for (const auto p : kPrefixes)
    if (name.starts_with(p)) return true;
  for (const auto n : kNames)
    if (name == n) return true;
  return false;
}

// Whether the text is well-formed UTF-8 without NUL. Overlong forms and surrogates are refused (RFC
// 3629).
bool is_text(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    const std::size_t n = c < 0x80                ? 1
                          : c >= 0xc2 && c < 0xe0 ? 2
                          : c >= 0xe0 && c < 0xf0 ? 3
                          : c >= 0xf0 && c < 0xf5 ? 4
                                                  : 0;
    if (c == 0 || n == 0 || i + n > s.size()) return false;
    for (std::size_t k = 1; k < n; ++k)
      if ((static_cast<unsigned char>(s[i + k]) & 0xc0) != 0x80) return false;
    const auto second = n > 1 ? static_cast<unsigned char>(s[i + 1]) : 0;
    if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) ||
        (c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f))
      return false;
    i += n;
  }
  return true;
}

constexpr std::size_t kMostOfOne = 128 << 10;   // MAX_ARG_STRLEN, with the zero at the end
constexpr std::size_t kMostInAll = 1536 << 10;  // part of the 2 MiB that a stack of 8 MiB allows

Result<void> check_text(const std::string& what, std::string_view text) {
  if (!is_text(text))
    return fail(ErrorCode::invalid_argument, what + " is not UTF-8 text, which a container needs");
  if (text.size() >= kMostOfOne)
    return fail(ErrorCode::invalid_argument, fmt::format("{} has {} bytes; the kernel takes {}",
                                                         what, text.size(), kMostOfOne - 1));
  return {};
}

// Adds the driver's libraries after the directories that the job or the image names, which have
// priority.
void add_driver_libraries(const LaunchRequest& request, std::map<std::string, std::string>& env) {
  if (std::ranges::none_of(request.mounts, [](const LaunchMount& m) {
        return m.path.starts_with(kDriverLibraries);
      }))
    return;
  std::string& path = env["LD_LIBRARY_PATH"];
  if ((":" + path + ":").find(fmt::format(":{}:", kDriverLibraries)) != std::string::npos) return;
  path += (path.empty() ? "" : ":") + std::string(kDriverLibraries);
}

// The devices are those of this node, whatever srun's environment contains: it may come from
// another node, or from outside of the job. Only the program reads these variables, not Gantry.
void put_gpus(const LaunchRequest& job, std::map<std::string, std::string>& env) {
  constexpr std::array<std::string_view, 9> kNames{
      "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
      "GPU_DEVICE_ORDINAL",   "SLURM_JOB_GPUS",         "GANTRY_JOB_GPUS",
      "SLURM_GPUS_ON_NODE",   "GANTRY_GPUS_ON_NODE",    "GANTRY_GPU_NUMA"};
  const auto is_ours = [&](std::string_view name) {
    return name.starts_with("CUDA_MPS_") || std::ranges::find(kNames, name) != kNames.end();
  };
  for (const auto& [name, value] : job.env)
    if (is_ours(name)) env[name] = value;
  const auto held = job.env.find("SLURM_JOB_GPUS");
  if (held != job.env.end()) env["SLURM_STEP_GPUS"] = env["GANTRY_STEP_GPUS"] = held->second;
}

// Likewise: the directory of the job's secrets and tokens, if it has some.
void put_secret_places(const LaunchRequest& job, std::map<std::string, std::string>& env) {
  if (job.secrets_dir.empty()) return;
  for (const char* name :
       {"GANTRY_SECRETS_DIR", "GANTRY_IDENTITY_TOKEN_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE"})
    if (const auto it = job.env.find(name); it != job.env.end()) env[name] = it->second;
}

// Distance of each GPU from these cores; empty if unknown.
std::vector<std::uint32_t> distances(const std::vector<VisibleGpu>& gpus,
                                     const std::vector<std::uint16_t>& cpus) {
  std::vector<std::uint32_t> out;
  if (cpus.empty()) return out;
  const NumaMap numa = NumaMap::read();
  for (const VisibleGpu& gpu : gpus) out.push_back(numa.distance(cpus, gpu.numa));
  return out;
}

// A client of an older release sends the binding only as a variable. A present client does so only
// if it cannot parse the variable; that matters only on nodes with GPUs.
Result<GpuBind> gpu_bind_of(const StepRequest& step) {
  if (step.gpu_bind) return *step.gpu_bind;
  const auto variable = step.env.find(kGpuBindVariable);
  return variable == step.env.end() ? GpuBind{} : parse_gpu_bind(variable->second);
}

// The GPUs' numbers from 0 on instead of their places among the job's GPUs, if GPUs have numbers.
void number_again(std::vector<VisibleGpu>& gpus) {
  std::vector<int> numbers;
  for (const VisibleGpu& gpu : gpus) {
    if (gpu.shown.empty() || gpu.files.empty()) return;
    numbers.push_back(std::stoi(gpu.shown));
  }
  for (std::size_t i = 0; i < gpus.size(); ++i)
    gpus[i].shown =
        std::to_string(std::ranges::count_if(numbers, [&](int n) { return n < numbers[i]; }));
}

bool has(const StepRequest& step, std::size_t place) {
  return !step.gpus || std::ranges::find(*step.gpus, place) != step.gpus->end();
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
  // The numbers of the job's GPUs are in the order of its devices; slices of one GPU share one.
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

Result<std::vector<std::string>> container_environment(const LaunchRequest& request,
                                                       const ImageConfig& image) {
  std::map<std::string, std::string> all{
      {"PATH", kDefaultPath},
      {"HOME", request.owner.home.empty() ? "/" : request.owner.home},
      {"USER", request.owner.user},
      {"LOGNAME", request.owner.user},
      {"SHELL", request.owner.shell.empty() ? "/bin/sh" : request.owner.shell}};
  for (const auto& [name, value] : request.env) all[name] = value;
  for (const auto& entry : image.env) {
    const auto equals = entry.find('=');
    const auto name = entry.substr(0, equals);
    if (equals != std::string::npos && !about_the_job(name)) all[name] = entry.substr(equals + 1);
  }
  add_driver_libraries(request, all);
  all["TMPDIR"] = "/tmp";
  std::vector<std::string> env;
  env.reserve(all.size());
  constexpr std::size_t kPointer = sizeof(char*) + 1;
  std::size_t bytes = 0;
  for (const auto& [name, value] : all) {
    env.push_back(name + "=" + value);
    TRY(check_text("environment variable " + name, env.back()));
    bytes += env.back().size() + kPointer;
  }
  for (std::size_t i = 0; i < request.argv.size(); ++i) {
    TRY(check_text(fmt::format("argument {}", i + 1), request.argv[i]));
    bytes += request.argv[i].size() + kPointer;
  }
  if (bytes > kMostInAll)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("arguments and environment have {} bytes, more than the kernel takes", bytes));
  return env;
}

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
      if (std::ranges::find(files, d.path) != files.end())
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
