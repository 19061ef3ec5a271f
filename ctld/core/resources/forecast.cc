// The forecast: searches for the first end of a running job after which the new job fits.
#include "ctld/core/resources/forecast.h"

#include <algorithm>
#include <map>
#include <set>

#include "ctld/core/context.h"
#include "ctld/core/resources/gres.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/view_memory.h"
#include "ctld/sched/gpu/gpu_share.h"
#include "ctld/sched/queue/constraint.h"

namespace gantry::core {
namespace {

struct Ending {
  Instant at;
  const Job* job;
};

// The jobs on these nodes that end by themselves, in order of their ends.
std::vector<Ending> endings(const Context& ctx, const Partition& partition) {
  std::set<JobId> known;
  std::vector<Ending> out;
  for (const NodeId id : partition.nodes)
    for (const JobId running : ctx.state.node(id).jobs) {
      if (!known.insert(running).second) continue;
      const Job& job = ctx.state.jobs.at(running);
      const auto end = limit_end(ctx.state, job);
      if (job.phase == Phase::finishing)
        out.push_back({ctx.now, &job});
      else if (end)
        out.push_back({std::max(ctx.now, *end), &job});
    }
  std::sort(out.begin(), out.end(), [](const Ending& a, const Ending& b) {
    return std::pair(a.at, a.job->id) < std::pair(b.at, b.job->id);
  });
  return out;
}

struct Freed {
  sched::Room room;
  std::uint32_t exclusive = 0;
};

// A GPU that was drained or has failed since is not in the view, so no job can get it.
void add_gpu(sched::Room& room, const sched::NodeChanged& view, const GpuGrant& gpu) {
  if (std::none_of(view.devices.begin(), view.devices.end(),
                   [&](const sched::GpuView& v) { return v.index == gpu.gpu; }))
    return;
  if (gpu.whole()) ++room.gpus;
  if (sched::is_part(gpu)) room.gpu_parts += gpu.thousandths;
}

sched::Room room_of(const State& state, const sched::NodeChanged& view,
                    const sched::NodeGrant& grant) {
  sched::Room room{grant.memory, grant.scratch, static_cast<std::int32_t>(grant.cpus.size())};
  for (const GpuGrant& gpu : grant.devices) add_gpu(room, view, gpu);
  room.gres = gres_amounts(state, grant.gres);
  return room;
}

class Search {
 public:
  Search(const Context& ctx, const Partition& partition, const JobShape& shape,
         const AdvanceReservation* within)
      : ctx_(ctx),
        partition_(partition),
        shape_(shape),
        within_(within),
        demand_(sched::demand_of(shape, ctx.rt.views->partitions.at(partition.id.value()))),
        constraint_(sched::parse_constraint(shape.constraint)),
        endings_(endings(ctx, partition)) {}

  std::optional<Forecast> run() const {
    if (auto now = after(0)) return now;
    std::size_t low = 0,
                high = endings_.size();  // it does not fit after `low` ends; does it after `high`?
    auto best = after(high);
    if (!best) return std::nullopt;
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      auto found = after(middle);
      (found ? high : low) = middle;
      if (found) best = std::move(found);
    }
    return best;
  }

 private:
  // The nodes on which the job would start once the first `count` jobs have ended.
  [[nodiscard]] std::optional<Forecast> after(std::size_t count) const {
    std::map<NodeId, Freed> freed;
    for (std::size_t i = 0; i < count; ++i)
      for (const NodeRun& run : endings_[i].job->active->nodes) {
        if (run.state == RunState::released) continue;
        Freed& more = freed[run.grant.node];
        more.room +=
            room_of(ctx_.state, ctx_.rt.views->nodes.at(run.grant.node.value()), run.grant);
        more.exclusive += endings_[i].job->active->exclusive ? 1 : 0;
      }
    std::vector<sched::Candidate> candidates;
    for (const NodeId id : partition_.nodes)
      if (const std::uint32_t fits = tasks_on(id, freed[id]); fits > 0)
        candidates.push_back(
            {id.value(), fits, named(shape_.required_nodes, ctx_.state.node(id).name)});
    const auto shares = sched::choose_nodes(
        demand_, candidates, static_cast<std::uint32_t>(shape_.required_nodes.size()));
    if (!shares) return std::nullopt;
    Forecast out{count == 0 ? ctx_.now : endings_[count - 1].at, {}, {}, 0};
    for (const sched::Share& share : *shares) {
      const sched::Room size = sched::room_of(ctx_.rt.views->nodes.at(share.node));
      out.cores += static_cast<std::uint32_t>(sched::need_for(demand_, size, share.tasks).cpus);
      out.nodes.push_back(NodeId(share.node));
      out.tasks.push_back(share.tasks);
    }
    return out;
  }

  [[nodiscard]] std::uint32_t tasks_on(NodeId id, const Freed& freed) const {
    const Node& node = ctx_.state.node(id);
    const sched::NodeChanged& view = ctx_.rt.views->nodes.at(id.value());
    if (within_ != nullptr && !std::binary_search(within_->nodes.begin(), within_->nodes.end(), id))
      return 0;
    if (!view.available || node.exclusive_jobs > freed.exclusive ||
        named(shape_.excluded_nodes, node.name))
      return 0;
    if (!constraint_ || !sched::matches(*constraint_, view.features) ||
        !sched::has_sandbox(shape_.sandbox, view.features))
      return 0;
    const sched::Room size = sched::room_of(view);
    sched::Room free = size;
    free -= sched::Room{node.memory_taken, node.scratch_taken,
                        static_cast<std::int32_t>(node.cpus_taken)};
    sched::Room held;
    for (const Node::HeldGpu& gpu : node.gpu_grants) add_gpu(held, view, gpu.grant);
    held.gres = gres_amounts_taken(ctx_.state, node);
    free -= held;
    free += freed.room;
    return sched::tasks_fitting(demand_, size, free);
  }

  static bool named(const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  }

  const Context& ctx_;
  const Partition& partition_;
  const JobShape& shape_;
  const AdvanceReservation* within_;
  const sched::Demand demand_;
  const Result<sched::Constraint> constraint_;
  const std::vector<Ending> endings_;
};

}  // namespace

std::optional<Forecast> forecast(const Context& ctx, const Partition& partition,
                                 const JobShape& shape, const AdvanceReservation* within) {
  return Search(ctx, partition, shape, within).run();
}

}  // namespace gantry::core
