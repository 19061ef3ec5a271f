#include "cli/columns/gpu_columns.h"

#include <fmt/core.h>

#include <algorithm>

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

}  // namespace gantry::cli
