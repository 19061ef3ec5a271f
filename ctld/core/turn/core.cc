// Core: the step interface over State, handlers, settle and fold. See core.h.
#include "ctld/core/core.h"

#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/codec/codec.h"
#include "common/proto/attempt.h"
#include "common/proto/node_report.h"
#include "common/proto/session.h"
#include "config/config.h"
#include "config/options.h"
#include "ctld/core/access/check_texts.h"
#include "ctld/core/access/front_door.h"
#include "ctld/core/apply.h"
#include "ctld/core/apply/audit.h"
#include "ctld/core/apply/configure.h"
#include "ctld/core/apply/load.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_budget.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/event/journal.h"
#include "ctld/core/figures.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/likely.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/job_reader.h"
#include "ctld/core/money/budget_gate.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/neighbours/apart.h"
#include "ctld/core/node_links.h"
#include "ctld/core/notify/triggers.h"
#include "ctld/core/notify/usage_events.h"
#include "ctld/core/partition/in_force.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/recorder.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/spec_owner.h"
#include "ctld/core/state/state.h"
#include "ctld/core/subject.h"
#include "ctld/core/tenancy/admission.h"
#include "ctld/core/tenancy/memory.h"
#include "ctld/core/tenancy/tenants.h"
#include "ctld/core/turn/dispatch.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {

struct Core::Private {
  Private(const Config& c, MutableState& state)
      : config(c), loader(state), recorder(state, config, turn, last_seq) {}
  Config config;
  Runtime rt;
  Turn turn;
  Loader loader;
  EventSeq last_seq{};  // newest event, recorded or replayed
  JobId last_at_start{};
  Recorder recorder;
  Context context(MutableState& state, Instant now) {
    return {state, recorder, state.touched, rt, config, turn, std::max(now, state.last_time)};
  }
};

namespace {

void declare(Context& ctx) {
  const State& state = ctx.state;
  for (const NodeConfig& c : ctx.config.nodes)
    if (!state.node_ids.contains(c.name))
      ctx.record(
          event::NodeDeclared{NodeId(static_cast<std::uint32_t>(state.nodes.size())), c.name});
  for (const PartitionConfig& c : ctx.config.partitions)
    if (!state.partition_ids.contains(c.name))
      ctx.record(event::PartitionDeclared{
          PartitionId(static_cast<std::uint32_t>(state.partitions.size())), c.name});
}

void take(Context& ctx, ClientRequest&& request) {
  if (auto in = let_in(ctx.state, request.who, request.message); !in)
    return refuse(ctx, request, in.error());
  ClientMessage message = std::exchange(request.message, {});
  dispatch(ctx, request, message);
}

void take(Context& ctx, ConnectionClosed&& closed) {
  drop_waits(ctx, closed.connection);
}

// A node that was ordered to start a job with a higher id than the newest known one raises last_job
// (handle_node_register.cc). In total it may raise it only by a fixed number per start of the
// controller. Otherwise one node could repeat it until the table of jobs, which has a place for
// every 256 ids, takes all memory, now and after each restart.
void believe_ids(JobId last_at_start, FromNode& from) {
  auto* registration = from.message.get_if<proto::NodeRegister>();
  if (registration != nullptr &&
      registration->highest_job.value() > last_at_start.value() + proto::kMostIdsAhead)
    registration->highest_job = JobId{};
}

void take(Context& ctx, FromNode&& from) {
  const auto it = ctx.state.node_ids.find(from.node);
  if (it == ctx.state.node_ids.end()) {
    ++ctx.rt.stats.reports_ignored;
    return ctx.note(
        fmt::format("message of node {} ignored: it is not in this cluster", from.node));
  }
  const NodeId node = it->second;
  clean_texts(from.message);
  dispatch(ctx, node, from.message);
}

void take(Context& ctx, PlanReady&& ready) {
  apply_plan(ctx, std::move(ready.plan));
}

void take(Context& ctx, Tick&&) {
  run_timers(ctx);
}

void take(Context& ctx, Reconfigured&&) {
  pull_reconfigured(ctx);
  run_timers(ctx);
}

}  // namespace

Core::Core(const Config& config)
    : state_(std::make_unique<MutableState>()), p_(std::make_unique<Private>(config, *state_)) {}
Core::~Core() = default;

Result<void> Core::load_record(store::Table table, std::string_view key, std::string_view value) {
  return p_->loader.record(table, key, value);
}

Result<void> Core::load_spec(JobId job, std::string_view data) {
  return p_->loader.spec(job, data);
}

void Core::load_read(ReadPiece&& piece) {
  std::visit([&](auto&& one) { p_->loader.take(std::move(one)); }, std::move(piece));
}

Result<void> Core::replay(const store::JournalEntry& entry) {
  if (!p_->loader.finished())
    if (auto done = p_->loader.finish(); !done) return done;
  const auto event = decode_event(entry.data);
  if (!event)
    return fail(ErrorCode::malformed, fmt::format("event {} of the journal cannot be read: {}",
                                                  entry.seq.value(), event.error().message));
  if (p_->config.controller.usage_events.empty())
    apply(*state_, event->at, event->event);
  else
    apply_and_tell(*state_, entry.seq, event->at, event->event, p_->config.cluster, p_->turn.usage);
  state_->touched.clear();  // start() looks at every job and node
  p_->last_seq = entry.seq;
  return {};
}

Result<void> Core::start(Instant now) {
  TRY(sound(subjects()));
  if (!p_->loader.finished())
    if (auto done = p_->loader.finish(); !done) return done;
  GANTRY_ASSERT(!p_->rt.running, "a core is started once");
  p_->last_at_start = state_->last_job;
  p_->last_seq = std::max(p_->last_seq, p_->loader.applied());
  Context ctx = p_->context(*state_, now);
  ctx.record(event::ControllerStarted{Epoch(state_->epoch.value() + 1)});
  if (state_->tenancy.half_life != p_->config.controller.fair_share_half_life)
    ctx.record(event::HalfLifeSet{p_->config.controller.fair_share_half_life});
  if (state_->budgets.kill_wait != p_->config.controller.kill_wait ||
      state_->budgets.start_timeout != p_->config.controller.start_timeout)
    ctx.record(
        event::OvertimeSet{p_->config.controller.kill_wait, p_->config.controller.start_timeout});
  declare(ctx);
  configure(*state_, p_->config);
  p_->recorder.set_partitions();
  p_->recorder.set_features();
  compile_tenancy(ctx);
  for (const std::string& one : unknown_in_lists(*state_, p_->config)) ctx.note(one);
  for (const std::string& one : said_beside_the_file(*state_)) ctx.note(one);
  ctx.rt.links->all.resize(state_->nodes.size());
  for (NodeLink& link : ctx.rt.links->all) link.last_seen = ctx.now;
  make_views(ctx);
  p_->rt.figures->config_values = describe(p_->config);
  p_->rt.figures->users_config_values = config::describe_for_users(p_->config);
  p_->rt.figures->started = ctx.now;
  for (const Subject* one : subjects())
    if (one->start != nullptr) one->start(ctx);
  for (const Node& node : state_->nodes) {
    ctx.touched.nodes.push_back(node.id);
    ctx.touched.trigger_nodes.push_back(node.id);
  }
  state_->jobs.walk(JobId{}, [&](const Job& job) {
    if (job.phase != Phase::ended) ctx.touched.jobs.push_back(job.id);
    return true;
  });
  settle(ctx);
  for (const Subject* one : subjects())
    if (one->started != nullptr) one->started(ctx);
  p_->turn.changes.clear();  // they are in full_view()
  p_->rt.running = true;
  return {};
}

void Core::step(Instant now, Input input) {
  GANTRY_ASSERT(p_->rt.running, "start() comes first");
  Context ctx = p_->context(*state_, now);
  if (auto* from = std::get_if<FromNode>(&input)) believe_ids(p_->last_at_start, *from);
  std::visit([&](auto&& i) { take(ctx, std::move(i)); }, std::move(input));
  settle(ctx);
}

void Core::note_call(std::string_view message, const std::string& user, Duration took) {
  constexpr std::size_t kMostCallers = 10'000;
  const auto add = [&](auto& to, std::string_view name) {
    auto it = to.find(name);
    if (it == to.end()) it = to.emplace(name, Calls{}).first;
    ++it->second.count;
    it->second.time = it->second.time + took;
  };
  add(p_->rt.figures->calls, message);
  auto& callers = p_->rt.figures->callers;
  if (callers.size() < kMostCallers || callers.contains(user)) add(callers, user);
}

Turn Core::take_turn() {
  Context ctx = p_->context(*state_, state_->last_time);
  Turn turn = std::move(p_->turn);
  p_->turn = Turn{};
  turn.wake = next_wake(ctx);
  return turn;
}

Result<void> Core::doubt_orders() {
  if (!p_->loader.finished())
    if (auto done = p_->loader.finish(); !done) return done;
  GANTRY_ASSERT(!p_->rt.running, "a core that runs knows what it has ordered");
  p_->last_seq = std::max(p_->last_seq, p_->loader.applied());
  core::doubt_orders(*state_);
  return {};
}

store::FoldBatch Core::take_fold() {
  GANTRY_ASSERT(p_->turn.append.empty(), "a fold comes between turns");
  return fold(*state_, p_->last_seq);
}

const State& Core::state() const {
  return *state_;
}
const Runtime& Core::runtime() const {
  return p_->rt;
}

Epoch Core::epoch() const {
  return state_->epoch;
}
Instant Core::last_time() const {
  return state_->last_time;
}

std::optional<std::string> Core::node_of_key(std::string_view z85) const {
  const auto it = state_->node_keys.find(std::string(z85));
  if (it == state_->node_keys.end()) return std::nullopt;
  return state_->node(it->second).name;
}

std::optional<std::string> Core::user_of_key(std::string_view hex) const {
  const auto it = state_->user_keys.find(std::string(hex));
  return it == state_->user_keys.end() ? std::nullopt : std::optional(it->second);
}

Result<Identity> Core::inside_identity(std::string_view node, const proto::AttemptKey& key) const {
  const Job* job = state_->jobs.find(key.job);
  const Node* from = state_->node_named(node);
  if (job != nullptr && from != nullptr && job->placed() && job->attempt == key.attempt)
    for (const NodeRun& run : job->active->nodes) {
      if (run.grant.node != from->id || run.state == RunState::released) continue;
      // Decodes only the owner, because this is asked for each message from inside a job.
      auto stored = codec::decode<SpecOwner>(spec_bytes(*state_, *job));
      GANTRY_ASSERT(stored.has_value(), "a spec that was read once");
      return Identity{std::move(stored->owner), proto::Role::user, key, {}, {}};
    }
  return fail(ErrorCode::permission_denied,
              fmt::format("job {} is not running on node {}", key.job.value(), node));
}

std::vector<sched::Change> Core::full_view() const {
  std::vector<sched::Change> all;
  full_view([&](std::vector<sched::Change> some) {
    for (sched::Change& change : some) {
      const auto* many = std::get_if<sched::JobsQueued>(&change);
      if (many == nullptr) {
        all.push_back(std::move(change));
        continue;
      }
      for (const sched::JobsQueued::Job& j : many->jobs)
        all.emplace_back(sched::JobQueued{j.job, many->key, j.priority, j.queued_since, j.startable,
                                          j.rank, j.share, j.raised, j.own_priority, j.namesake});
    }
  });
  return all;
}

void Core::full_view(const std::function<void(std::vector<sched::Change>)>& take) const {
  constexpr std::size_t kBatch = 4096;  // jobs in a batch
  std::vector<sched::Change> out;
  std::unordered_map<ClassId, std::size_t>
      places;  // by class, if it is in `out` already: its index there
  std::size_t jobs = 0;
  const Context ctx = p_->context(*state_, state_->last_time);
  tell_tenancy(ctx, out);
  out.emplace_back(apart_view(p_->rt));
  state_->jobs.walk(JobId{}, [&](const Job& job) {
    const bool waits = p_->rt.plan->marks.at(job.id).told.startable > 0;
    if (job.placed()) out.emplace_back(placed_view(*state_, job));
    if (waits) {
      const auto [place, made] = places.try_emplace(job.cls, out.size());
      if (made) out.emplace_back(sched::JobsQueued{class_of(*state_, job), {}});
      std::get<sched::JobsQueued>(out[place->second]).jobs.push_back(queued_facts(ctx, job));
    }
    jobs += waits || job.placed() ? 1 : 0;
    if (jobs < kBatch) return true;
    take(std::exchange(out, {}));
    places.clear();
    jobs = 0;
    return true;
  });
  take(std::move(out));
}

std::string Core::audit() const {
  if (std::string wrong = core::audit(*state_); !wrong.empty()) return wrong;
  std::vector<std::pair<std::uint32_t, sched::QuotaNeed>> uses;
  state_->jobs.walk(JobId{}, [&](const Job& job) {
    if (!job.placed()) return true;
    const auto node = quota_node_of(*state_, class_of(*state_, job).partition);
    for (const NodeRun& run : job.active->nodes)
      if (node && run.state != RunState::released)
        uses.emplace_back(*node, quota_need(*state_, run.grant));
    return true;
  });
  return p_->rt.tenancy->quota ? p_->rt.tenancy->quota->audit(uses) : std::string();
}

}  // namespace gantry::core
