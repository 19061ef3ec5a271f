#include "ctld/core/neighbours/apart.h"

#include <algorithm>

#include "common/proto/neighbours.h"
#include "common/text/hash.h"
#include "config/config.h"
#include "ctld/core/context.h"
#include "ctld/core/neighbours/memory.h"
#include "ctld/core/neighbours/neighbours.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMostPairs = 256;
constexpr std::uint32_t kSureEnough = 65;  // percent, as for throttling a job

ApartJobs jobs_like(const State& state, const Job& job) {
  return {state.names.text(job.user), state.names.text(job.name),
          state.partition(class_of(state, job).partition).payer()};
}

void tell(Context& ctx) {
  if (ctx.rt.running) ctx.turn.changes.emplace_back(apart_view(ctx.rt));
}

void remember(Context& ctx, const Job& a, const Job& b) {
  const std::uint32_t of_a = namesake_of(ctx.state, a), of_b = namesake_of(ctx.state, b);
  if (of_a == of_b) return;
  auto& pairs = ctx.rt.neighbours->apart;
  const Instant until = ctx.now + ctx.config.controller.keep_apart;
  const auto [pair, is_new] = pairs.try_emplace(std::minmax(of_a, of_b));
  pair->second.until = until;
  if (!is_new) return;
  pair->second.first = jobs_like(ctx.state, of_a < of_b ? a : b);
  pair->second.second = jobs_like(ctx.state, of_a < of_b ? b : a);
  if (pairs.size() > kMostPairs)
    pairs.erase(std::min_element(pairs.begin(), pairs.end(), [](const auto& x, const auto& y) {
      return x.second.until < y.second.until;
    }));
  tell(ctx);
}

}  // namespace

std::uint32_t namesake_of(const State& state, const Job& job) {
  const std::uint32_t user = fnv1a(state.names.text(job.user));
  const std::uint32_t hash = fnv1a(state.names.text(job.name), fnv1a("/", user)) >> 1;
  return std::max(hash, 1U);
}

void keep_apart(Context& ctx, const proto::SharingFinding& f) {
  if (f.cause != proto::SharingCause::neighbours || f.confidence < kSureEnough) return;
  if (ctx.config.controller.keep_apart == Duration{} || !f.victim) return;
  const Job* victim = active_job(ctx.state, *f.victim);
  for (const proto::SharingJob& one : f.by)
    if (const Job* job = active_job(ctx.state, one.key); victim != nullptr && job != nullptr)
      remember(ctx, *victim, *job);
}

void forget_apart(Context& ctx) {
  const bool off = ctx.config.controller.keep_apart == Duration{};
  const auto over = [&](const auto& pair) { return off || pair.second.until <= ctx.now; };
  if (std::erase_if(ctx.rt.neighbours->apart, over) > 0) tell(ctx);
}

sched::NamesakesApart apart_view(const Runtime& rt) {
  sched::NamesakesApart view;
  for (const auto& [pair, jobs] : rt.neighbours->apart) view.pairs.push_back(pair);
  return view;
}

std::vector<proto::ApartRow> apart_rows(const Context& ctx, const Job& job, bool sees_all) {
  std::vector<proto::ApartRow> out;
  const std::uint32_t own = namesake_of(ctx.state, job);
  const ApartJobs self = jobs_like(ctx.state, job);
  for (const auto& [pair, apart] : ctx.rt.neighbours->apart) {
    if (pair.first != own && pair.second != own) continue;
    const ApartJobs& other = pair.first == own ? apart.second : apart.first;
    proto::ApartRow& row = out.emplace_back();
    row.until = apart.until;
    const bool same_tenant = !self.payer.empty() && self.payer == other.payer;
    if (!sees_all && !same_tenant && self.user != other.user) continue;
    row.user = other.user;
    row.name = other.name;
  }
  return out;
}

}  // namespace gantry::core
