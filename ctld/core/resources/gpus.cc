#include "ctld/core/resources/gpus.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/proto/gpu_rows.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/gpu/gpu_share.h"

namespace gantry::core {
namespace {

const MigProfile* profile_of(const GpuInventory& found, const std::string& model,
                             std::uint32_t id) {
  for (const MigGeometry& g : found.geometries)
    if (g.model == model)
      for (const MigProfile& p : g.profiles)
        if (p.id == id) return &p;
  return nullptr;
}

// True if new jobs may use the GPU. If a slice has failed, jobs on other slices continue, but no
// new job starts.
bool sound(const GpuDevice& gpu) {
  return std::none_of(gpu.faults.begin(), gpu.faults.end(),
                      [](const GpuFault& f) { return f.domain >= FaultDomain::slice; });
}

const GpuDevice* device(const Node& node, std::uint32_t index) {
  for (const GpuDevice& gpu : node.facts.gpus.gpus)
    if (gpu.index == index) return &gpu;
  return nullptr;
}

// The memory slices [first, last) of a grant; a whole device has all of them.
std::pair<std::uint32_t, std::uint32_t> extent(const Node& node, const GpuGrant& grant) {
  constexpr std::uint32_t kAll = 64;
  if (!grant.profile) return {0, kAll};
  const GpuDevice* gpu = device(node, grant.gpu);
  const MigProfile* profile =
      gpu != nullptr ? profile_of(node.facts.gpus, gpu->model, *grant.profile) : nullptr;
  const std::uint32_t size = profile != nullptr ? profile->memory_slices : 1;
  return {grant.start, grant.start + size};
}

bool overlap(const Node& node, const GpuGrant& a, const GpuGrant& b) {
  if (a.gpu != b.gpu) return false;
  const auto [a0, a1] = extent(node, a);
  const auto [b0, b1] = extent(node, b);
  return a0 < b1 && b0 < a1;
}

// True if two overlapping grants may exist together: both are parts of the same GPU or slice, for
// the same tenant. Whether the sum of the parts exceeds the whole is checked elsewhere.
bool side_by_side(const GpuGrant& a, PartitionId of_a, const GpuGrant& b, PartitionId of_b) {
  return a.part() && b.part() && of_a == of_b && a.profile == b.profile && a.start == b.start;
}

std::string name_of(const Node& node, const GpuGrant& grant) {
  if (!grant.profile) return fmt::format("GPU {} of {}", grant.gpu, node.name);
  return fmt::format("the slice at {} of GPU {} of {}", grant.start, grant.gpu, node.name);
}

// The fault that concerns this grant, or null.
const GpuFault* fault_of(const GpuDevice& gpu, const GpuGrant& grant) {
  for (const GpuFault& f : gpu.faults) {
    if (f.domain >= FaultDomain::gpu) return &f;
    if (f.domain != FaultDomain::slice || !grant.profile) continue;
    for (const MigSlice& s : gpu.slices)
      if (s.gpu_instance == f.gpu_instance && s.start == grant.start) return &f;
  }
  return nullptr;
}

}  // namespace

std::vector<sched::GpuView> gpus_for_jobs(const Node& node) {
  std::vector<sched::GpuView> out;
  if (node.declared == nullptr) return out;
  const GpuInventory& found = node.facts.gpus;
  if (found.gpus.empty()) {
    if (!found.why_none.empty()) return out;
    for (std::uint32_t i = 0; i < node.declared->gpus; ++i)
      out.push_back({static_cast<std::uint16_t>(i), -1, false, node.declared->gpu_model, {}});
    return out;
  }
  for (const GpuDevice& gpu : found.gpus) {
    if (out.size() == node.declared->gpus) break;
    // The node reports these numbers. A grant needs one of at most 16 bits that no other GPU has.
    const bool named = std::any_of(out.begin(), out.end(), [&](const sched::GpuView& other) {
      return other.index == gpu.index;
    });
    if (named || gpu.index > std::numeric_limits<std::uint16_t>::max()) continue;
    if (!sound(gpu) || drained_gpu(node, gpu.uuid) != nullptr) continue;
    out.push_back(
        {static_cast<std::uint16_t>(gpu.index), gpu.numa, gpu.mig, gpu.model, gpu.nvlinks});
    if (!gpu.mig || !node.declared->mig_by_hand) continue;
    out.back().by_hand = true;
    out.back().slices = gpu.slices;
  }
  return out;
}

const proto::DrainedGpu* drained_gpu(const Node& node, const std::string& uuid) {
  for (const proto::DrainedGpu& d : node.drained_gpus)
    if (d.uuid == uuid) return &d;
  return nullptr;
}

std::uint32_t whole_gpus(const std::vector<sched::GpuView>& devices) {
  return static_cast<std::uint32_t>(std::count_if(
      devices.begin(), devices.end(), [](const sched::GpuView& gpu) { return !gpu.mig; }));
}

std::uint32_t gpus_when_well(const Node& node) {
  if (node.declared == nullptr) return 0;
  const auto& found = node.facts.gpus.gpus;
  const auto in_slices = static_cast<std::uint32_t>(
      std::count_if(found.begin(), found.end(), [](const GpuDevice& gpu) { return gpu.mig; }));
  return node.declared->gpus - std::min(node.declared->gpus, in_slices);
}

bool shares_gpus(const Node& node) {
  return node.declared != nullptr && node.declared->gpu_sharing != GpuSharing::none &&
         node.facts.gpus.cannot_share.empty();
}

namespace {

// For a part of a GPU, or a grant that overlaps a part: why this tenant cannot have it in addition
// to what is held, or nullopt.
std::optional<std::string> part_objection(const Node& node, const GpuGrant& d, PartitionId tenant) {
  const DevicePart part = d.of_device();
  if (d.thousandths == GpuThousandths{} || part == DevicePart{} || part > kWholeDevice)
    return fmt::format("{} thousandths of {}", part.value(), name_of(node, d));
  if (d.part() && !shares_gpus(node)) return fmt::format("GPUs of {} are not shared", node.name);
  DevicePart sum = part;
  for (const Node::HeldGpu& held : node.gpu_grants) {
    if (!overlap(node, held.grant, d)) continue;
    if (!side_by_side(held.grant, held.tenant, d, tenant))
      return name_of(node, d) + (held.grant.part() && held.tenant != tenant
                                     ? " is shared by another tenant"
                                     : " is taken");
    sum += held.grant.of_device();
  }
  if (sum > kWholeDevice) return name_of(node, d) + " has less of it left";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> gpu_objection(const Node& node, const sched::NodeGrant& grant,
                                         PartitionId tenant) {
  const auto views = gpus_for_jobs(node);
  std::uint32_t whole = 0;
  for (std::size_t i = 0; i < grant.devices.size(); ++i) {
    const GpuGrant& d = grant.devices[i];
    const auto view = std::find_if(views.begin(), views.end(),
                                   [&](const sched::GpuView& v) { return v.index == d.gpu; });
    if (view == views.end()) return name_of(node, d) + " is not there";
    if (d.profile.has_value() != view->mig)
      return fmt::format("{} {} in MIG mode", name_of(node, d), view->mig ? "is" : "is not");
    if (d.profile) {
      const MigProfile* profile = profile_of(node.facts.gpus, view->model, *d.profile);
      if (profile == nullptr) return name_of(node, d) + " has no such profile";
      if (std::find(profile->starts.begin(), profile->starts.end(), d.start) ==
          profile->starts.end())
        return name_of(node, d) + " may not start there";
      if (view->by_hand &&
          std::none_of(view->slices.begin(), view->slices.end(), [&](const MigSlice& s) {
            return s.profile == *d.profile && s.start == d.start;
          }))
        return name_of(node, d) + " has not been made";
    }
    whole += d.whole() ? 1 : 0;
    for (std::size_t k = 0; k < i; ++k)
      if (overlap(node, grant.devices[k], d)) return name_of(node, d) + " twice";
    if (auto why = part_objection(node, d, tenant)) return why;
  }
  if (whole != grant.gpus) return fmt::format("{} GPUs counted, {} named", grant.gpus, whole);
  return std::nullopt;
}

void take_gpus(Node& node, const sched::NodeGrant& grant, PartitionId tenant) {
  node.gpus_taken += grant.gpus;
  for (const GpuGrant& d : grant.devices) {
    DevicePart sum = d.of_device();
    for (const Node::HeldGpu& held : node.gpu_grants) {
      if (!overlap(node, held.grant, d)) continue;
      GANTRY_ASSERT(side_by_side(held.grant, held.tenant, d, tenant),
                    "a device is given to one job, or to one tenant in parts");
      sum += held.grant.of_device();
    }
    GANTRY_ASSERT(sum <= kWholeDevice, "no more of a device is given than there is");
    const auto at = std::find_if(
        node.gpu_grants.begin(), node.gpu_grants.end(), [&](const Node::HeldGpu& held) {
          return std::pair{d.gpu, d.start} < std::pair{held.grant.gpu, held.grant.start};
        });
    node.gpu_grants.insert(at, {d, tenant});
  }
}

void give_gpus(Node& node, const sched::NodeGrant& grant, PartitionId tenant) {
  GANTRY_ASSERT(node.gpus_taken >= grant.gpus, "more GPUs given back than taken");
  node.gpus_taken -= grant.gpus;
  for (const GpuGrant& d : grant.devices) {
    const auto at = std::find_if(
        node.gpu_grants.begin(), node.gpu_grants.end(),
        [&](const Node::HeldGpu& held) { return held.grant == d && held.tenant == tenant; });
    GANTRY_ASSERT(at != node.gpu_grants.end(), "a device given back by who has it");
    node.gpu_grants.erase(at);
  }
}

GpuThousandths gpu_thousandths_taken(const Node& node) {
  GpuThousandths sum = thousandths_of(Gpus{node.gpus_taken});
  for (const Node::HeldGpu& held : node.gpu_grants)
    if (!held.grant.whole()) sum += held.grant.thousandths;
  return sum;
}

std::optional<std::string> gpus_held_twice(const Node& node) {
  for (std::size_t i = 0; i < node.gpu_grants.size(); ++i) {
    const Node::HeldGpu& one = node.gpu_grants[i];
    DevicePart sum = one.grant.of_device();
    for (std::size_t k = 0; k < i; ++k) {
      const Node::HeldGpu& other = node.gpu_grants[k];
      if (!overlap(node, other.grant, one.grant)) continue;
      if (!side_by_side(other.grant, other.tenant, one.grant, one.tenant))
        return name_of(node, one.grant) + " is held twice";
      sum += other.grant.of_device();
    }
    if (sum > kWholeDevice) return name_of(node, one.grant) + " is given more than once over";
  }
  return std::nullopt;
}

namespace {

constexpr std::string_view kDrainedBy = "gantry";

// The fault because of which no job may start on the node, or null.
const GpuFault* node_fault(const Node& node) {
  for (const GpuDevice& gpu : node.facts.gpus.gpus)
    for (const GpuFault& f : gpu.faults)
      if (f.domain == FaultDomain::node) return &f;
  return nullptr;
}

void drain_on_fault(Context& ctx, NodeId id) {
  const Node& node = ctx.state.node(id);
  const GpuFault* fault = node_fault(node);
  const bool ours = node.intent == NodeIntent::drain && node.reason_by == kDrainedBy &&
                    node.reason.starts_with("gpu-");
  if (fault != nullptr && node.intent == NodeIntent::open)
    ctx.record(
        event::NodeIntentChanged{id, NodeIntent::drain, fault->cause, std::string(kDrainedBy)});
  else if (fault == nullptr && ours)
    ctx.record(event::NodeIntentChanged{id, NodeIntent::open, {}, std::string(kDrainedBy)});
}

void end_jobs_on_faults(Context& ctx, NodeId id) {
  const std::vector<JobId> jobs = ctx.state.node(id).jobs;
  for (const JobId job_id : jobs) {
    const Node& node = ctx.state.node(id);
    const Job& job = ctx.state.jobs.at(job_id);
    if (job.phase == Phase::finishing || !job.placed()) continue;
    std::optional<event::JobFinishing> ends;
    for (const NodeRun& run : job.active->nodes) {
      if (run.grant.node != id || run.state == RunState::released) continue;
      for (const GpuGrant& d : run.grant.devices) {
        const GpuDevice* gpu = device(node, d.gpu);
        const GpuFault* fault = gpu != nullptr ? fault_of(*gpu, d) : nullptr;
        if (fault == nullptr || ends) continue;
        ends.emplace();
        ends->job = job_id;
        ends->outcome = Outcome::node_fail;
        ends->cause = fmt::format("{} on {}", fault->cause, name_of(node, d));
        if (job.may_requeue) ends->requeue = RequeueWhy::node_failure;
        ends->grace = Duration{};
      }
    }
    if (!ends) continue;
    ctx.note(fmt::format("job {}: {}", display_id(ctx.state, job), ends->cause));
    ctx.record(*ends);
    // Tells the scheduler that the job leaves now, not at its limit.
    ctx.turn.changes.emplace_back(placed_view(ctx.state, ctx.state.jobs.at(job_id)));
  }
}

}  // namespace

void act_on_faults(Context& ctx, NodeId node) {
  end_jobs_on_faults(ctx, node);
  drain_on_fault(ctx, node);
}

std::string gpu_trouble(const Node& node) {
  if (node.declared == nullptr || node.declared->gpus == 0) return {};
  const GpuInventory& found = node.facts.gpus;
  if (!found.why_none.empty()) return "no GPUs: " + found.why_none;
  std::string out;
  if (node.declared->gpu_sharing != GpuSharing::none && !found.cannot_share.empty())
    out = "GPUs are not shared: " + found.cannot_share;
  if (!found.gpus.empty() && found.gpus.size() < node.declared->gpus)
    out += fmt::format("{}{} of {} GPUs found", out.empty() ? "" : "; ", found.gpus.size(),
                       node.declared->gpus);
  for (const GpuDevice& gpu : found.gpus)
    for (const GpuFault& f : gpu.faults)
      out += fmt::format("{}GPU {}: {}", out.empty() ? "" : "; ", gpu.index, f.cause);
  for (const GpuDevice& gpu : found.gpus)
    if (const proto::DrainedGpu* d = drained_gpu(node, gpu.uuid))
      out += fmt::format("{}GPU {}: drained by {}: {}", out.empty() ? "" : "; ", gpu.index, d->by,
                         d->reason);
  return out;
}

}  // namespace gantry::core
