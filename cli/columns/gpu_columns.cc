#include "cli/columns/gpu_columns.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "common/job/verdict_text.h"
#include "common/resources/mig_draw.h"
#include "common/resources/resources.h"
#include "common/text/text.h"

namespace gantry::cli {
namespace {

using O = std::string&;
using R = const GpuRow&;

const MigProfile* profile_of(const proto::NodeRow& node, const GpuDevice& gpu, std::uint32_t id) {
  for (const MigGeometry& g : node.gpus.geometries)
    if (g.model == gpu.model)
      for (const MigProfile& p : g.profiles)
        if (p.id == id) return &p;
  return nullptr;
}

const GpuFault* fault_of(R row) {
  const GpuFault* found = nullptr;
  for (const GpuFault& f : row.gpu->faults)
    if (f.domain != FaultDomain::none && (found == nullptr || f.domain > found->domain)) found = &f;
  return found;
}

const proto::DrainedGpu* drained(R row) {
  for (const proto::DrainedGpu& d : row.node->drained_gpus)
    if (d.uuid == row.gpu->uuid) return &d;
  return nullptr;
}

// The states have the same meaning as for nodes: a job that holds a GPU when the GPU is drained
// stays on it until it ends.
std::string_view state_of(R row) {
  if (fault_of(row) != nullptr) return "failed";
  if (drained(row) != nullptr) return row.holder != nullptr ? "draining" : "drained";
  return row.holder != nullptr ? "used" : "free";
}

void put_cause(O o, R row) {
  const GpuFault* fault = fault_of(row);
  const proto::DrainedGpu* by_hand = drained(row);
  if (fault != nullptr) o += fmt::format("{} since {}", fault->cause, format_time(fault->since));
  if (by_hand != nullptr)
    o += fmt::format("{}drained by {}: {} since {}", fault != nullptr ? "; " : "", by_hand->by,
                     by_hand->reason, format_time(by_hand->since));
  if (fault == nullptr && by_hand == nullptr) o += "-";
}

void slices(const proto::NodeRow& node, const GpuDevice& gpu, std::vector<GpuRow>& out) {
  std::vector<GpuRow> rows;
  // Includes slices that were granted but do not exist yet.
  for (const proto::GpuHolder& h : node.holders)
    if (h.grant.gpu == gpu.index && h.grant.profile)
      rows.push_back({&node, &gpu, profile_of(node, gpu, *h.grant.profile), h.grant.start, &h});
  for (const MigSlice& s : gpu.slices) {
    const bool held =
        std::any_of(rows.begin(), rows.end(), [&](R r) { return r.start == s.start; });
    if (!held) rows.push_back({&node, &gpu, profile_of(node, gpu, s.profile), s.start, nullptr});
  }
  if (rows.empty()) rows.push_back({&node, &gpu, nullptr, {}, nullptr});
  std::stable_sort(rows.begin(), rows.end(), [](R a, R b) { return a.start < b.start; });
  out.insert(out.end(), rows.begin(), rows.end());
}

// Adds a row for each job that has a part of this unpartitioned GPU, or one row if none has.
void parts(const proto::NodeRow& node, const GpuDevice& gpu, std::vector<GpuRow>& out) {
  const std::size_t before = out.size();
  for (const proto::GpuHolder& h : node.holders)
    if (h.grant.gpu == gpu.index) out.push_back({&node, &gpu, nullptr, {}, &h});
  if (out.size() == before) out.push_back({&node, &gpu, nullptr, {}, nullptr});
}

Colour row_colour(R row) {
  if (fault_of(row) != nullptr) return Colour::red;
  if (drained(row) != nullptr) return Colour::yellow;
  return row.holder != nullptr ? Colour::cyan : Colour::green;
}

constexpr Column<GpuRow> kColumns[] = {
    {'N', "Node", "NODE", [](O o, R r) { o += r.node->name; }},
    {'g', "Gpu", "GPU", [](O o, R r) { o += std::to_string(r.gpu->index); }},
    {'m', "Model", "MODEL", [](O o, R r) { o += r.gpu->model; }},
    {'y', "Memory", "MEMORY",
     [](O o, R r) {
       o += format_memory_rounded(r.profile != nullptr ? r.profile->memory : r.gpu->memory);
     }},
    {'u', "Numa", "NUMA",
     [](O o, R r) { o += r.gpu->numa < 0 ? "-" : std::to_string(r.gpu->numa); }},
    {'s', "Slice", "SLICE",
     [](O o, R r) {
       if (!r.gpu->mig)
         o += r.holder == nullptr || r.holder->grant.whole()
                  ? "-"
                  : "part " + format_thousandths(r.holder->grant.thousandths.value());
       else if (!r.start)
         o += "none";
       else
         o += fmt::format("{}@{}", r.profile != nullptr ? r.profile->name : "?", *r.start);
       if (r.gpu->mig && r.holder != nullptr && r.holder->grant.part())
         o += " part " + format_thousandths(r.holder->grant.of_slice.value());
     }},
    coloured<GpuRow>({'t', "State", "STATE", [](O o, R r) { o += state_of(r); }}, row_colour),
    {'j', "Job", "JOB",
     [](O o, R r) {
       const bool known = r.holder != nullptr && r.holder->job != JobId{};
       o += known ? std::to_string(r.holder->job.value()) : "-";
     }},
    {'q', "Partition", "PARTITION",
     [](O o, R r) { o += r.holder != nullptr ? r.holder->partition : ""; }},
    {'U', "Uuid", "UUID", [](O o, R r) { o += r.gpu->uuid; }},
    {'P', "Pci", "PCI", [](O o, R r) { o += r.gpu->pci; }},
    {'e', "Cause", "CAUSE", put_cause}};

}  // namespace

std::vector<GpuRow> gpu_rows(const std::vector<proto::NodeRow>& nodes) {
  std::vector<GpuRow> out;
  for (const proto::NodeRow& node : nodes)
    for (const GpuDevice& gpu : node.gpus.gpus)
      if (gpu.mig)
        slices(node, gpu, out);
      else
        parts(node, gpu, out);
  return out;
}

std::span<const Column<GpuRow>> gpu_columns() {
  return kColumns;
}

namespace {

using proto::GpuHolder;
using proto::NodeRow;

const MigGeometry* geometry_of(const NodeRow& node, const GpuDevice& gpu) {
  for (const MigGeometry& g : node.gpus.geometries)
    if (g.model == gpu.model) return &g;
  return nullptr;
}

const MigProfile* profile_in(const MigGeometry* geometry, std::uint32_t id) {
  if (geometry == nullptr) return nullptr;
  for (const MigProfile& p : geometry->profiles)
    if (p.id == id) return &p;
  return nullptr;
}

const GpuFault* worst_fault(const GpuDevice& gpu) {
  const GpuFault* worst = nullptr;
  for (const GpuFault& f : gpu.faults)
    if (f.domain != FaultDomain::none && (worst == nullptr || f.domain > worst->domain)) worst = &f;
  return worst;
}

std::string whose(const GpuHolder& holder) {
  return holder.job == JobId{} ? "in use" : fmt::format("job {}", holder.job.value());
}

std::string with_tenant(const GpuHolder& holder) {
  return holder.partition.empty() ? whose(holder) : whose(holder) + " " + holder.partition;
}

std::string slice_label(const MigProfile& profile, const std::string& who) {
  return who.empty() ? profile.name : profile.name + " " + who;
}

// The GPU's slices: those that jobs hold, and existing ones that are idle.
DrawnGpu drawn(const NodeRow& node, const GpuDevice& gpu, const MigGeometry& geometry) {
  DrawnGpu out;
  out.memory_slices = std::clamp<std::uint32_t>(geometry.memory_slices, 1, 64);
  std::uint64_t busy = 0;
  const auto add = [&](std::uint32_t id, std::uint32_t start, const std::string& who, bool idle) {
    const MigProfile* p = profile_in(&geometry, id);
    if (p == nullptr || p->memory_slices == 0 || start + p->memory_slices > out.memory_slices)
      return;
    const std::uint64_t mask = ((std::uint64_t{1} << p->memory_slices) - 1) << start;
    if ((busy & mask) != 0) return;
    busy |= mask;
    out.slices.push_back({start, p->memory_slices, slice_label(*p, who), idle});
  };
  // Profile and holders by start.
  std::map<std::uint32_t, std::pair<std::uint32_t, std::string>> held;
  for (const GpuHolder& h : node.holders) {
    if (h.grant.gpu != gpu.index || !h.grant.profile) continue;
    auto& [profile, who] = held[h.grant.start];
    profile = *h.grant.profile;
    who += (who.empty() ? "" : ", ") + with_tenant(h);  // several jobs hold parts of this slice
  }
  for (const auto& [start, slice] : held) add(slice.first, start, slice.second, false);
  for (const MigSlice& s : gpu.slices) add(s.profile, s.start, "idle", true);
  return out;
}

// Text like "drained by root: a noisy fan" once no job is left on the GPU; "" until then.
std::string drained_and_empty(const NodeRow& node, const GpuDevice& gpu) {
  for (const GpuHolder& h : node.holders)
    if (h.grant.gpu == gpu.index) return {};
  for (const proto::DrainedGpu& d : node.drained_gpus)
    if (d.uuid == gpu.uuid) return fmt::format("drained by {}: {}", d.by, d.reason);
  return {};
}

std::string whole_bar(const NodeRow& node, const GpuDevice& gpu, std::size_t width) {
  std::string label;
  for (const GpuHolder& h : node.holders)
    if (h.grant.gpu == gpu.index) label += (label.empty() ? "" : ", ") + with_tenant(h);
  std::string bar(width, label.empty() ? '.' : ' ');
  if (label.empty()) return bar;
  bar.replace(1, std::min(label.size(), width - 2), label, 0, std::min(label.size(), width - 2));
  bar.front() = '[';
  bar.back() = ']';
  return bar;
}

// The value that most of them have. If several are equally frequent, it is the first by name.
std::string usual(const std::map<std::string, std::uint32_t>& counts) {
  std::string most;
  std::uint32_t best = 0;
  for (const auto& [what, n] : counts)
    if (n > best) {
      best = n;
      most = what;
    }
  return most;
}

void slice_drift(const NodeRow& node, const GpuDevice& gpu, std::vector<Drift>& out) {
  const MigGeometry* geometry = geometry_of(node, gpu);
  const auto name = [&](std::uint32_t id, std::uint32_t start) {
    const MigProfile* p = profile_in(geometry, id);
    return fmt::format("{}@{}", p != nullptr ? p->name : fmt::format("profile {}", id), start);
  };
  const auto held = [&](const MigSlice& s) {
    return std::any_of(node.holders.begin(), node.holders.end(), [&](const GpuHolder& h) {
      return h.grant.gpu == gpu.index && h.grant.profile == s.profile && h.grant.start == s.start;
    });
  };
  for (const MigSlice& s : gpu.slices)
    if (!held(s))
      out.push_back(
          {node.name, std::to_string(gpu.index), "-", name(s.profile, s.start) + " idle"});
  for (const GpuHolder& h : node.holders) {
    if (h.grant.gpu != gpu.index || !h.grant.profile) continue;
    const bool there = std::any_of(gpu.slices.begin(), gpu.slices.end(), [&](const MigSlice& s) {
      return s.profile == *h.grant.profile && s.start == h.grant.start;
    });
    if (!there)
      out.push_back({node.name, std::to_string(gpu.index),
                     fmt::format("{} of {}", name(*h.grant.profile, h.grant.start), whose(h)),
                     "-"});
  }
}

}  // namespace

std::vector<std::string> layout_lines(const std::vector<NodeRow>& nodes, std::uint32_t width) {
  constexpr std::uint32_t kLeast = 5, kMost = 12;  // least columns of text for one memory slice
  std::size_t name = 4, model = 5;
  for (const NodeRow& node : nodes) {
    if (!node.gpus.gpus.empty()) name = std::max(name, node.name.size());
    for (const GpuDevice& gpu : node.gpus.gpus) model = std::max(model, gpu.model.size());
  }
  std::vector<std::string> out;
  for (const NodeRow& node : nodes)
    for (const GpuDevice& gpu : node.gpus.gpus) {
      std::string line =
          fmt::format("{:<{}} {:>3} {:<{}} ", node.name, name, gpu.index, gpu.model, model);
      const MigGeometry* geometry = gpu.mig ? geometry_of(node, gpu) : nullptr;
      const std::uint32_t slices = geometry != nullptr ? geometry->memory_slices : 8;
      const auto left = width > line.size() ? width - static_cast<std::uint32_t>(line.size()) : 0;
      const std::uint32_t columns = std::clamp(left / std::max(1u, slices), kLeast, kMost);
      if (const GpuFault* fault = worst_fault(gpu);
          fault != nullptr && fault->domain >= FaultDomain::gpu)
        line += "out of service: " + fault->cause;
      else if (const std::string by_hand = drained_and_empty(node, gpu); !by_hand.empty())
        line += by_hand;
      else if (geometry != nullptr)
        line += draw_gpu(drawn(node, gpu, *geometry), columns);
      else
        line += whole_bar(node, gpu, std::size_t{slices} * columns);
      out.push_back(std::move(line));
    }
  return out;
}

std::vector<Drift> drift_of(const std::vector<NodeRow>& nodes) {
  std::map<std::string, std::uint32_t> drivers, cudas;
  for (const NodeRow& node : nodes)
    if (!node.gpus.driver.empty()) {
      ++drivers[node.gpus.driver];
      ++cudas[node.gpus.cuda];
    }
  const std::string driver = usual(drivers), cuda = usual(cudas);
  std::vector<Drift> out;
  for (const NodeRow& node : nodes) {
    const std::int64_t declared = node.total[Resource::gpu] / kGpuUnit;
    const auto found = static_cast<std::int64_t>(node.gpus.gpus.size());
    if (!node.gpus.why_none.empty() && found == 0 && declared > 0)
      out.push_back({node.name, "", counted(declared, "GPU"), "none: " + node.gpus.why_none});
    else if (found > 0 && found != declared)
      out.push_back({node.name, "", counted(declared, "GPU"), counted(found, "GPU")});
    if (!node.gpus.driver.empty() && node.gpus.driver != driver)
      out.push_back({node.name, "", "driver " + driver, "driver " + node.gpus.driver});
    if (!node.gpus.driver.empty() && node.gpus.cuda != cuda)
      out.push_back({node.name, "", "CUDA " + cuda, "CUDA " + node.gpus.cuda});
    std::map<std::string, std::uint32_t> models;
    for (const GpuDevice& gpu : node.gpus.gpus) ++models[gpu.model];
    const std::string model = usual(models);
    for (const GpuDevice& gpu : node.gpus.gpus) {
      const std::string index = std::to_string(gpu.index);
      if (gpu.model != model) out.push_back({node.name, index, model, gpu.model});
      for (const GpuFault& f : gpu.faults) out.push_back({node.name, index, "sound", f.cause});
      if (gpu.mig) slice_drift(node, gpu, out);
    }
  }
  return out;
}

}  // namespace gantry::cli
