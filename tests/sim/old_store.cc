// See old_store.h.
#include "tests/sim/old_store.h"

#include <csignal>

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/proto/cluster.h"
#include "common/proto/history.h"
#include "common/proto/job_change.h"
#include "common/proto/job_ref.h"
#include "common/proto/job_submit.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "common/proto/session.h"
#include "ctld/age/accept.h"
#include "ctld/age/newer.h"
#include "ctld/core/core.h"
#include "ctld/core/job/submit/blobs.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/change.h"
#include "ctld/sched/cycle/schedule.h"
#include "ctld/sched/policy.h"
#include "ctld/store/store.h"
#include "tests/sim/jobs.h"
#include "tests/sim/text.h"

namespace gantry::sim {
namespace {

Settings draw(Random& random) {
  Settings s = settings_of(random, {});
  s.faults = {};
  s.slow_start = s.failing_start = s.dies_at_start = s.late_plan = s.refused_start = 0;
  s.config.controller.lost_node_policy = LostNodePolicy::wait;
  s.plan_attempts = 100'000;
  s.plan_starts = 4096;
  return s;
}

}  // namespace

OldStore::OldStore(std::uint64_t seed, bool print)
    : trace_(seed, fmt::format("gantry_sim --seed {} --old-store yes --trace", seed), print),
      random_(seed),
      settings_(draw(random_)),
      queue_(kBegin),
      network_(queue_, random_, settings_.nodes, settings_.clients),
      truth_(queue_, trace_) {
  for (const NodeConfig& config : settings_.config.nodes) {
    nodes_.push_back(
        std::make_unique<Node>(queue_, random_, network_, truth_, trace_, settings_, config));
    nodes_.back()->to_controller = [this](const std::string& name, node::Report report) {
      take(name, std::move(report));
    };
  }
}

std::string OldStore::summary() const {
  return fmt::format("{} jobs, {} of them lost with the copy, {} attempts newer than it, {} lives",
                     given_.size(), lost_, newer_seen_, life_);
}

// ---- the controller, whose turns are those of ctld/server.cc

void OldStore::start() {
  disk_.store.restart();
  ++life_;
  refused_.clear();
  auto core = std::make_unique<core::Core>(settings_.config);
  store::LoadVisitor visitor;
  visitor.record = [&](store::Table table, std::string_view key, std::string_view value) {
    return core->load_record(table, key, value);
  };
  visitor.spec = [&](JobId job, std::string_view spec) { return core->load_spec(job, spec); };
  visitor.blob = [](const store::Digest&, std::size_t) { return Result<void>{}; };
  visitor.event = [&](EventSeq seq, std::string_view data) {
    return core->replay(store::JournalEntry{seq, Bytes(data)});
  };
  if (const auto done = disk_.store.load(visitor); !done) broken(done.error().message);
  const auto good =
      age::Gate::check(disk_.mark, core->epoch(), disk_.store.stats().last, "the store");
  if (!good) return stop(good.error().message);
  floor_ = core->last_time();
  if (const auto done = core->start(now()); !done) broken(done.error().message);
  core_ = std::move(core);
  trace_.line(queue_.now(), fmt::format("controller starts, epoch {}", core_->epoch().value()));
  replica_ = std::make_unique<sched::Replica>();
  for (const sched::Change& change : core_->full_view()) replica_->apply(change);
  age::Gate::Doors doors;
  doors.save = [this](const age::HighWater& mark) {
    disk_.mark = mark;
    return Result<void>{};
  };
  doors.order = [this](core::ClientRequest order) { core_->step(now(), std::move(order)); };
  doors.say = [this](LogLevel, const std::string& what) { trace_.line(queue_.now(), what); };
  gate_ = std::make_unique<age::Gate>(disk_.mark, disk_.strangers, nodes_.size(), "the store",
                                      std::move(doors));
  registered_.clear();
  armed_.reset();
  plan_wanted_ = false;
  gate_->hold_waiting(core_->state());
  stepped_ = true;
  turn();
  if (const auto done = gate_->started(core_->state(), disk_.store.stats().last, now()); !done)
    broken(done.error().message);
  fold();
  plan();
}

void OldStore::stop(std::string_view why) {
  trace_.line(queue_.now(), fmt::format("controller ends: {}", why));
  refused_ = why;
  core_.reset();
  replica_.reset();
  gate_.reset();
  ++life_;
}

void OldStore::take(const std::string& node, node::Report report) {
  if (!core_) return;
  trace_.line(queue_.now(), fmt::format("ctld <- {}: {}", node, text_of(report)));
  if (std::holds_alternative<proto::NodeRegister>(report)) registered_.insert(node);
  core::NodeMessage message = message_of(report);
  const auto admitted = gate_->admit(core_->state(), node, message);
  disk_.strangers = gate_->strangers();
  if (!admitted) return stop(admitted.error().message);
  if (*admitted) core_->step(now(), core::FromNode{node, std::move(message)});
  stepped_ = true;
  queue_.after(milliseconds(1), [this, life = life_] {
    if (core_ && life == life_) turn();
  });
}

void OldStore::turn() {
  if (!std::exchange(stepped_, false)) return;
  core::Turn turn = core_->take_turn();
  if (const auto done = disk_.store.append(turn.append); !done) broken(done.error().message);
  if (const auto done = gate_->turn_taken(core_->state()); !done) broken(done.error().message);
  for (const sched::Change& change : turn.changes) replica_->apply(change);
  if (const std::string wrong = core_->audit(); !wrong.empty()) broken("core: " + wrong);
  for (const core::Reply& reply : turn.replies) replied(reply.message);
  for (core::Order& order : turn.orders) {
    if (const auto done = core::fill(order, disk_.store); !done) broken(done.error().message);
    trace_.line(queue_.now(), fmt::format("ctld -> {}: {}", order.node, text_of(order.message)));
    if (const auto* launch = order.message.get_if<proto::Launch>()) {
      expect_twice(launch->key.job);
      told_.insert(launch->key.job);
    }
    network_.send(order.node, true, Direction::from_controller,
                  [this, name = order.node, m = order.message] {
                    for (auto& node : nodes_)
                      if (node->name() == name) node->deliver(order_of(m));
                  });
  }
  if (turn.schedule && !std::exchange(plan_wanted_, true))
    queue_.after(milliseconds(1), [this, life = life_] {
      if (core_ && life == life_) plan();
    });
  set_wake(turn.wake);
}

// It is not known that the store is old before the node that runs the job has registered. So a job
// that waits in the copy may start a second time on a node that registered earlier (decision 154).
void OldStore::expect_twice(JobId job) {
  if (!put_back_ || accepted_) return;
  for (const auto& [node, key] : truth_.alive())
    if (key.job == job && !registered_.contains(node) && newer_.contains({node, key}))
      return truth_.runs_anew(job);
}

void OldStore::plan() {
  plan_wanted_ = false;
  sched::Policy policy;
  policy.depth = settings_.config.controller.backfill_depth;
  core_->step(now(), core::PlanReady{sched::schedule(*replica_, now(), policy)});
  stepped_ = true;
  turn();
}

void OldStore::set_wake(std::optional<Instant> at) {
  if (!at || (armed_ && *armed_ <= *at && *armed_ > now())) return;
  armed_ = at;
  queue_.after(*at - now(), [this, life = life_, at = *at] {
    if (!core_ || life != life_ || armed_ != at) return;
    armed_.reset();
    core_->step(now(), core::Tick{});
    stepped_ = true;
    turn();
  });
}

void OldStore::fold() {
  if (!stepped_) {
    if (const auto done = disk_.store.fold(core_->take_fold()); !done) broken(done.error().message);
    (void)disk_.store.maintain();
    (void)gate_->note_events(disk_.store.stats().last, now());
  }
  queue_.after(seconds(1), [this, life = life_] {
    if (core_ && life == life_) fold();
  });
}

// ---- requests

void OldStore::ask(core::ClientMessage message) {
  if (!core_) return;
  core::ClientRequest request{core::ConnectionId{1}, next_request_++, {}, std::move(message)};
  request.who.role = proto::Role::admin;
  request.who.owner.user = "admin";
  request.who.owner.uid = Uid(10);
  request.who.owner.gid = Gid(10);
  core_->step(now(), std::move(request));
  stepped_ = true;
  turn();
}

// Nothing is submitted until enough nodes have registered, because before that the age of the store
// cannot be known.
void OldStore::submit() {
  if (!proven_) return;
  proto::SubmitJob m;
  m.request_id = fmt::format("r{}", next_request_);
  m.script = script_of(m.request_id);
  m.spec.name = m.request_id;
  m.spec.work_dir = "/home/sim";
  m.spec.requeue = false;  // a job that runs in the copy and is missing on its node has ended
  m.spec.hold = random_.chance(100);
  m.spec.time_limit =
      minutes(60);  // long enough that no job is being ended when the copy is restored
  m.spec.shape.memory_per_node = random_.between(1, 8) * (std::int64_t{128} << 20);
  ask(std::move(m));
}

void OldStore::replied(const core::ReplyMessage& reply) {
  if (const auto* error = reply.get_if<proto::ErrorReply>()) broken(error->message);
  const auto* made = reply.get_if<proto::SubmitReply>();
  if (made == nullptr) return;
  const bool again = std::find(given_.begin(), given_.end(), made->job) != given_.end();
  const bool told = told_.contains(made->job) && gate_->claims() == 0;
  if (again && (!put_back_ || accepted_ || told))
    broken(fmt::format("job id {} is given twice", made->job.value()));
  if (again) truth_.runs_anew(made->job);  // this is another job under the id of a lost one
  given_.push_back(made->job);
}

void OldStore::submit_now_and_then(Instant until) {
  queue_.after(random_.spread(seconds(15)), [this, until] {
    if (queue_.now() >= until) return;
    submit();
    submit_now_and_then(until);
  });
}

void OldStore::run_for(std::int64_t least, std::int64_t most) {
  queue_.run_until(queue_.now() + seconds(random_.between(least, most)));
}

// ---- the story

void OldStore::put_back() {
  if (core_) stop("killed");
  lost_ = given_.size() - in_copy_.size();
  // otherwise only data.mdb is replaced, beside the newest mark
  const bool whole = random_.chance(700);
  const age::HighWater mark = disk_.mark;
  disk_ = *copy_;
  if (!whole) disk_.mark = mark;
  trace_.line(queue_.now(), whole ? "the directory is put back" : "data.mdb is put back");
  put_back_ = true;
  proven_ = false;
  start();
  if (core_) {
    for (const auto& where : truth_.alive()) {
      const core::Node* node = core_->state().node_named(where.first);
      if (node == nullptr || !age::is_placed(core_->state(), *node, where.second))
        if (!truth_.killed(where.first, where.second)) newer_.insert(where);
    }
  }
  newer_seen_ = newer_.size();
  if (core_) {
    std::set<JobId> alive;
    for (const auto& where : truth_.alive()) alive.insert(where.second.job);
    core_->state().jobs.walk(JobId{}, [&](const core::Job& job) {
      if (job.phase == Phase::queued && !alive.contains(job.id)) truth_.runs_anew(job.id);
      return true;
    });
  }
  const Instant patience = queue_.now() + minutes(10);
  while (core_ && queue_.now() < patience) queue_.run_until(queue_.now() + seconds(1));
  if (core_) return check_unnoticed();
  if (refused_.find("--accept-old-store") == std::string::npos) broken("it stops: " + refused_);
}

// Jobs that ran since the copy and have ended are unknown, so they run again. Those that still run
// on a node that reports them must not start a second time.
void OldStore::check_unnoticed() {
  if (gate_->claims() > 1) broken("the controller goes on with a store that is proved to be old");
  proven_ = true;
  submit_now_and_then(queue_.now() + minutes(10));
  run_for(600, 900);
  for (const auto& [node, key] : newer_)
    if (truth_.killed(node, key))
      broken(fmt::format("job {} on {} is newer than the store and was killed", key.job.value(),
                         node));
}

void OldStore::accept() {
  const auto mark = age::accept_old_store(settings_.config, disk_.store, disk_.mark);
  if (!mark) broken(mark.error().message);
  disk_.mark = *mark;
  accepted_ = proven_ = true;
  start();
  if (!core_) broken("it does not start although its store was accepted: " + refused_);
  core_->state().jobs.walk(JobId{}, [&](const core::Job& job) {
    if (job.phase == Phase::queued && job.hold == core::Hold::none)
      broken(fmt::format("job {} waits in the accepted copy and is not held", job.id.value()));
    return true;
  });
}

// Does what docs/store.md tells an operator to do: looks whether a job runs before releasing it.
void OldStore::operate() {
  check_newer();
  queue_.after(seconds(30), [this] { operate(); });
  if (!core_) return;
  resume_nodes();
  if (!random_.chance(300)) return;
  std::vector<proto::JobRef> idle;
  core_->state().jobs.walk(JobId{}, [&](const core::Job& job) {
    bool lives = false;
    for (const auto& where : truth_.alive()) lives |= where.second.job == job.id;
    if (job.phase == Phase::queued && job.hold != core::Hold::none && !lives)
      idle.push_back({job.id, {}, {}});
    return true;
  });
  for (const proto::JobRef& ref : idle) truth_.runs_anew(ref.job);
  if (!idle.empty()) ask(proto::ReleaseJobs{idle});
}

// The network loses messages, so that some starts and ends take too long and their node is drained.
// Nodes that are drained for any other reason have to open by themselves.
void OldStore::resume_nodes() {
  std::vector<std::string> late;
  for (const core::Node& node : core_->state().nodes)
    if (node.intent != NodeIntent::open &&
        (node.reason.find("did not start within") != std::string::npos ||
         node.reason.find("does not end there") != std::string::npos))
      late.push_back(node.name);
  if (!late.empty()) ask(proto::UpdateNodes{late, proto::NodeAction::resume, {}});
}

// Checks that jobs newer than the copy end by themselves.
void OldStore::check_newer() {
  for (auto it = newer_.begin(); it != newer_.end();) {
    const auto& [node, key] = *it;
    if (truth_.killed(node, key))
      broken(fmt::format("job {} on {} is newer than the store and was killed", key.job.value(),
                         node));
    if (truth_.live(node, key)) {
      ++it;
      continue;
    }
    const node::Exit* exit = truth_.exit_of(node, key);
    if (exit == nullptr || exit->status.signal == SIGTERM)
      broken(
          fmt::format("job {} on {} is newer than the store and was ended", key.job.value(), node));
    it = newer_.erase(it);
  }
}

bool OldStore::all_ended() const {
  if (!core_) return false;
  bool all = true;
  core_->state().jobs.walk(JobId{}, [&](const core::Job& job) {
    all &= job.phase == Phase::ended;
    return all;
  });
  return all;
}

void OldStore::run() {
  start();
  for (auto& node : nodes_)
    queue_.after(random_.spread(seconds(10)), [n = node.get()] { n->power_on(); });
  submit_now_and_then(queue_.now() + minutes(40));
  run_for(60, 600);
  copy_ = disk_;
  in_copy_ = {given_.begin(), given_.end()};
  if (random_.chance(500)) {  // one more controller runs, which the copy does not know
    run_for(1, 200);
    stop("killed");
    start();
  }
  run_for(30, 1200);
  put_back();
  if (core_) return;
  run_for(10, 300);
  check_newer();
  accept();
  operate();
  submit();
  submit_now_and_then(queue_.now() + minutes(10));
  for (int n = 0; n < 2; ++n) {
    run_for(60, 400);
    if (!random_.chance(500)) continue;
    stop("killed");
    start();
    if (!core_) broken("it does not start again: " + refused_);
  }
  const Instant patience = queue_.now() + hours(24);
  queue_.run_until(queue_.now() + minutes(15));
  while (queue_.now() < patience && (!all_ended() || truth_.live_count() != 0))
    queue_.run_until(queue_.now() + seconds(30));
  queue_.run_until(queue_.now() + minutes(3));
  check_newer();
  check_end();
}

void OldStore::check_end() {
  if (!all_ended()) broken("jobs do not end");
  if (!newer_.empty() || truth_.live_count() != 0) broken("something runs on");
  for (const auto& node : nodes_)
    if (node->machine().records() != 0 || node->attempts() != 0)
      broken(fmt::format("{} keeps {} records", node->name(), node->machine().records()));
  for (const core::Node& node : core_->state().nodes)
    if (node.intent != NodeIntent::open || !node.jobs.empty() || node.cpus_taken != 0)
      broken(fmt::format("{} is not open and free: {}", node.name, node.reason));
  queue_.run_until(queue_.now() + settings_.config.controller.min_job_age + minutes(2));
  std::map<JobId, int> rows;
  store::HistoryScan scan;
  for (;;) {
    const auto page = disk_.store.read_history(scan);
    if (!page) broken(page.error().message);
    for (const store::HistoryEntry& entry : page->entries)
      if (const auto row = codec::decode<proto::HistoryRow>(entry.data); row && !row->requeued)
        ++rows[entry.job];
    if (!page->resume) break;
    scan.resume = page->resume;
  }
  for (std::size_t i = 0; i < given_.size(); ++i) {
    const bool lost = i >= in_copy_.size() && i < in_copy_.size() + lost_;
    if (rows[given_[i]] != (lost ? 0 : 1))
      broken(fmt::format("job {} is {} times in the history", given_[i].value(), rows[given_[i]]));
  }
}

}  // namespace gantry::sim
