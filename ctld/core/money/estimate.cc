#include "ctld/core/money/estimate.h"

#include <algorithm>

#include "common/proto/job_text.h"
#include "common/text/text.h"
#include "ctld/core/context.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/view_memory.h"
#include "ctld/sched/gpu/gpu_share.h"
#include "ctld/sched/gpu/mig.h"
#include "ctld/sched/queue/geometry.h"

namespace gantry::core {
namespace {

using tenancy::PriceBook;

constexpr Duration kLongestWalk = hours(24 * 366);  // longest walk through prices

bool may_have(const JobShape& shape, const sched::NodeChanged& view) {
  if (shape.gpus_per_node + shape.gpu_share == 0 || shape.gpu_models.empty()) return true;
  return std::any_of(shape.gpu_models.begin(), shape.gpu_models.end(), [&](const std::string& m) {
    return m == view.gpu_model || std::any_of(view.devices.begin(), view.devices.end(),
                                              [&](const auto& gpu) { return gpu.model == m; });
  });
}

// The GPU slices (or the part of a GPU) that the job asks for, by the node's geometries.
std::vector<GpuGrant> slices_of(const sched::NodeChanged& view, const JobShape& shape) {
  for (const MigGeometry& g : view.geometries)
    for (const MigProfile& p : g.profiles) {
      if (p.name != shape.gpu_slice) continue;
      const sched::MigShare share{p.compute_slices, g.compute_slices, p.memory_slices,
                                  g.memory_slices};
      GpuGrant grant;
      grant.profile = p.id;
      grant.thousandths = std::min(share.thousandths(), kOneGpu).narrow<std::uint16_t>();
      for (const sched::GpuView& gpu : view.devices)
        if (gpu.model == g.model) grant.gpu = gpu.index;
      if (shape.gpu_share == 0) return std::vector<GpuGrant>(shape.gpus_per_node, grant);
      const DevicePart part{shape.gpu_share};
      grant.thousandths = sched::weight_of_part(grant.thousandths, part).narrow<std::uint16_t>();
      grant.of_slice = part.narrow<std::uint16_t>();
      return {grant};
    }
  return {};
}

std::string plan_of_new(const Context& ctx, const Partition& partition, const JobSpec& spec) {
  std::string cls = spec.priority_class;
  std::string tier;
  if (const CompiledTenant* tenant = ctx.state.tenancy.tenant(partition.payer())) {
    tier = tenant->effective.tier;
    if (cls.empty()) cls = ctx.state.tenancy.compiled.classes.at(tenant->default_class).name;
  } else if (cls.empty()) {
    const CompiledTenancy& compiled = ctx.state.tenancy.compiled;
    cls = compiled.classes.at(compiled.default_class).name;
  }
  return plan_for(ctx.state.ledger.prices.at(ctx.now), cls, partition.payer(),
                  spec.account.empty() ? partition.payer() : spec.account, tier,
                  spec.sandbox.value_or(Sandbox::standard));
}

class Estimator {
 public:
  Estimator(const Context& ctx, const Partition& partition, const JobShape& shape, std::string plan)
      : ctx_(ctx),
        prices_(ctx.state.ledger.prices),
        partition_(partition),
        shape_(shape),
        demand_(sched::demand_of(shape, ctx.rt.views->partitions.at(partition.id.value()))),
        exclusive_(shape.exclusive || partition.declared->exclusive_nodes),
        plan_(std::move(plan)) {}

  // The bill of the job if all nodes are like this one.
  [[nodiscard]] Bill bill_of_kind(NodeId id) const {
    const std::uint32_t tasks = (demand_.tasks + demand_.min_nodes - 1) / demand_.min_nodes;
    Bill bill = bill_on({id}, {tasks});
    for (BillLine& line : bill.lines) line.amount *= demand_.min_nodes;
    return bill;
  }

  // Calls f(bill, node) for each kind of node that the job may get, until f returns true.
  template <class F>
  void each_kind(F&& f) const {
    std::vector<const sched::NodeChanged*> kinds;
    const auto alike = [](const sched::NodeChanged& a, const sched::NodeChanged& b) {
      return a.cpus.size() == b.cpus.size() && a.memory == b.memory && a.scratch == b.scratch &&
             a.gpu_model == b.gpu_model && a.gpus_when_well == b.gpus_when_well &&
             a.geometries.size() == b.geometries.size();
    };
    const bool same_everywhere =
        !exclusive_ && shape_.gpus_per_node == 0 && shape_.gpu_slice.empty();
    for (const NodeId id : partition_.nodes) {
      const sched::NodeChanged& view = ctx_.rt.views->nodes.at(id.value());
      if (!may_have(shape_, view)) continue;
      if (std::any_of(kinds.begin(), kinds.end(), [&](const auto* k) { return alike(*k, view); }))
        continue;
      kinds.push_back(&view);
      if (f(bill_of_kind(id), view) || same_everywhere) break;
    }
  }

  // The bill on the most expensive nodes that the job may get, if all its nodes are like these.
  [[nodiscard]] Bill dearest() const {
    Bill best;
    Money rate{-1};
    each_kind([&](Bill bill, const sched::NodeChanged&) {
      const Money its = rate_of(bill, prices_.at(ctx_.now), kFactorUnit);
      if (its <= rate) return false;
      rate = its;
      best = std::move(bill);
      return false;
    });
    return best;
  }

  // The cost of `limit` on the cheapest nodes that hold the job, at the lowest known prices. The
  // search stops at a cost of `enough` or less, because there may be many nodes.
  [[nodiscard]] std::optional<Money> least(Duration limit, Money enough) const {
    std::optional<Money> out;
    each_kind([&](const Bill& bill, const sched::NodeChanged& view) {
      if (view.gpus_when_well < shape_.gpus_per_node && shape_.gpu_slice.empty()) return false;
      each_price([&](const PriceBook& book, std::int64_t lowest, std::int64_t) {
        const __int128 all = static_cast<__int128>(rate_of(bill, &book, lowest).micros) * limit.us;
        const Money its{
            static_cast<std::int64_t>(std::min<__int128>(all / kMicrosecondsPerHour, INT64_MAX))};
        out = std::min(out.value_or(its), its);
      });
      return out && *out <= enough;
    });
    return out;
  }

  [[nodiscard]] Bill bill_on(const std::vector<NodeId>& nodes,
                             const std::vector<std::uint32_t>& tasks) const {
    std::vector<sched::NodeGrant> grants;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const sched::NodeChanged& view = ctx_.rt.views->nodes.at(nodes[i].value());
      const sched::Room need = sched::need_for(demand_, sched::room_of(view), tasks[i]);
      sched::NodeGrant& grant = grants.emplace_back();
      grant.node = nodes[i];
      grant.cpus.resize(static_cast<std::size_t>(std::max(need.cpus, 0)));
      grant.memory = need.memory;
      grant.scratch = need.scratch;
      grant.io = demand_.io;
      grant.net = demand_.net;
      if (shape_.gpu_share > 0 && shape_.gpu_slice.empty())
        grant.devices = {
            {0, std::nullopt, 0,
             thousandths_of_gpu(DevicePart{shape_.gpu_share}).narrow<std::uint16_t>()}};
      else if (shape_.gpu_slice.empty())
        grant.gpus = shape_.gpus_per_task > 0 ? static_cast<std::uint32_t>(need.gpus)
                                              : shape_.gpus_on(i, nodes.size());
      else
        grant.devices = slices_of(view, shape_);
      if (shape_.memory_per_gpu > 0) grant.memory = shape_.memory_per_gpu * grant.gpus;
    }
    const Holding holding = holding_of(ctx_.state, grants, exclusive_);
    Bill bill;
    bill.plan = plan_;
    for (const BillItem& item : holding.items) bill.lines.emplace_back().what = item;
    for (const auto& held : holding.held)
      for (const HeldPart& part : held) bill.lines[part.line].amount += part.amount;
    return bill;
  }

  [[nodiscard]] Money rate_of(const Bill& bill, const PriceBook* book,
                              std::int64_t hours_factor) const {
    Money sum;
    for (const BillLine& line : bill.lines) {
      Exact cost;
      sum += add_charge(cost, line.amount, line.what.unit,
                        price_of(book, line.what.item, line.what.unit), hours(1),
                        plan_factor(book, bill.plan), hours_factor);
    }
    return sum;
  }

  [[nodiscard]] Money per_hour(const Bill& bill) const {
    const Piece now = piece_at(prices_, prices_.zone_of(partition_.payer()), ctx_.now,
                               ctx_.now + microseconds(1));
    return rate_of(bill, now.book, now.hour_factor);
  }

  // Highest cost per hour at the known prices, over all hours of the day.
  [[nodiscard]] Money most(const Bill& bill) const {
    Money out;
    each_price([&](const PriceBook& book, std::int64_t, std::int64_t highest) {
      out = std::max(out, rate_of(bill, &book, highest));
    });
    return out;
  }

  [[nodiscard]] Money from(Bill bill, Instant start, Duration length) const {
    bill.since = start;
    return cost_until(prices_, prices_.zone_of(partition_.payer()), std::move(bill),
                      start + length);
  }

 private:
  // Calls f(book, lowest factor, highest factor) for the present price book and each later one.
  template <class F>
  void each_price(F&& f) const {
    const PriceBook* present = prices_.at(ctx_.now);
    for (const PriceTable::Book& b : prices_.books) {
      if (&b.book != present && b.from <= ctx_.now) continue;
      std::int64_t lowest = kFactorUnit, highest = kFactorUnit;
      for (const tenancy::PriceHours& h : b.book.hours) {
        lowest = std::min<std::int64_t>(lowest, h.factor);
        highest = std::max<std::int64_t>(highest, h.factor);
      }
      f(b.book, lowest, highest);
    }
  }

  const Context& ctx_;
  const PriceTable& prices_;
  const Partition& partition_;
  const JobShape& shape_;
  const sched::Demand demand_;
  const bool exclusive_;
  std::string plan_;
};

Estimator estimator_of(const Context& ctx, const Job& job) {
  const sched::ClassKey& key = class_of(ctx.state, job);
  return {ctx, ctx.state.partition(key.partition), key.shape, plan_of(ctx.state, job, ctx.now)};
}

}  // namespace

std::optional<Money> least_cost(const Context& ctx, const Job& job, Money enough) {
  const auto limit = time_limit_of(ctx.state, job);
  const PartitionId queue = class_of(ctx.state, job).partition;
  if (!limit || queue.value() >= ctx.rt.views->partitions.size()) return std::nullopt;
  if (ctx.state.partition(queue).declared == nullptr) return std::nullopt;
  return estimator_of(ctx, job).least(*limit, enough);
}

Bill bill_on_nodes_like(const Context& ctx, const Job& job, NodeId node) {
  return estimator_of(ctx, job).bill_of_kind(node);
}

std::optional<Estimate> estimate_cost(const Context& ctx, const Partition& partition,
                                      const JobSpec& spec, std::optional<Duration> limit,
                                      const Forecast* where) {
  if (ctx.state.ledger.prices.currency.empty()) return std::nullopt;
  const Estimator estimator(ctx, partition, spec.shape, plan_of_new(ctx, partition, spec));
  const Bill bill = estimator.dearest();
  Estimate out{estimator.per_hour(bill), std::nullopt, std::nullopt};
  if (!limit) return out;
  const std::uint64_t tasks = spec.array ? count_indexes(spec.array->ranges) : 1;
  // `most` is rounded up; it stays unset if it does not fit into 64 bits.
  const __int128 most =
      (static_cast<__int128>(estimator.most(bill).micros) * limit->us + kMicrosecondsPerHour - 1) /
      kMicrosecondsPerHour * static_cast<__int128>(tasks);
  if (most <= INT64_MAX) out.most = Money{static_cast<std::int64_t>(most)};
  if (where != nullptr && *limit <= kLongestWalk)
    out.expected =
        estimator.from(estimator.bill_on(where->nodes, where->tasks),
                       std::max(where->start, spec.begin.value_or(where->start)), *limit);
  return out;
}

}  // namespace gantry::core
