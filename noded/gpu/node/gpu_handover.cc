#include "noded/gpu/node/gpu_handover.h"

#include <fmt/core.h>

#include <algorithm>

#include "noded/runtime/job_dir.h"

namespace gantry::node {

namespace {

constexpr int kNoLibrary = 3;  // exit status of gantry-gpu-scrub
// Exit status of the site's program: more than this device is unwell.
constexpr int kNodeUnwell = 2;

std::string why_of(const CommandEnd& end, Duration limit) {
  if (!end.in_time) return fmt::format("not done after {} s", limit.seconds());
  if (!end.last_line.empty()) return end.last_line;
  if (end.status.signal != 0) return fmt::format("killed by signal {}", end.status.signal);
  return fmt::format("exit status {}", end.status.code);
}

std::string_view name_of(HandoverWhen when) {
  switch (when) {
    case HandoverWhen::before: return "before";
    case HandoverWhen::after: return "after";
    case HandoverWhen::repair: break;
  }
  return "repair";
}

}  // namespace

bool mended_by_handover(const GpuFault& fault) {
  return fault.cause.starts_with(kNotIdle) || fault.cause.starts_with(kNotScrubbed) ||
         fault.cause.starts_with(kProbeFailed);
}

struct GpuHandover::Case {
  HandoverWhen when = HandoverWhen::before;
  std::vector<HandedDevice> devices;
  std::vector<std::string> env;
  std::function<void(Outcome&&)> done;
  Outcome outcome;
  Duration waited{};
  std::size_t open = 0;  // number of commands that run
  loop::Watch timer;
};

GpuHandover::GpuHandover(Options options, loop::Loop& loop, Look look)
    : options_(std::move(options)), loop_(loop), look_(std::move(look)), commands_(loop) {}

GpuHandover::~GpuHandover() {
  for (const auto& one : cases_) one->timer.cancel();
}

void GpuHandover::run(HandoverWhen when, std::vector<HandedDevice> devices,
                      std::vector<std::string> env, std::function<void(Outcome&&)> done) {
  auto one = std::make_shared<Case>();
  one->when = when;
  one->devices = std::move(devices);
  one->env = std::move(env);
  one->done = std::move(done);
  for (const HandedDevice& device : one->devices)
    one->outcome.gpus.push_back({device.uuid, device.gpu, GpuScrub::not_needed, {}});
  cases_.push_back(one);
  look(one);
}

bool GpuHandover::busy(std::uint32_t gpu, bool slice) const {
  return std::any_of(cases_.begin(), cases_.end(), [&](const auto& one) {
    if (slice && one->when == HandoverWhen::before) return false;
    return std::any_of(one->devices.begin(), one->devices.end(),
                       [&](const HandedDevice& d) { return d.gpu == gpu; });
  });
}

void GpuHandover::add_fault(Case& one, std::size_t device, std::string cause, FaultDomain domain) {
  const HandedDevice& d = one.devices[device];
  GpuFault fault{domain, std::move(cause), d.gpu_instance.value_or(0), runtime::wall_clock()};
  if (domain == FaultDomain::gpu && d.gpu_instance) fault.domain = FaultDomain::slice;
  if (fault.domain != FaultDomain::slice) fault.gpu_instance = 0;
  one.outcome.faults.push_back({d.gpu_uuid, std::move(fault)});
}

// ---- is the device idle?

void GpuHandover::look(const std::shared_ptr<Case>& one) {
  look_(one->devices, [this, weak = std::weak_ptr(one)](std::vector<Seen>&& found) {
    if (const auto still = weak.lock()) looked(still, std::move(found));
  });
}

void GpuHandover::looked(const std::shared_ptr<Case>& one, std::vector<Seen>&& found) {
  found.resize(one->devices.size());
  const bool idle = std::all_of(found.begin(), found.end(), [](auto& s) { return s.left.empty(); });
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i].fault)
      one->outcome.faults.push_back({one->devices[i].gpu_uuid, std::move(*found[i].fault)});
  if (!one->outcome.faults.empty()) return finish(one);
  if (!idle && one->waited < options_.patience) {
    one->waited = one->waited + options_.pause;
    one->timer = loop_.after(options_.pause, [this, one] { look(one); });
    return;
  }
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!found[i].left.empty())
      add_fault(*one, i, fmt::format("{} {}", kNotIdle, found[i].left), FaultDomain::gpu);
  if (!idle) return finish(one);
  scrub(one);
}

// ---- memory

void GpuHandover::scrub(const std::shared_ptr<Case>& one) {
  for (std::size_t i = 0; i < one->devices.size(); ++i) {
    if (!one->devices[i].scrub) continue;
    if (options_.scrubbing == GpuScrubbing::off) {
      one->outcome.gpus[i].scrub = GpuScrub::off;
      continue;
    }
    ++one->open;
    commands_.run({options_.scrub_program, options_.cuda_library, one->devices[i].uuid}, {},
                  options_.scrub_limit, [this, one, i](const CommandEnd& end) {
                    scrubbed(*one, i, end);
                    if (--one->open == 0) probe(one);
                  });
  }
  if (one->open == 0) probe(one);
}

void GpuHandover::scrubbed(Case& one, std::size_t device, const CommandEnd& end) {
  runtime::LaunchGpu& out = one.outcome.gpus[device];
  const bool no_library = end.in_time && end.status.signal == 0 && end.status.code == kNoLibrary;
  out.scrub = end.good() ? GpuScrub::done : GpuScrub::not_possible;
  out.note = why_of(end, options_.scrub_limit);
  if (end.good() || (no_library && options_.scrubbing == GpuScrubbing::when_possible)) return;
  add_fault(one, device, fmt::format("{} {}", kNotScrubbed, out.note), FaultDomain::gpu);
}

// ---- the site's own program

void GpuHandover::probe(const std::shared_ptr<Case>& one) {
  if (options_.probe_program.empty() || !one->outcome.faults.empty()) return finish(one);
  for (std::size_t i = 0; i < one->devices.size(); ++i) {
    const HandedDevice& device = one->devices[i];
    std::vector<std::string> env = one->env;
    env.push_back(fmt::format("GANTRY_PROBE={}", name_of(one->when)));
    env.push_back(fmt::format("GANTRY_GPU={}", device.gpu));
    env.push_back("GANTRY_GPU_UUID=" + device.uuid);
    env.push_back("CUDA_VISIBLE_DEVICES=" + device.uuid);
    ++one->open;
    commands_.run({options_.probe_program}, std::move(env), options_.probe_limit,
                  [this, one, i](const CommandEnd& end) {
                    const bool node = end.in_time && end.status.code == kNodeUnwell;
                    if (!end.good())
                      add_fault(
                          *one, i,
                          fmt::format("{} {}", kProbeFailed, why_of(end, options_.probe_limit)),
                          node ? FaultDomain::node : FaultDomain::gpu);
                    if (--one->open == 0) finish(one);
                  });
  }
  if (one->open == 0) finish(one);
}

void GpuHandover::finish(const std::shared_ptr<Case>& one) {
  std::erase(cases_, one);
  one->timer.cancel();
  one->done(std::move(one->outcome));
}

}  // namespace gantry::node
