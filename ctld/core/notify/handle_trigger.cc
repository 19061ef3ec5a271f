// SetTrigger, ListTriggers, ClearTriggers. Operators set triggers; with controller.user_triggers,
// owners do for their own jobs. All users see and clear their own triggers, operators those of
// everybody.
#include <algorithm>

#include <fmt/core.h>

#include "common/proto/triggers.h"
#include "common/text/text.h"
#include "config/config.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_trigger.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/rows.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/notify/subject.h"
#include "ctld/core/notify/triggers.h"
#include "ctld/core/request.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMostTriggers = 10'000;
constexpr Duration kMostOffset = seconds(32'000);  // seconds, as in Slurm

using proto::TriggerOn;

tl::unexpected<Error> bad_trigger(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

Result<void> check_program(const std::string& program) {
  if (auto ok = check_text("the program", program, kMaxPathBytes); !ok) return ok;
  if (!program.starts_with('/')) return bad_trigger("the program must be an absolute path");
  return {};
}

bool has(const proto::Trigger& t, TriggerOn on) {
  return std::find(t.on.begin(), t.on.end(), on) != t.on.end();
}

Result<void> check_events(const proto::Trigger& t) {
  if (t.on.empty())
    return bad_trigger(
        "a trigger waits for something: fini, time, down, up, drained, idle, reconfig");
  const bool of_job = has(t, TriggerOn::fini) || has(t, TriggerOn::time);
  const bool of_nodes_only =
      has(t, TriggerOn::drained) || has(t, TriggerOn::idle) || has(t, TriggerOn::reconfig);
  if (of_job && !t.job) return bad_trigger("fini and time are of a job: name one");
  if (of_job && about_nodes(t))
    return bad_trigger("a trigger is of a job or of nodes, not of both");
  if (t.job && !t.nodes.empty()) return bad_trigger("name a job or nodes, not both");
  if (has(t, TriggerOn::reconfig) && (t.on.size() > 1 || !t.nodes.empty()))
    return bad_trigger("reconfig is of the controller: it has a trigger of its own, without nodes");
  if (t.job && of_nodes_only) return bad_trigger("of a job's nodes there are down and up");
  if (t.offset > kMostOffset || t.offset < Duration{} - kMostOffset)
    return bad_trigger(fmt::format("the offset is at most {} s", kMostOffset.us / 1'000'000));
  if (t.offset < Duration{} && t.on != std::vector{TriggerOn::time})
    return bad_trigger("only before a job's time limit can a program run: the offset is below 0");
  return {};
}

// A program on the controller's machine may do more than a job in its container.
Result<void> check_who(const Context& ctx, const Identity& who) {
  if (ctx.config.controller.user_triggers || is_operator(ctx.state, who)) return {};
  return fail(ErrorCode::permission_denied,
              "only operators set triggers here (controller.user_triggers is off): their programs "
              "run on the controller's machine");
}

Result<void> check_job(const Context& ctx, const Identity& who, JobId id) {
  const Job* job = ctx.state.jobs.find(id);
  if (job == nullptr || !may(May::change, ctx.state, who, *job))
    return fail(ErrorCode::not_found, fmt::format("there is no job {}", id.value()));
  if (job->phase == Phase::ended)
    return fail(ErrorCode::wrong_state,
                fmt::format("job {} has ended", display_id(ctx.state, *job)));
  return {};
}

Result<void> check_nodes(const Context& ctx, const Identity& who, const proto::Trigger& t) {
  if (!is_operator(ctx.state, who))
    return fail(
        ErrorCode::permission_denied,
        fmt::format("{} is neither operator nor administrator of this cluster", who.owner.user));
  for (const std::string& name : t.nodes)
    if (ctx.state.node_named(name) == nullptr)
      return fail(ErrorCode::not_found, fmt::format("there is no node {}", name));
  return {};
}

Result<void> check_room(const Context& ctx, const Identity& who) {
  const auto& all = ctx.state.triggers.all;
  if (all.size() >= kMostTriggers)
    return fail(ErrorCode::limit_exceeded, fmt::format("there are {} triggers", kMostTriggers));
  const auto own = std::count_if(all.begin(), all.end(), [&](const auto& entry) {
    return entry.second.trigger.uid == who.owner.uid;
  });
  const std::uint32_t most = ctx.config.controller.max_user_triggers;
  if (own < most || is_operator(ctx.state, who)) return {};
  return fail(ErrorCode::limit_exceeded,
              fmt::format("{} has {} triggers; controller.max_user_triggers allows {}",
                          who.owner.user, own, most));
}

// A second trigger equal to one that the user has would only run its program twice.
Result<void> check_new(const Context& ctx, const Identity& who, const proto::Trigger& t) {
  for (const auto& [id, one] : ctx.state.triggers.all) {
    const proto::Trigger& has = one.trigger;
    if (has.uid == who.owner.uid && has.on == t.on && has.job == t.job && has.nodes == t.nodes &&
        has.offset == t.offset && has.program == t.program && has.permanent == t.permanent)
      return fail(ErrorCode::already_exists,
                  fmt::format("trigger {} is the same one already", id.value()));
  }
  return {};
}

std::vector<proto::Trigger> matching(const Context& ctx, const Identity& who,
                                     const proto::TriggerFilter& filter) {
  std::vector<proto::Trigger> out;
  const bool all = is_operator(ctx.state, who);
  for (const auto& [id, one] : ctx.state.triggers.all) {
    const proto::Trigger& t = one.trigger;
    if (!all && t.uid != who.owner.uid) continue;
    if (filter.id && *filter.id != id) continue;
    if (filter.job && filter.job != t.job) continue;
    if (filter.uid && *filter.uid != t.uid) continue;
    out.push_back(t);
  }
  return out;
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::SetTrigger&& message) {
  proto::Trigger& t = message.trigger;
  std::sort(t.on.begin(), t.on.end());
  t.on.erase(std::unique(t.on.begin(), t.on.end()), t.on.end());
  auto sound = check_events(t);
  if (sound) sound = check_program(t.program);
  if (sound) sound = check_who(ctx, from.who);
  if (sound) sound = t.job ? check_job(ctx, from.who, *t.job) : check_nodes(ctx, from.who, t);
  if (sound) sound = check_room(ctx, from.who);
  if (sound) sound = check_new(ctx, from.who, t);
  if (!sound) return refuse(ctx, from, sound.error());
  t.id = TriggerId(ctx.state.triggers.last.value() + 1);
  t.uid = from.who.owner.uid;
  t.user = from.who.owner.user;
  proto::TriggerList reply{{t}};
  if (t.job) ctx.touched.jobs.push_back(*t.job);  // the job's timer must also wait for this trigger
  const TriggerId id = t.id;
  ctx.record(event::TriggerSet{std::move(t)});
  watch_idle(ctx, ctx.state.triggers.all.at(id));
  ctx.reply(from, std::move(reply));
}

static void handle(Context& ctx, const ClientRequest& from, proto::ListTriggers&& message) {
  ctx.reply(from, proto::TriggerList{matching(ctx, from.who, message.filter)});
}

static void handle(Context& ctx, const ClientRequest& from, proto::ClearTriggers&& message) {
  const proto::TriggerFilter& filter = message.filter;
  if (!filter.id && !filter.job && !filter.uid)
    return refuse(ctx, from,
                  {ErrorCode::invalid_argument, "name a trigger, a job or a user to clear"});
  proto::TriggerList gone{matching(ctx, from.who, filter)};
  if (gone.triggers.empty())
    return refuse(ctx, from, {ErrorCode::not_found, "there is no such trigger"});
  for (const proto::Trigger& t : gone.triggers) ctx.record(event::TriggerCleared{t.id});
  ctx.reply(from, std::move(gone));
}

const Subject kTriggerMessages{
    .name = "trigger",
    .handlers = kHandlers<proto::SetTrigger, proto::ListTriggers, proto::ClearTriggers>};

}  // namespace gantry::core
