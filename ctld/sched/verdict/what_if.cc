#include "ctld/sched/verdict/what_if.h"

#include <algorithm>

#include <fmt/core.h>

namespace gantry::sched {
namespace {

constexpr std::uint64_t kAttempts = 20'000;  // placement attempts of one plan

JobQueued queued(const Replica& replica, std::uint32_t slot, const ClassKey& key) {
  const Waiting& w = replica.queue()[slot];
  const std::uint32_t share = replica.queue().line(w.line).share;
  return {w.job,
          key,
          w.priority,
          w.since,
          w.startable,
          w.rank,
          share == kNoShare ? std::nullopt : std::optional(ShareId{share})};
}

std::string limit_text(Duration limit) {
  const std::int64_t minutes = limit.seconds() / 60;
  if (minutes < 24 * 60) return fmt::format("{}:{:02}:00", minutes / 60, minutes % 60);
  return fmt::format("{}-{:02}:{:02}:00", minutes / (24 * 60), minutes / 60 % 24, minutes % 60);
}

// The longest of the usual time limits that is at most `most`; zero if there is none. Advice to ask
// for 37 minutes would look odd.
Duration usual_limit(Duration most) {
  constexpr std::int64_t kUsual[] = {1,   2,   5,   10,  15,  20,   30,   60,   90,    120,
                                     180, 240, 360, 480, 720, 1440, 2880, 4320, 10080, 20160};
  std::int64_t found = 0;
  for (const std::int64_t m : kUsual)
    if (minutes(m) <= most) found = m;
  return minutes(found);
}

void shorter(const ClassKey& key, std::vector<Variant>& out) {
  if (key.time_min) return;  // every plan tries a shorter limit already
  Duration last{};
  const auto add = [&](Duration limit) {
    limit = usual_limit(limit);
    if (limit < minutes(1) || limit == last) return;
    if (key.time_limit && limit >= *key.time_limit) return;
    last = limit;
    Variant v{key, {}, fmt::format("--time={}", limit_text(limit))};
    v.key.time_limit = limit;
    v.change = fmt::format("a time limit of {} instead of {}", limit_text(limit),
                           key.time_limit ? limit_text(*key.time_limit) : "none");
    out.push_back(std::move(v));
  };
  if (!key.time_limit) {
    add(hours(24));
    add(hours(1));
    return;
  }
  add(Duration{key.time_limit->us / 2});
  add(Duration{key.time_limit->us / 8});
}

void smaller(const ClassKey& key, std::vector<Variant>& out) {
  const JobShape& s = key.shape;
  if (s.gpus_per_node > 1 && s.gpus_in_all == 0) {
    Variant v{key, {}, {}};
    v.key.shape.gpus_per_node = s.gpus_per_node / 2;
    v.change =
        fmt::format("{} GPUs on each node instead of {}", s.gpus_per_node / 2, s.gpus_per_node);
    v.options = fmt::format("--gpus-per-node={}", s.gpus_per_node / 2);
    out.push_back(std::move(v));
  }
  if (s.min_nodes > 1 && s.min_nodes > s.required_nodes.size() && s.gpus_in_all == 0) {
    Variant v{key, {}, {}};
    JobShape& half = v.key.shape;
    half.min_nodes = std::max<std::uint32_t>(s.min_nodes / 2,
                                             static_cast<std::uint32_t>(s.required_nodes.size()));
    half.max_nodes = half.min_nodes;
    half.tasks = std::max<std::uint32_t>(
        half.min_nodes,
        static_cast<std::uint32_t>(std::uint64_t{s.tasks} * half.min_nodes / s.min_nodes));
    v.change = fmt::format("{} nodes instead of {}", half.min_nodes, s.min_nodes);
    v.options = fmt::format("--nodes={}", half.min_nodes);
    if (half.tasks != half.min_nodes) v.options += fmt::format(" --ntasks={}", half.tasks);
    out.push_back(std::move(v));
  } else if (s.cpus_per_task > 1) {
    Variant v{key, {}, fmt::format("--cpus-per-task={}", s.cpus_per_task / 2)};
    v.key.shape.cpus_per_task = s.cpus_per_task / 2;
    v.change =
        fmt::format("{} cores for each task instead of {}", s.cpus_per_task / 2, s.cpus_per_task);
    out.push_back(std::move(v));
  }
}

void less_particular(const ClassKey& key, std::vector<Variant>& out) {
  const JobShape& s = key.shape;
  if (!s.gpu_models.empty()) {
    Variant v{key, "any GPU model", "without --gpu-model"};
    v.key.shape.gpu_models.clear();
    out.push_back(std::move(v));
  }
  if (s.exclusive) {
    Variant v{key, "nodes shared with other jobs", "without --exclusive"};
    v.key.shape.exclusive = false;
    out.push_back(std::move(v));
  }
  if (s.topology == TopologyWish::required) {
    Variant v{key, fmt::format("nodes in more than one {}", s.topology_level),
              fmt::format("--topology=preferred:{}", s.topology_level)};
    v.key.shape.topology = TopologyWish::preferred;
    out.push_back(std::move(v));
  }
  if (!key.reservation.empty()) {
    Variant v{key, "outside of its reservation", "without --reservation"};
    v.key.reservation.clear();
    out.push_back(std::move(v));
  }
}

}  // namespace

std::optional<ClassKey> key_of(const Replica& replica, JobId job) {
  const auto slot = replica.queue().find(job);
  if (!slot) return std::nullopt;
  const Line& line = replica.queue().line(replica.queue()[*slot].line);
  return replica.queue().job_class(line.class_index).key;
}

bool is_worth_it(Instant now, const std::optional<Instant>& without, Instant with) {
  if (!without) return true;
  const Duration wait = *without - now, gained = *without - with;
  return gained >= minutes(1) && gained.us >= wait.us / 10;
}

std::vector<Variant> variants_of(const ClassKey& key) {
  std::vector<Variant> out;
  if (key.het) return out;  // a component starts with the others, whatever its own request is
  smaller(key, out);
  shorter(key, out);
  less_particular(key, out);
  if (out.size() > kMostVariants) out.resize(kMostVariants);
  return out;
}

std::optional<Instant> start_if(Replica& replica, Instant now, const Policy& policy, JobId job,
                                const ClassKey& key) {
  const auto slot = replica.queue().find(job);
  const auto own = key_of(replica, job);
  if (!slot || !own) return std::nullopt;
  const JobQueued as_it_is = queued(replica, *slot, *own);
  const std::vector<Reservation> reservations = replica.reservations();
  const std::vector<MigKept> slices = replica.kept_slices();
  Policy mine = policy;
  mine.preemption = false;
  mine.attempts = std::min(mine.attempts, kAttempts);
  mine.estimates = kJobsEstimated;
  if (key != *own) {  // its reservation was made for another request
    std::vector<Reservation> others = reservations;
    std::erase_if(others, [&](const Reservation& p) { return p.job == job; });
    replica.set_reservations(std::move(others));
    replica.apply(queued(replica, *slot, key));
  }
  const Plan plan = schedule(replica, now, mine);
  if (key != *own) replica.apply(as_it_is);
  replica.set_reservations(reservations);
  replica.keep_slices(slices);
  for (const Start& start : plan.starts)
    if (start.job == job) return now;
  for (const Expected& expected : plan.expected)
    if (expected.job == job) return expected.start;
  return std::nullopt;
}

}  // namespace gantry::sched
