// See controller.h.
#include "tests/sim/controller.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/proto/job_change.h"
#include "common/proto/job_query.h"
#include "common/proto/job_submit.h"
#include "common/proto/session.h"
#include "ctld/core/apply/audit.h"
#include "ctld/core/core.h"
#include "ctld/core/job/submit/blobs.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/change.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/policy.h"
#include "ctld/store/store.h"
#include "tests/sim/text.h"

namespace gantry::sim {
namespace {

// Returns the first line in which two texts differ.
std::string difference(std::string_view a, std::string_view b) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i)
    if (a[i] == '\n') begin = i + 1;
  const auto line = [&](std::string_view text) {
    return std::string(text.substr(begin, text.find('\n', begin) - begin));
  };
  return fmt::format("\n    {}\n  instead of\n    {}", line(a), line(b));
}

}  // namespace

Controller::Controller(Queue& queue, Random& random, Network& network, Trace& trace, Ledger& ledger,
                       const Settings& settings)
    : queue_(queue),
      random_(random),
      network_(network),
      trace_(trace),
      ledger_(ledger),
      settings_(settings),
      store_(store::MemoryStore::Options{.keep_everything = true}) {}

// ---- starts and ends

std::unique_ptr<core::Core> Controller::load() {
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
  if (const auto done = store_.load(visitor); !done)
    broken("the store does not load: " + done.error().message);
  return core;
}

void Controller::start() {
  if (core_) return;
  store_.restart();
  ++life_;
  auto core = load();
  floor_ = core->last_time();
  clock_offset_ = random_.between(seconds(-20), seconds(20));
  if (const auto done = core->start(clock()); !done)
    broken("it does not start: " + done.error().message);
  check_replay(core.get());
  core_ = std::move(core);
  trace_.line(queue_.now(), fmt::format("controller starts, epoch {}", core_->epoch().value()));
  replica_ = std::make_unique<sched::Replica>();
  view_ = View{};
  core_->full_view([&](const std::vector<sched::Change>& some) {
    for (const sched::Change& change : some) {
      replica_->apply(change);
      view_.apply(change);
    }
  });
  armed_.reset();
  dies_after_.reset();
  plan_wanted_ = plan_again_ = handed_over_ = planned_ = false;
  looked_at_all_ = false;
  estimated_ = {};
  ledger_.controller_starts();
  stepped_ = true;
  end_of_turn();
  if (!core_) return;  // the disk is still full
  plan_soon();
  fold_later();
}

void Controller::crash(std::string_view why) {
  if (!core_) return;
  trace_.line(queue_.now(), fmt::format("controller ends: {}", why));
  ledger_.read(store_);
  core_.reset();
  replica_.reset();
  requests_.clear();
  connections_.clear();
  paused_until_.reset();
  postponed_.clear();
  ++life_;
  queue_.after(faults_ ? random_.spread(seconds(30)) : seconds(1), [this] { start(); });
}

void Controller::pause(Duration length) {
  if (!core_ || paused_until_) return;
  trace_.line(queue_.now(), fmt::format("controller stands still for {} s", length.seconds()));
  paused_until_ = queue_.now() + length;
  queue_.after(length, [this, life = life_, until = paused_until_] {
    if (life == life_ && paused_until_ == until) resume();
  });
}

// After the pause timers may be handled before the messages or after them.
void Controller::resume() {
  if (!paused_until_) return;
  trace_.line(queue_.now(), "controller goes on");
  paused_until_.reset();
  if (random_.chance(500)) take(core::Tick{});
  const std::uint64_t life = life_;
  for (auto& call : std::exchange(postponed_, {}))
    if (life == life_) call();
}

bool Controller::postponed(std::function<void()> call) {
  if (!paused_until_) return false;
  postponed_.push_back(std::move(call));
  return true;
}

void Controller::fill_disk() {
  store_.limit_space(store_.stats().used_bytes + random_.below(4096));
}

void Controller::calm() {
  faults_ = false;
  dies_after_.reset();
  resume();
  empty_disk();
}

core::ConnectionId Controller::connect(const std::string& client) {
  const core::ConnectionId id(next_connection_++);
  connections_[id] = client;
  return id;
}

// ---- turns

void Controller::take(core::Input input) {
  if (!core_) return;
  if (postponed([this, input] { take(input); })) return;
  if (const auto* request = std::get_if<core::ClientRequest>(&input)) {
    trace_.line(queue_.now(), fmt::format("ctld <- {} {}: {}", request->who.owner.user,
                                          request->request, text_of(request->message)));
    requests_.insert_or_assign({request->connection, request->request}, *request);
  } else if (const auto* from = std::get_if<core::FromNode>(&input)) {
    trace_.line(queue_.now(), fmt::format("ctld <- {}: {}", from->node, text_of(from->message)));
  }
  core_->step(clock(), std::move(input));
  if (stepped_) return;
  stepped_ = true;
  queue_.after(random_.between(microseconds(0), milliseconds(2)), [this, life = life_] {
    if (core_ && life == life_) end_of_turn();
  });
}

void Controller::end_of_turn() {
  if (!stepped_) return;
  if (postponed([this] { end_of_turn(); })) return;
  stepped_ = false;
  ++turns_;
  core::Turn turn = core_->take_turn();
  if (const auto done = store_.append(turn.append); !done) return crash(done.error().message);
  ledger_.read(store_);
  for (const std::string& note : turn.notes) trace_.line(queue_.now(), "note: " + note);
  for (const sched::Change& change : turn.changes) {
    replica_->apply(change);
    view_.apply(change);
  }
  check_turn(turn);
  if (!send(turn)) return;
  if (std::exchange(planned_, false)) handed_over_ = false;
  if (turn.schedule || (!handed_over_ && std::exchange(plan_again_, false))) plan_soon();
  set_wake(turn.wake);
}

void Controller::check_turn(const core::Turn& turn) {
  if (turn.append.empty() && turn.changes.empty() && !random_.chance(20))
    return;  // nothing has changed
  const core::State& state = core_->state();
  ledger_.compare(state);
  if (const std::string wrong = core_->audit(); !wrong.empty()) broken("core: " + wrong);
  if (settings_.tenants && random_.chance(30)) ledger_.book().compare_shares(state);
  if (!turn.changes.empty())
    if (const std::string wrong = replica_->audit(); !wrong.empty()) broken("replica: " + wrong);
  View fresh;
  for (const sched::Change& change : core_->full_view()) fresh.apply(change);
  if (const std::string told = view_.text(), is = fresh.text(); told != is)
    broken("the scheduler was told" + difference(told, is));
  if (random_.chance(5)) check_replay(nullptr);
}

// Checks that every event ever committed, applied from empty, gives the state that the records (and
// the end of the journal) give.
void Controller::check_replay(core::Core* recovered) {
  auto replayed = std::make_unique<core::Core>(settings_.config);
  for (const auto& [id, data] : store_.every_spec())
    if (const auto done = replayed->load_spec(id, data); !done)
      broken("replay: " + done.error().message);
  for (const store::JournalEntry& entry : store_.every_event())
    if (const auto done = replayed->replay(entry); !done) broken("replay: " + done.error().message);
  if (recovered != nullptr)
    if (const auto done = replayed->start(clock()); !done)
      broken("replay: " + done.error().message);
  const core::Core& is = recovered != nullptr ? *recovered : *core_;
  ledger_.book().compare_shares(is.state());
  const std::string text = core::records_text(is.state());
  if (const std::string other = core::records_text(replayed->state()); other != text)
    broken("a replay of every event from empty gives" + difference(other, text));
}

bool Controller::send(core::Turn& turn) {
  const auto alive = [&] { return !dies_after_ || (*dies_after_)-- > 0; };
  for (core::Reply& reply : turn.replies) {
    if (!alive()) return crash("killed while it answers"), false;
    if (const auto done = core::fill(reply, store_); !done) broken(done.error().message);
    trace_.line(queue_.now(), fmt::format("ctld -> {}: {}", reply.request, text_of(reply.message)));
    answered(reply);
    const auto to = connections_.find(reply.connection);
    if (to == connections_.end()) continue;
    network_.send(
        to->second, false, Direction::from_controller,
        [this, c = reply.connection, r = reply.request, m = reply.message] { to_client(c, r, m); });
  }
  for (core::Order& order : turn.orders) {
    if (!alive()) return crash("killed while it sends orders"), false;
    if (const auto done = core::fill(order, store_); !done) broken(done.error().message);
    trace_.line(queue_.now(), fmt::format("ctld -> {}: {}", order.node, text_of(order.message)));
    network_.send(order.node, true, Direction::from_controller,
                  [this, node = order.node, m = order.message] { to_node(node, m); });
  }
  return true;
}

void Controller::answered(const core::Reply& reply) {
  const auto it = requests_.find({reply.connection, reply.request});
  if (it == requests_.end()) return;
  const core::ClientRequest& asked = it->second;
  if (const auto* submit = asked.message.get_if<proto::SubmitJob>())
    if (const auto* made = reply.message.get_if<proto::SubmitReply>(); made && !submit->test_only)
      ledger_.submitted(asked.who.owner.user, submit->request_id, made->job);
  if (const auto* together = asked.message.get_if<proto::SubmitTogether>())
    if (const auto* made = reply.message.get_if<proto::SubmitReply>())
      for (std::size_t i = 0; i < together->parts.size(); ++i)
        ledger_.submitted(asked.who.owner.user, together->parts[i].request_id,
                          JobId(made->job.value() + i));
  if (const auto* cancel = asked.message.get_if<proto::CancelJobs>())
    if (const auto* done = reply.message.get_if<proto::JobsDone>())
      ledger_.cancelled(*cancel, *done);
}

void Controller::set_wake(std::optional<Instant> at) {
  if (!at || (armed_ && *armed_ <= *at && *armed_ > clock())) return;
  armed_ = at;
  queue_.after(*at - clock(), [this, life = life_, at = *at] {
    if (!core_ || life != life_ || armed_ != at) return;
    armed_.reset();
    take(core::Tick{});
  });
}

// ---- the scheduler and the fold

void Controller::plan_soon() {
  if (plan_wanted_) return;
  plan_wanted_ = true;
  queue_.after(random_.between(microseconds(0), milliseconds(2)), [this, life = life_] {
    if (core_ && life == life_) plan();
  });
}

// Estimates are made once a second if plans do not look at everything anyway, as in
// ctld/planner.cc.
sched::Policy Controller::policy() const {
  const Instant now = clock();
  sched::Policy policy;
  policy.attempts = settings_.plan_attempts;
  policy.starts = settings_.plan_starts;
  policy.depth = settings_.config.controller.backfill_depth;
  policy.balance = settings_.config.controller.balance;
  policy.keep_reservations = settings_.keep_reservations;
  policy.reservations = settings_.reservations;
  policy.ahead = settings_.ahead;
  // A new replica cannot know which searches were in vain, so that memory is switched off.
  policy.searches = ~std::uint32_t{0};
  policy.search_pause = Duration{};
  policy.everything = settings_.everything;
  if (policy.everything.us == 0 || now >= estimated_ + seconds(1) || now < estimated_)
    policy.estimates = settings_.estimates;
  return policy;
}

// With tenants, as in ctld/planner.cc, one plan is made at a time, after the last one was applied.
void Controller::plan() {
  if (postponed([this] { plan(); })) return;
  plan_wanted_ = false;
  if (settings_.tenants && handed_over_) {
    plan_again_ = true;
    return;
  }
  ++plans_;
  const Kept kept{replica_->reservations(), replica_->kept_slices()};
  const sched::Policy policy = this->policy();
  sched::Plan plan = sched::schedule(*replica_, clock(), policy);
  if (policy.estimates > 0) estimated_ = clock();
  looked_at_all_ = plan.stats.everything;
  if (!looked_at_all_)
    queue_.after(policy.everything, [this, life = life_, plans = plans_] {
      if (core_ && life == life_ && plans == plans_) plan_soon();
    });
  ledger_.book().check_plan(plan, [&](JobId job) {
    const auto slot = replica_->queue().find(job);
    if (!slot) return Resources{};
    const auto& queue = replica_->queue();
    return queue.job_class(queue.line(queue[*slot].line).class_index).least;
  });
  if (!stepped_ && random_.chance(50)) check_plan(plan, kept, policy);
  const Duration takes = faults_ && random_.chance(settings_.late_plan)
                             ? random_.spread(seconds(10))
                             : random_.between(microseconds(50), milliseconds(3));
  handed_over_ = true;
  queue_.after(takes, [this, life = life_, plan = std::move(plan)] {
    if (core_ && life == life_) take_plan(plan);
  });
}

void Controller::take_plan(const sched::Plan& plan) {
  if (postponed([this, plan] { take_plan(plan); })) return;
  take(core::PlanReady{plan});
  planned_ = true;
}

// Checks that a replica from scratch, with the same reservations and mix of requests, plans the
// same.
void Controller::check_plan(const sched::Plan& plan, const Kept& kept, sched::Policy policy) {
  sched::Replica fresh;
  for (const sched::Change& change : core_->full_view()) fresh.apply(change);
  fresh.set_reservations(kept.promises);
  fresh.keep_slices(kept.slices);
  fresh.expect(replica_->mix());
  if (!plan.stats.everything) {  // such a plan only starts jobs
    policy.reservations = policy.ahead = policy.replans = 0;
    policy.preemption = false;
  }
  const sched::Plan other = sched::schedule(fresh, clock(), policy);
  const auto text_of = [](const sched::Plan& p) {
    std::string out;
    for (const sched::Start& s : p.starts) {
      out += fmt::format("start {} on", s.job.value());
      for (const sched::NodeGrant& g : s.grants)
        out += fmt::format(" {}:{}", g.node.value(), fmt::join(g.cpus, ","));
      out += "\n";
    }
    for (const sched::Preempt& v : p.preemptions)
      out += fmt::format("preempt {} for {}\n", v.victim.value(), v.for_job.value());
    return out;
  };
  const std::string is = text_of(plan), anew = text_of(other);
  if (!plan.stats.everything && plan.stats.budget_spent && anew.starts_with(is)) return;
  if (is != anew) broken("a replica from scratch plans otherwise" + difference(is, anew));
}

std::vector<proto::JobRow> Controller::list_jobs() {
  core::ClientRequest request{core::ConnectionId{}, 0, {}, proto::ListJobs{}};
  request.who.owner.user = "admin";
  request.who.role = proto::Role::admin;
  core_->step(clock(), std::move(request));
  core::Turn turn = core_->take_turn();
  set_wake(turn.wake);
  for (core::Reply& reply : turn.replies)
    if (auto* listing = reply.message.get_if<proto::ListJobsReply>())
      return std::move(listing->rows);
  return {};
}

void Controller::fold_later() {
  queue_.after(seconds(1), [this, life = life_] {
    if (!core_ || life != life_) return;
    fold();
    if (core_ && life == life_) fold_later();
  });
}

void Controller::fold() {
  if (stepped_ || paused_until_) return;  // a fold happens between turns only
  if (const auto done = store_.fold(core_->take_fold()); !done) return crash(done.error().message);
  if (const auto more = store_.maintain(); !more) broken(more.error().message);
}

}  // namespace gantry::sim
