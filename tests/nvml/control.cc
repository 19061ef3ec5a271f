#include "tests/nvml/control.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <vector>

#include "tests/nvml/rules.h"
#include "tests/nvml/tree.h"

namespace gantry::fake {
namespace {

using Words = std::span<const std::string>;

tl::unexpected<Error> refuse(std::string what) {
  return fail(ErrorCode::invalid_argument, std::move(what));
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::uint32_t small(const Words& words, std::size_t i, std::uint32_t other) {
  return i < words.size() ? static_cast<std::uint32_t>(number(words[i]).value_or(other)) : other;
}

struct Place {
  std::uint32_t index = 0;
  GpuState* gpu = nullptr;
  InstanceState* instance = nullptr;
};

// Parses "3" (GPU 3) or "3/5" (GPU instance 5 of GPU 3).
Result<Place> place(State& state, const std::string& text) {
  const auto slash = text.find('/');
  const auto gpu = number(std::string_view(text).substr(0, slash));
  if (!gpu || *gpu >= state.gpu_count)
    return refuse(fmt::format("GPU must be 0 to {}, not {}", state.gpu_count - 1, text));
  Place out{static_cast<std::uint32_t>(*gpu), &state.gpus[*gpu], nullptr};
  if (slash == std::string::npos) return out;
  const auto id = number(std::string_view(text).substr(slash + 1));
  out.instance = id ? find_instance(*out.gpu, static_cast<std::uint32_t>(*id)) : nullptr;
  if (out.instance == nullptr) return refuse(fmt::format("GPU {} has no instance {}", *gpu, text));
  return out;
}

Result<std::string> xid(State& state, Words words) {
  const auto at = place(state, words[0]);
  const auto code = number(words[1]);
  if (!at) return tl::unexpected(at.error());
  if (!code) return refuse("an Xid is a number");
  if (*code == 79) at->gpu->lost = 1;
  post_event(state, {at->index, small(words, 2, kNone), small(words, 3, kNone),
                     gpu::nvml::kEventXid, *code});
  return "";
}

Result<std::string> lost(State& state, Words words) {
  ASSIGN(at, place(state, words[0]));
  at->gpu->lost = 1;
  return "";
}

Result<std::string> reset_gpu(State& state, Words words) {
  ASSIGN(at, place(state, words[0]));
  reset(*at->gpu);
  return "";
}

Result<std::string> mig(State& state, Words words) {
  ASSIGN(at, place(state, words[0]));
  if (words[1] != "on" && words[1] != "off") return refuse("mig is on or off");
  Return activation = Return::success;
  if (const Return code = set_mig_mode(*at->gpu, words[1] == "on", activation);
      code != Return::success)
    return refuse(std::string(gpu::nvml::text_of(code)));
  return activation == Return::success ? "" : std::string(gpu::nvml::text_of(activation)) + "\n";
}

// Makes a slice as a person would by hand: "make 0 19@4 [slices of the compute instance]".
Result<std::string> make(State& state, Words words) {
  ASSIGN(at, place(state, words[0]));
  const auto sign = words[1].find('@');
  const auto profile = number(std::string_view(words[1]).substr(0, sign));
  const auto start =
      sign == std::string::npos ? profile : number(std::string_view(words[1]).substr(sign + 1));
  if (!profile || !start || sign == std::string::npos) return refuse("a slice is PROFILE@START");
  InstanceState* instance = nullptr;
  if (const Return code = create_instance(state, *at->gpu, static_cast<std::uint32_t>(*profile),
                                          static_cast<std::uint32_t>(*start), instance);
      code != Return::success)
    return refuse(std::string(gpu::nvml::text_of(code)));
  const std::uint32_t slices = small(words, 2, profile_of(*at->gpu, *instance).compute_slices);
  for (const ComputeProfile& one : compute_profiles()) {
    ComputeState* compute = nullptr;
    if (one.slices == slices) create_compute(state, *at->gpu, *instance, one.id, compute);
  }
  return fmt::format("{}/{}\n", at->index, instance->id);
}

Result<std::string> process(State& state, Words words) {
  const auto at = place(state, words[0]);
  const auto pid = number(words[1]);
  const auto mib = number(words[2]);
  if (!at) return tl::unexpected(at.error());
  if (!pid || !mib) return refuse("a process has a pid and a number of MiB");
  const std::string kind = words.size() > 3 ? words[3] : "compute";
  for (ProcessState& one : at->gpu->processes) {
    if (one.pid != 0) continue;
    one.pid = static_cast<std::uint32_t>(*pid);
    one.bytes = *mib << 20;
    one.kind = kind == "mps"        ? ProcessKind::mps
               : kind == "graphics" ? ProcessKind::graphics
                                    : ProcessKind::compute;
    one.gpu_instance = at->instance != nullptr ? at->instance->id : kNone;
    one.compute_instance = at->instance != nullptr ? 0 : kNone;
    return "";
  }
  return refuse("no more processes fit on this GPU");
}

Result<std::string> end_process(State& state, Words words) {
  const auto at = place(state, words[0]);
  const auto pid = number(words[1]);
  if (!at) return tl::unexpected(at.error());
  for (ProcessState& one : at->gpu->processes)
    if (pid && one.pid == *pid) one = {};
  return "";
}

bool set_value(GpuState& gpu, InstanceState* instance, std::string_view key, std::uint64_t value) {
  const auto small_value = static_cast<std::uint32_t>(value);
  if (instance != nullptr) {
    if (key == "utilization") return instance->utilization = small_value, true;
    if (key == "memory") return instance->memory_used = value << 20, true;
    return false;
  }
  struct Small {
    std::string_view key;
    std::uint32_t* place;
  };
  const Small known[] = {
      {"utilization", &gpu.utilization},   {"memory_utilization", &gpu.memory_utilization},
      {"temperature", &gpu.temperature},   {"retired_single", &gpu.retired[0]},
      {"retired_double", &gpu.retired[1]}, {"retired_pending", &gpu.retired_pending},
      {"remapped", &gpu.remapped[1]},      {"remap_pending", &gpu.remap_pending},
      {"remap_failed", &gpu.remap_failed}, {"recovery", &gpu.recovery_action},
      {"links_down", &gpu.links_down}};
  for (const Small& one : known)
    if (one.key == key) return *one.place = small_value, true;
  if (key == "memory") return gpu.memory_used = value << 20, true;
  if (key == "power") return gpu.power_mw = small_value * 1000, true;
  if (key == "clocks") return gpu.clock_reasons = value, true;
  if (key == "ecc_corrected") return gpu.ecc[0][0] = gpu.ecc[0][1] = value, true;
  if (key == "ecc_uncorrected") return gpu.ecc[1][0] = gpu.ecc[1][1] = value, true;
  return false;
}

Result<std::string> set(State& state, Words words) {
  ASSIGN(at, place(state, words[0]));
  for (const std::string& word : words.subspan(1)) {
    const auto equals = word.find('=');
    const auto value = equals == std::string::npos
                           ? std::nullopt
                           : number(std::string_view(word).substr(equals + 1));
    if (!value ||
        !set_value(*at->gpu, at->instance, std::string_view(word).substr(0, equals), *value))
      return refuse("no such value to set: " + word);
  }
  return "";
}

Result<std::string> add_fault(State& state, const std::string& call, FaultState fault) {
  copy_text(fault.call, call);
  for (FaultState& one : state.faults) {
    if (one.times != 0) continue;
    one = fault;
    return "";
  }
  return refuse("too many faults at once");
}

Result<std::string> fail_call(State& state, Words words) {
  const auto code = number(words[1]);
  if (!code) return refuse("a return code is a number");
  return add_fault(
      state, words[0],
      {{}, small(words, 3, kNone), static_cast<std::int32_t>(*code), small(words, 2, kNone), 0});
}

Result<std::string> slow_call(State& state, Words words) {
  const auto ms = number(words[1]);
  if (!ms) return refuse("a delay is a number of milliseconds");
  return add_fault(
      state, words[0],
      {{}, small(words, 3, kNone), 0, small(words, 2, kNone), static_cast<std::uint32_t>(*ms)});
}

Result<std::string> clear_faults(State& state, Words) {
  for (FaultState& one : state.faults) one = {};
  state.crash_at = 0;
  return "";
}

Result<std::string> crash(State& state, Words words) {
  const auto n = number(words[0]);
  if (!n || *n == 0) return refuse("a number of calls from 1");
  state.crash_at = state.calls + *n;
  return "";
}

Result<std::string> tree(State& state, Words words) {
  TRY(write_tree(state, words[0]));
  return "";
}

struct Command {
  std::string_view name;
  std::size_t least;
  Result<std::string> (*run)(State&, Words);
  std::string_view usage;
};

constexpr Command kCommands[] = {
    {"show", 0, [](State& state, Words) -> Result<std::string> { return show(state); },
     "show                              every GPU and what it is cut into"},
    {"xid", 2, xid,
     "xid GPU CODE [GI [CI]]            an event; 79 also takes the GPU off the bus"},
    {"lost", 1, lost, "lost GPU                          off the bus without an event"},
    {"reset", 1, reset_gpu,
     "reset GPU                         and it is as new; its slices are gone"},
    {"mig", 2, mig, "mig GPU on|off                    the mode; Ampere changes at a reset"},
    {"make", 2, make, "make GPU PROFILE@START [SLICES]   a slice, as if by hand; 0 SLICES: empty"},
    {"process", 3, process, "process GPU[/GI] PID MIB [KIND]   compute, mps or graphics"},
    {"end", 2, end_process, "end GPU PID                       the process is gone"},
    {"set", 2, set,
     "set GPU[/GI] KEY=N...             utilization memory power temperature clocks recovery ..."},
    {"fail", 2, fail_call, "fail CALL CODE [TIMES [GPU]]      what an NVML function answers"},
    {"slow", 2, slow_call, "slow CALL MS [TIMES [GPU]]        how long it takes"},
    {"well", 0, clear_faults, "well                              no more of fail, slow and crash"},
    {"crash", 1, crash,
     "crash N                           ends the process that makes the Nth call"},
    {"tree", 1, tree, "tree DIR                          writes /proc, /sys and /dev into DIR"},
};

}  // namespace

Result<std::string> control(State& state, Words words) {
  const auto found = std::find_if(std::begin(kCommands), std::end(kCommands), [&](auto& one) {
    return !words.empty() && one.name == words[0];
  });
  if (found == std::end(kCommands))
    return refuse("no such command; there are:\n" + control_usage());
  if (words.size() - 1 < found->least) return refuse("usage: " + std::string(found->usage));
  const Lock lock(state);
  return found->run(state, words.subspan(1));
}

Result<std::string> control(State& state, const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return control(state, words);
}

std::string control_usage() {
  std::string text;
  for (const Command& one : kCommands) text += fmt::format("  {}\n", one.usage);
  return text;
}

std::string show(const State& state) {
  constexpr std::size_t kCell = 5;  // columns of the drawing for one memory slice
  std::string text;
  for (std::uint32_t i = 0; i < state.gpu_count; ++i) {
    const GpuState& gpu = state.gpus[i];
    text += fmt::format("GPU {:<3} {:<10} {:02x}:{:02x} nvidia{:<3} {:>3}% {:>6} MiB {:>4} W  ", i,
                        model_of(gpu).key, gpu.pci_domain, gpu.pci_bus, gpu.minor, gpu.utilization,
                        memory_used(gpu) >> 20, gpu.power_mw / 1000);
    if (gpu.lost != 0) {
      text += "off the bus\n";
      continue;
    }
    std::string bar(gpu.mig_now != 0 ? model_of(gpu).memory_slices * kCell : 0, '.');
    for (const InstanceState& one : gpu.instances) {
      if (one.live == 0) continue;
      const ProfileModel& profile = profile_of(gpu, one);
      const std::size_t width = profile.memory_slices * kCell;
      const bool fits = profile.name.size() <= width - 2;
      const auto name = fits ? profile.name : profile.name.substr(0, profile.name.find('.'));
      std::string part = fmt::format("{:-<{}}", name, width - 2);
      if (one.compute[0].live == 0) part = std::string(width - 2, '?');
      bar.replace(one.start * kCell, width, "[" + part + "]");
    }
    text += bar.empty() ? "whole\n" : bar + "\n";
  }
  return text;
}

}  // namespace gantry::fake
