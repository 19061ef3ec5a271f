#include "ctld/core/job/holders.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/job/verdict_text.h"
#include "common/text/text.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMostNamed =
    4;  // jobs or nodes of one kind that are named; the rest is counted

// Appends "and N more" when not everything was named.
void say_rest(std::size_t all, std::string_view what, std::vector<std::string>& out) {
  if (all > kMostNamed)
    out.push_back(
        fmt::format("and {} more", counted(static_cast<std::int64_t>(all - kMostNamed), what)));
}

bool in_service(const Node& node) {
  return node.health == NodeHealth::up && node.intent == NodeIntent::open;
}

}  // namespace

bool Holders::sees(const Job& job) const {
  return sight_ == nullptr || sight_->jobs().may(May::see, ctx_.state, job);
}

// "job 12 of ann (train)"; "a job of others" if the asker may not see it.
std::string Holders::name_of(const Job& job) const {
  if (!sees(job)) return "a job of others";
  return fmt::format("job {} of {} ({})", display_id(ctx_.state, job),
                     ctx_.state.names.text(job.user), ctx_.state.names.text(job.name));
}

// "runs until T at the latest", "waits itself"
std::string Holders::state_of(const Job& job) const {
  if (job.phase == Phase::queued) {
    if (job.hold != Hold::none) return "is held: it starts when it is released";
    const auto it = ctx_.rt.plan->expected.find(job.id);
    return it == ctx_.rt.plan->expected.end()
               ? "waits itself"
               : "waits itself, and starts by " + format_time(it->second.start);
  }
  if (job.phase == Phase::ended) return "has ended";
  if (job.phase == Phase::finishing) return "is ending now";
  if (job.active && job.active->suspended) return "is suspended by an operator";
  const auto end = limit_end(ctx_.state, job);
  if (!end) return "runs without a time limit";
  return *end > ctx_.now ? fmt::format("runs until {} at the latest", format_time(*end))
                         : std::string("is at the end of its time");
}

void Holders::say_singleton(std::vector<std::string>& out) const {
  const auto it = ctx_.state.same_name.find(name_key(job_.uid, job_.name));
  if (it == ctx_.state.same_name.end()) return;
  std::size_t count = 0;
  for (const JobId id : it->second.ids()) {
    if (id >= job_.id) break;
    const Job* other = ctx_.state.jobs.find(id);
    if (other == nullptr || other->phase == Phase::ended || other->name != job_.name) continue;
    if (count++ < kMostNamed)
      out.push_back(fmt::format("{} has the same name and {}", name_of(*other), state_of(*other)));
  }
  say_rest(count, "job", out);
}

void Holders::say_dependencies(std::vector<std::string>& out) const {
  if (!job_.dependencies) return;
  std::size_t count = 0;
  for (const DependencyState& d : job_.dependencies->list) {
    if (d.status != DependencyStatus::open) continue;
    if (d.what.kind == DependencyKind::singleton) {
      say_singleton(out);
      continue;
    }
    const Job* other = ctx_.state.jobs.find(d.what.job);
    if (other == nullptr || other->phase == Phase::ended) continue;
    if (count++ < kMostNamed)
      out.push_back(fmt::format("{} {}", name_of(*other), state_of(*other)));
  }
  say_rest(count, "job", out);
}

void Holders::say_license(const std::string& name, std::vector<std::string>& out) const {
  std::size_t count = 0;
  for (const JobId id : jobs_on_nodes(ctx_.state)) {
    const Job& other = ctx_.state.jobs.at(id);
    for (const GresCount& g : class_of(ctx_.state, other).shape.licenses)
      if (g.name == name && count++ < kMostNamed)
        out.push_back(
            fmt::format("{} has {} of {} and {}", name_of(other), g.count, name, state_of(other)));
  }
  say_rest(count, "job", out);
}

// "node3 is drained since T by root: new memory; `gctl resume node3` puts it back"
std::string Holders::trouble_of(const Node& node) const {
  const std::string since = node.since ? " since " + format_time(*node.since) : std::string();
  const std::string why = node.reason.empty() ? std::string() : ": " + node.reason;
  if (node.health == NodeHealth::lost)
    return fmt::format("{} does not answer{}; it is used again when it does", node.name, since);
  if (node.intent == NodeIntent::open)
    return fmt::format("{} is down{}{}; it is used again when its daemon runs", node.name, since,
                       why);
  const std::string by = node.reason_by.empty() ? std::string() : " by " + node.reason_by;
  return fmt::format("{} is {}{}{}{}; `gctl resume {}` puts it back", node.name,
                     node.intent == NodeIntent::drain ? "drained" : "closed", since, by, why,
                     node.name);
}

void Holders::say_named_nodes(std::vector<std::string>& out) const {
  const auto& names = class_of(ctx_.state, job_).shape.required_nodes;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) {
    const Node* node =
        sight_ == nullptr ? ctx_.state.node_named(names[i]) : sight_->node_named(names[i]);
    if (node == nullptr) continue;
    if (!in_service(*node)) {
      out.push_back(trouble_of(*node));
      continue;
    }
    for (std::size_t j = 0; j < std::min(node->jobs.size(), kMostNamed); ++j) {
      const Job& other = ctx_.state.jobs.at(node->jobs[j]);
      out.push_back(fmt::format("on {}, {} {}", node->name, name_of(other), state_of(other)));
    }
    say_rest(node->jobs.size(), "job", out);
  }
  say_rest(names.size(), "node", out);
}

void Holders::say_lost_nodes(std::vector<std::string>& out) const {
  const Partition& partition = ctx_.state.partition(class_of(ctx_.state, job_).partition);
  std::size_t count = 0;
  for (const NodeId id : partition.nodes) {
    const Node& node = ctx_.state.node(id);
    if (in_service(node) || (sight_ != nullptr && !sight_->node(id))) continue;
    if (count++ < kMostNamed) out.push_back(trouble_of(node));
  }
  say_rest(count, "node", out);
}

}  // namespace gantry::core
