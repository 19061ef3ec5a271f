#include "ctld/core/resources/uses.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/tenancy/use_limits.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"
#include "ctld/core/state/use_state.h"
#include "ctld/sched/tenant/decay.h"

namespace gantry::core {
namespace {

bool is_zero(const HeldTres& held) {
  return held == HeldTres{};
}

void count_placed(const State& state, const Job& job, bool add, UseSum& sum) {
  const auto end = limit_end(state, job);
  const std::int64_t sign = add ? 1 : -1;
  for (const auto& [name, amount] : job.active->use.tres) {
    HeldTres& held = sum.held[name];
    const __int128 rate = static_cast<__int128>(sign) * amount * job.active->use.factor;
    held.amount += sign * amount;
    if (end) {
      held.rate += rate;
      held.rate_end += rate * (end->us / 1'000'000);
    }
    if (is_zero(held)) sum.held.erase(name);
  }
  for (const NodeRun& run : job.active->nodes) {
    if (run.given_back) continue;
    std::uint32_t& jobs = sum.nodes[run.grant.node];
    jobs += static_cast<std::uint32_t>(sign);
    if (jobs == 0) sum.nodes.erase(run.grant.node);
  }
}

void count_in(const State& state, const Job& job, bool add, UseTable& uses) {
  if (job.phase == Phase::ended) return;
  const std::uint64_t sign = add ? 1 : std::uint64_t(-1);
  const std::uint64_t jobs = job.is_array() ? job.tasks->pending.count() : 1;
  if (jobs == 0) return;
  const auto at = uses.try_emplace(use_key_of(state, job)).first;
  UseSum& sum = at->second;
  sum.submitted += sign * jobs;
  if (job.placed()) {
    sum.running += sign;
    count_placed(state, job, add, sum);
  }
  if (sum.submitted == 0) {
    GANTRY_ASSERT(sum.running == 0 && sum.held.empty() && sum.nodes.empty(),
                  "no job holds nothing");
    uses.erase(at);
  }
}

bool decays(const State& state, const std::string& qos) {
  const auto it = state.tenancy.documents.find({tenancy::PriorityClass::kKind, qos});
  if (it == state.tenancy.documents.end()) return true;
  const auto& limits = std::get<tenancy::PriorityClass>(it->second).limits;
  const auto flags = limits.find("Flags");
  return flags == limits.end() || flags->second.find("NoDecay") == std::string::npos;
}

Duration half_life_of(const State& state, const std::string& key) {
  const bool qos = key.starts_with("qos/");
  return qos && !decays(state, key.substr(4)) ? Duration{} : state.tenancy.half_life;
}

// The records of use that the job charges: its QOS, its partition's QOS, and its user with all
// accounts above.
std::vector<std::string> records_of(const State& state, const Job& job) {
  std::vector<std::string> out;
  const UseOfJob& use = job.active->use;
  const auto& names = state.tenancy.class_names;
  if (use.qos < names.size()) out.push_back(key_of_use(names[use.qos]));
  if (use.partition_qos && *use.partition_qos != use.qos && *use.partition_qos < names.size())
    out.push_back(key_of_use(names[*use.partition_qos]));
  for (std::optional<sched::ShareId> at = job.share; at;
       at = state.tenancy.shares[at->value()].parent)
    out.push_back(key_of_use(*at));
  return out;
}

void change_use(MutableState& state, const Job& job, Instant at, bool start) {
  if (job.active->use.tres.empty()) return;  // placed by a release that did not count use
  const double factor =
      static_cast<double>(job.active->use.factor) / static_cast<double>(tenancy::kUsageFactorUnit);
  const double sign = start ? 1 : -1;
  for (std::string& key : records_of(state, job)) {
    const Duration half_life = half_life_of(state, key);
    UseRecord& record = state.used[key];
    record.running += start ? 1 : std::uint32_t(-1);
    const auto add = [&](sched::DecayedUsage& usage, double rate) {
      sched::advance(usage, at, half_life);
      // With no attempt left the rate is set to exactly zero, because floating-point sums do not
      // cancel out.
      usage.rate = record.running == 0 ? 0 : usage.rate + sign * rate * factor;
    };
    for (const auto& [name, amount] : job.active->use.tres)
      add(record.tres[name], static_cast<double>(amount));
    add(record.wall, 1);
    state.unfolded.used.push_back(std::move(key));
  }
}

}  // namespace

UseKey use_key_of(const State& state, const Job& job) {
  const sched::ClassKey& key = class_of(state, job);
  return {key.priority_class, key.partition, job.share, job.uid};
}

void count_use(MutableState& state, const Job& job, bool add) {
  count_in(state, job, add, state.uses);
}

void start_use(MutableState& state, const Job& job, Instant at) {
  change_use(state, job, at, true);
  state.touched.uses = true;
}

void end_use(MutableState& state, const Job& job, Instant at) {
  change_use(state, job, at, false);
  state.touched.uses = true;
}

void reset_use(MutableState& state, const std::string& key, Instant at) {
  const auto it = state.used.find(key);
  if (it == state.used.end()) return;
  const auto reset = [&](sched::DecayedUsage& usage) {
    usage.amount = 0;
    usage.at = at;
  };
  for (auto& [name, usage] : it->second.tres) reset(usage);
  reset(it->second.wall);
  state.unfolded.used.push_back(key);
  state.touched.uses = true;
}

std::string key_of_use(std::string_view qos) {
  return fmt::format("qos/{}", qos);
}

std::string key_of_use(sched::ShareId share) {
  return fmt::format("share/{}", share.value());
}

double used_seconds(const State& state, const std::string& key, const std::string& tres,
                    Instant now) {
  const auto it = state.used.find(key);
  if (it == state.used.end()) return 0;
  const sched::DecayedUsage* usage = &it->second.wall;
  if (!tres.empty()) {
    const auto one = it->second.tres.find(tres);
    if (one == it->second.tres.end()) return 0;
    usage = &one->second;
  }
  return sched::amount_at(*usage, now, half_life_of(state, key));
}

std::string audit_uses(const State& state) {
  UseTable counted;
  state.jobs.walk(JobId{}, [&](const Job& job) {
    count_in(state, job, true, counted);
    return true;
  });
  if (counted != state.uses) return "what jobs count for limits of use is wrong";
  return {};
}

}  // namespace gantry::core
