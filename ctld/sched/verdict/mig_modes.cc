#include "ctld/sched/verdict/mig_modes.h"

#include <algorithm>
#include <bit>
#include <map>

#include "ctld/sched/gpu/mig_plan.h"
#include "ctld/sched/queue/constraint.h"

namespace gantry::sched {
namespace {

constexpr std::size_t kModeLines = 256;  // lines of jobs that are examined
constexpr std::uint32_t kModeParts = 8;  // the most wants that a job on several nodes makes

// True if more or other GPUs would help the class; false if it waits for quota, a window or the
// like.
bool waits_for_gpus(const JobClass& c) {
  const JobShape& shape = c.key.shape;
  if (shape.gpu_slice.empty() && (shape.gpus_per_node == 0 || shape.gpu_share > 0)) return false;
  switch (c.told.of_head.reason) {
    case Reason::none:
    case Reason::resources:
    case Reason::priority:
    case Reason::planned:
    case Reason::mig_repartition:
    case Reason::nodes_unavailable:
    case Reason::bad_constraints: return true;
    default: return false;
  }
}

class Modes {
 public:
  Modes(const Replica& replica, Instant now) : r_(replica) { view_.now = now; }

  std::vector<ModeSwitch> run(std::optional<JobId> for_job) {
    std::optional<std::uint32_t> only;  // only for this class
    if (for_job) {
      const auto slot = r_.queue().find(*for_job);
      if (!slot) return {};
      only = r_.queue().line(r_.queue()[*slot].line).class_index;
    }
    add_gpus();
    add_jobs();
    MigPolicy policy;
    policy.mode_switches = kMostModeSwitches;
    const MigPlan plan = plan_mig(view_, policy);
    std::map<std::uint32_t, const MigWaiting*> waiting;
    for (const MigWaiting& w : plan.waiting) waiting[w.want] = &w;
    std::vector<ModeSwitch> out;
    for (const MigModeSwitch& s : plan.switches) {
      if (only && class_of_want_[s.want] != *only) continue;
      const MigGpuView& gpu = view_.gpus[s.gpu];
      const MigWaiting& w = *waiting.at(s.want);
      out.push_back({NodeId{gpu.node}, r_.grid().node(gpu.node).name,
                     static_cast<std::uint16_t>(gpu.index), *models_[s.gpu], s.on,
                     view_.wants[s.want].profile, real_[w.first.value() - 1], w.jobs,
                     w.why == MigWhy::mode});
    }
    return out;
  }

 private:
  // GPUs in MIG mode, on any node, show which slices GPUs of their model can have; not every driver
  // reports this for a GPU whose MIG mode is off.
  [[nodiscard]] std::optional<std::uint32_t> table_of(const std::string& model) const {
    for (std::uint32_t t = 0; t < view_.tables.size(); ++t)
      if (view_.tables[t]->model() == model) return t;
    return std::nullopt;
  }

  void add_gpus() {
    const MigShapes& shapes = r_.grid().slices().shapes();
    for (std::size_t s = 0; s < shapes.size(); ++s) {
      view_.tables.push_back(&shapes[s].table);
      view_.asked.emplace_back(shapes[s].table.profiles().size(), 0);
    }
    for (std::uint32_t n = 0; n < r_.grid().size(); ++n) {
      if (!r_.grid().available(n)) continue;
      const std::size_t first = view_.gpus.size();
      for (const GpuView& device : r_.grid().node(n).devices) {
        MigGpuView& gpu = view_.gpus.emplace_back();
        gpu.node = n;
        gpu.index = device.index;
        gpu.mig = device.mig;
        gpu.fixed = device.by_hand;
        gpu.table = table_of(device.model);
        models_.push_back(&device.model);
      }
      add_uses(n, first);
    }
  }

  void add_uses(std::uint32_t n, std::size_t first) {
    const MigNode& mig = r_.grid().slices().on(n);
    const auto gpu_at = [&](std::uint32_t index) -> MigGpuView* {
      for (std::size_t g = first; g < view_.gpus.size(); ++g)
        if (view_.gpus[g].index == index) return &view_.gpus[g];
      return nullptr;
    };
    for (const MigNode::Gpu& cut : mig.gpus()) {
      MigGpuView* gpu = gpu_at(cut.index);
      if (gpu == nullptr) continue;
      gpu->table = cut.shape->index;
      for (std::uint64_t left = cut.existing & ~cut.layout; left != 0; left &= left - 1)
        gpu->slices.push_back({static_cast<MigPlacementId>(std::countr_zero(left)), {}, false});
    }
    for (const std::uint32_t slot : r_.running().on_node(n)) {
      const Placement& p = r_.running()[slot];
      for (const GpuGrant& d : p.use_of(n).devices) {
        MigGpuView* gpu = gpu_at(d.gpu);
        if (gpu == nullptr) continue;
        const MigUse use{p.job, p.ends_by};
        if (!d.profile)
          gpu->whole = use;
        else if (const auto at = mig.find(d);
                 at && (mig.gpus()[at->first].layout >> at->second & 1) != 0)
          gpu->slices.push_back({at->second, use, false});
      }
    }
  }

  // Whether the job could run on the node if the node's GPUs were in the mode that the job needs.
  [[nodiscard]] bool could_run(const JobClass& c, const Constraint& constraint,
                               std::uint32_t n) const {
    const GridNode& node = r_.grid().node(n);
    const JobShape& shape = c.key.shape;
    const auto listed = [](const std::vector<std::string>& list, const std::string& what) {
      return std::find(list.begin(), list.end(), what) != list.end();
    };
    if (shape.gpu_share > 0 && !node.gpu_sharing) return false;
    if (!r_.grid().available(n) || !matches(constraint, node.features)) return false;
    if (!has_sandbox(shape.sandbox, node.features)) return false;
    if (!has_abilities(shape.abilities, node.features)) return false;
    if (listed(shape.excluded_nodes, node.name)) return false;
    if (!shape.required_nodes.empty() && !listed(shape.required_nodes, node.name)) return false;
    if (!shape.gpu_models.empty() && !listed(shape.gpu_models, node.gpu_model)) return false;
    if (!std::includes(shape.tolerations.begin(), shape.tolerations.end(), node.taints.begin(),
                       node.taints.end()))
      return false;
    if (shape.gpu_slice.empty() && node.devices.size() < shape.gpus_per_node) return false;
    Demand rest = c.demand;
    rest.gpus = 0;
    rest.slices = {};
    return tasks_fitting(rest, r_.grid().room(n), r_.grid().room(n)) > 0;
  }

  // Adds a want for each node that a job of the class needs (at most kModeParts), each with a part
  // of the nodes.
  std::uint32_t add_wants(const JobClass& c) {
    const auto first = static_cast<std::uint32_t>(view_.wants.size());
    MigWant want;
    want.profile = c.key.shape.gpu_slice;
    for (const std::string& model : c.key.shape.gpu_models)
      for (std::uint32_t t = 0; t < view_.tables.size(); ++t)
        if (view_.tables[t]->model() == model) want.tables.push_back(t);
    const std::uint32_t parts = std::min(c.demand.min_nodes, kModeParts);
    view_.wants.resize(first + parts, want);
    class_of_want_.resize(first + parts, c.index);
    const PartitionChanged* partition = r_.partition(c.key.partition);
    const auto constraint = parse_constraint(c.key.shape.constraint);
    std::vector<std::uint32_t> nodes;
    if (partition != nullptr && constraint)
      for (const NodeId id : partition->nodes)
        if (id.value() < r_.grid().size() && could_run(c, *constraint, id.value()))
          nodes.push_back(id.value());
    std::sort(nodes.begin(), nodes.end());
    for (std::size_t i = 0; i < nodes.size(); ++i)
      view_.wants[first + i % parts].nodes.push_back(nodes[i]);
    for (std::uint32_t w = first; w < view_.wants.size(); ++w)
      if (view_.wants[w].nodes.empty()) view_.wants[w].nodes.push_back(kNoIndex);  // {} = any node
    return first;
  }

  void add_jobs() {
    struct Asks {
      const Line* line;
      std::uint32_t priority;  // priority of its partition
      OrderedSlots::Cursor at{};
      std::uint32_t elements = 0;  // elements of the present job that are in the view
      std::uint32_t want = 0;
    };
    const Queue& queue = r_.queue();
    std::vector<Asks> all;
    for (const std::uint32_t p : queue.busy())
      for (const auto& [user, places] : queue.partition(p).users)
        for (const LinePlace& place : places)
          if (const Line& line = queue.line(place.first.line);
              waits_for_gpus(queue.job_class(line.class_index)))
            all.push_back({&line, queue.partition(p).priority});
    std::sort(all.begin(), all.end(), [&](const Asks& a, const Asks& b) {
      if (a.priority != b.priority) return a.priority > b.priority;
      return before(queue[a.line->jobs.front()], queue[b.line->jobs.front()]);
    });
    if (all.size() > kModeLines) all.resize(kModeLines);
    std::map<std::uint32_t, std::uint32_t> want_of;  // by class
    for (Asks& asks : all) {
      const auto [at, fresh] = want_of.try_emplace(asks.line->class_index);
      if (fresh) at->second = add_wants(queue.job_class(asks.line->class_index));
      asks.want = at->second;
    }
    for (std::size_t round = 0; round < kJobsAsked; ++round)
      for (Asks& asks : all) {
        if (asks.line->jobs.at_end(asks.at)) continue;
        const JobClass& c = queue.job_class(asks.line->class_index);
        const Waiting& job = queue[asks.line->jobs[asks.at]];
        for (std::uint32_t part = 0; part < std::min(c.demand.min_nodes, kModeParts); ++part) {
          real_.push_back(job.job);
          view_.jobs.push_back({JobId{real_.size()}, asks.want + part,
                                std::max(1u, c.key.shape.gpus_per_node), c.key.least_limit()});
        }
        if (++asks.elements < job.startable) continue;
        asks.elements = 0;
        asks.at = asks.line->jobs.next(asks.at);
      }
  }

  const Replica& r_;
  MigView view_;
  std::vector<const std::string*> models_;    // by GPU of the view
  std::vector<std::uint32_t> class_of_want_;  // by want
  std::vector<JobId> real_;                   // by index of the view's jobs, minus one
};

}  // namespace

std::vector<ModeSwitch> plan_modes(const Replica& replica, Instant now,
                                   std::optional<JobId> for_job) {
  return Modes(replica, now).run(for_job);
}

}  // namespace gantry::sched
