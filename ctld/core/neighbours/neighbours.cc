#include "ctld/core/neighbours/neighbours.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/proto/attempt.h"
#include "common/proto/job_ref.h"
#include "common/proto/neighbours.h"
#include "common/proto/node_order.h"
#include "common/text/printable.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/select.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/neighbours/apart.h"
#include "ctld/core/neighbours/subject.h"
#include "ctld/core/node_links.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMostFindings = 128, kMostHolds = 128, kMostBy = 16, kMostDevice = 64;
constexpr Duration kTellAgain = minutes(10);
constexpr std::uint32_t kSureEnoughToTell = 50;  // percent

// Keeps only what a node reports of its own jobs, as with reports about their GPUs.
proto::NodeSharing of_own_jobs(const Node& node, proto::NodeSharing said) {
  const auto is_here = [&](const proto::AttemptKey& key) {
    return std::binary_search(node.jobs.begin(), node.jobs.end(), key.job);
  };
  const auto name = [](std::string& device) {
    device = printable(std::string_view(device).substr(0, kMostDevice));
  };
  if (said.findings.size() > kMostFindings) said.findings.resize(kMostFindings);
  if (said.holds.size() > kMostHolds) said.holds.resize(kMostHolds);
  for (proto::SharingFinding& f : said.findings) {
    std::erase_if(f.by, [&](const proto::SharingJob& one) { return !is_here(one.key); });
    if (f.by.size() > kMostBy) f.by.resize(kMostBy);
    name(f.device);
  }
  for (proto::SharingHold& hold : said.holds) name(hold.device);
  std::erase_if(said.findings,
                [&](const proto::SharingFinding& f) { return f.victim && !is_here(*f.victim); });
  std::erase_if(said.holds, [&](const proto::SharingHold& h) { return !is_here(h.key); });
  return said;
}

std::string thing(proto::SharedResource resource, const std::string& device) {
  const std::string name(enum_name(resource));
  return device.empty() ? name : name + " " + device;
}

// The jobs that are the cause, for an asker who sees only some of them.
std::string causes(const State& state, const proto::SharingFinding& f, const SeesJob& sees,
                   const Job* self) {
  std::string out;
  std::size_t others = 0;
  for (const proto::SharingJob& one : f.by) {
    const Job* job = active_job(state, one.key);
    if (job == nullptr) continue;
    if (job != self && !sees(*job)) {
      ++others;
      continue;
    }
    out += fmt::format("{}{} ({} % of it)", out.empty() ? "" : ", ",
                       job == self ? "this job" : "job " + display_id(state, *job), one.share);
  }
  if (others > 0)
    out += fmt::format(
        "{}{}", out.empty() ? "" : ", ",
        others == 1 ? "a job of another tenant" : fmt::format("{} jobs of other tenants", others));
  return out;
}

std::string because(const State& state, const proto::SharingFinding& f, const SeesJob& sees) {
  switch (f.cause) {
    case proto::SharingCause::neighbours: return "because of " + causes(state, f, sees, nullptr);
    case proto::SharingCause::itself: return "by its own doing";
    case proto::SharingCause::machine:
      return fmt::format("because of processes of no job ({} % of it)", f.machine);
    case proto::SharingCause::unknown: break;
  }
  return "and nobody is known to be the cause";
}

std::string of_victim(const State& state, const proto::SharingFinding& f, const SeesJob& sees) {
  const std::uint32_t waits = f.cause == proto::SharingCause::itself ? f.own : f.held_up;
  return fmt::format("it is held up on {} ({} %), {}; confidence {} %", thing(f.resource, f.device),
                     waits, because(state, f, sees), f.confidence);
}

std::string of_hold(const proto::SharingHold& hold) {
  if (hold.resource == proto::SharedResource::cpu)
    return fmt::format("it is held back on cpu, to the weight {}, for others' sake", hold.most);
  return fmt::format("it is held back on {}, to {} bytes per second, for others' sake",
                     thing(hold.resource, hold.device), hold.most);
}

bool is_cause(const proto::SharingFinding& f, const proto::AttemptKey& key) {
  return f.victim && f.cause == proto::SharingCause::neighbours &&
         std::any_of(f.by.begin(), f.by.end(),
                     [&](const proto::SharingJob& one) { return one.key == key; });
}

proto::NeighbourEvent event_of(const std::string& node, const proto::SharingFinding& f) {
  proto::NeighbourEvent e;
  e.node = node;
  e.since = f.since;
  e.ended = f.ended;
  e.resource = f.resource;
  e.device = f.device;
  e.cause = f.cause;
  e.confidence = f.confidence;
  e.level = f.level;
  return e;
}

// The jobs whose owners may read this job's name: those of its tenant, or else of its user.
SeesJob seen_from(const State& state, const Job& job) {
  return [&state, &job](const Job& other) {
    const std::string& mine = state.partition(class_of(state, job).partition).payer();
    const std::string& theirs = state.partition(class_of(state, other).partition).payer();
    return other.uid == job.uid || (!mine.empty() && mine == theirs);
  };
}

void tell(Context& ctx, NodeId node, const proto::AttemptKey& key, const std::string& text) {
  NodeLink& link = ctx.rt.links->all.at(node.value());
  const auto [last, is_new] = link.told_sharing.try_emplace(key, ctx.now);
  if (!is_new && ctx.now - last->second < kTellAgain) return;
  last->second = ctx.now;
  ctx.send(node, proto::TellAttempt{
                     ctx.stamp(node), key,
                     fmt::format("gantry: on node {}: {}", ctx.state.node(node).name, text)});
}

bool had(const std::vector<proto::SharingFinding>& before, const proto::SharingFinding& f) {
  return std::any_of(before.begin(), before.end(), [&](const proto::SharingFinding& one) {
    return one.number == f.number && one.since == f.since && one.cause == f.cause;
  });
}

bool had(const std::vector<proto::SharingHold>& before, const proto::SharingHold& h) {
  return std::any_of(before.begin(), before.end(), [&](const proto::SharingHold& one) {
    return one.key == h.key && one.since == h.since && one.resource == h.resource &&
           one.device == h.device && one.undone == h.undone;
  });
}

}  // namespace

const Job* active_job(const State& state, const proto::AttemptKey& key) {
  const Job* job = state.jobs.find(key.job);
  return job != nullptr && job->attempt == key.attempt && job->active ? job : nullptr;
}

void take_sharing(Context& ctx, NodeId id, proto::NodeSharing&& said) {
  NodeLink& link = ctx.rt.links->all.at(id.value());
  const std::string& node = ctx.state.node(id).name;
  const proto::NodeSharing before =
      std::exchange(link.sharing, of_own_jobs(ctx.state.node(id), std::move(said)));
  const SeesJob all = [](const Job&) { return true; };
  forget_apart(ctx);
  for (const proto::SharingFinding& f : link.sharing.findings) {
    if (f.ended) continue;
    keep_apart(ctx, f);
    if (had(before.findings, f)) continue;
    const Job* job = f.victim ? active_job(ctx.state, *f.victim) : nullptr;
    if (job == nullptr) continue;
    ctx.note(fmt::format("neighbours node={} job={}: {}", node, display_id(ctx.state, *job),
                         of_victim(ctx.state, f, all)));
    if (f.confidence >= kSureEnoughToTell)
      tell(ctx, id, *f.victim, of_victim(ctx.state, f, seen_from(ctx.state, *job)));
  }
  for (const proto::SharingHold& hold : link.sharing.holds) {
    const Job* job = active_job(ctx.state, hold.key);
    if (job == nullptr || had(before.holds, hold)) continue;
    const std::string text = hold.undone
                                 ? "it is held back no more on " + thing(hold.resource, hold.device)
                                 : of_hold(hold);
    ctx.note(fmt::format("neighbours node={} job={}: {}", node, display_id(ctx.state, *job), text));
    if (!hold.undone) tell(ctx, id, hold.key, text);
  }
  std::erase_if(link.told_sharing,
                [&](const auto& one) { return active_job(ctx.state, one.first) == nullptr; });
}

std::vector<proto::NeighbourEvent> neighbour_events(const Context& ctx, const Job& job,
                                                    const SeesJob& sees) {
  std::vector<proto::NeighbourEvent> out;
  if (!job.active) return out;
  const proto::AttemptKey key{job.id, job.attempt};
  for (const NodeRun& run : job.active->nodes) {
    const proto::NodeSharing& sharing = ctx.link(run.grant.node).sharing;
    const std::string& node = ctx.state.node(run.grant.node).name;
    for (const proto::SharingFinding& f : sharing.findings) {
      if (f.victim == key) {
        proto::NeighbourEvent& e = out.emplace_back(event_of(node, f));
        e.is_victim = true;
        e.held_up = f.held_up;
        e.own = f.own;
        e.text = of_victim(ctx.state, f, sees);
      } else if (is_cause(f, key)) {
        const Job* victim = active_job(ctx.state, *f.victim);
        const bool named = victim != nullptr && sees(*victim);
        out.emplace_back(event_of(node, f)).text =
            fmt::format("it holds up {} on {}; confidence {} %",
                        named ? "job " + display_id(ctx.state, *victim)
                              : std::string("a job of another tenant"),
                        thing(f.resource, f.device), f.confidence);
      }
    }
    for (const proto::SharingHold& hold : sharing.holds) {
      if (hold.key != key) continue;
      proto::NeighbourEvent& e = out.emplace_back();
      e.node = node;
      e.text = of_hold(hold);
      e.since = hold.since;
      e.ended = hold.undone;
      e.resource = hold.resource;
      e.device = hold.device;
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.since < b.since; });
  return out;
}

static void handle(Context& ctx, const ClientRequest& from, proto::ListNeighbours&& message) {
  std::vector<proto::JobRef> unknown;
  const auto found = resolve(ctx.state, from.who, {message.job}, unknown);
  if (found.empty())
    return refuse(
        ctx, from,
        {ErrorCode::not_found, fmt::format("there is no job {}", message.job.job.value())});
  const Job& job = ctx.state.jobs.at(found.front().job);
  if (!job.active)
    return refuse(ctx, from,
                  {ErrorCode::wrong_state, fmt::format("job {} does not run: it has no neighbours",
                                                       display_id(ctx.state, job))});
  const Reach reach(ctx.state, from.who);
  const SeesJob sees = [&](const Job& other) { return reach.may(May::see, ctx.state, other); };
  proto::NeighbourList reply;
  reply.job = display_id(ctx.state, job);
  reply.events = neighbour_events(ctx, job, sees);
  reply.apart = apart_rows(ctx, job, reach.everything());
  for (const NodeRun& run : job.active->nodes) {
    const Node& node = ctx.state.node(run.grant.node);
    for (const JobId id : node.jobs) {
      if (id == job.id) continue;
      const Job& other = ctx.state.jobs.at(id);
      proto::NeighbourRow& row = reply.neighbours.emplace_back();
      row.node = node.name;
      if (!sees(other)) continue;
      row.job = display_id(ctx.state, other);
      row.tenant = ctx.state.partition(class_of(ctx.state, other).partition).payer();
      row.user = ctx.state.names.text(other.user);
    }
  }
  ctx.turn.replies.push_back({from.connection, from.request, std::move(reply)});
}

const Subject kNeighboursMessages{.name = "neighbours",
                                  .handlers = kHandlers<proto::ListNeighbours>};

}  // namespace gantry::core
