// Opening, recovery, and the turn, which first commits and then sends. A store that is older than
// what nodes know of it is detected here too (ctld/age).
#include "ctld/server.h"

#include <csignal>

#include "common/codec/codec.h"
#include "common/proto/attempt.h"
#include "common/proto/gate.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "common/proto/session.h"
#include "common/proto/step_attach.h"
#include "common/proto/steps.h"
#include "ctld/core/core.h"
#include "ctld/core/job/submit/blobs.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "ctld/key_files.h"
#include "ctld/notary.h"
#include "ctld/recovery.h"
#include "ctld/rpc/dispatch.h"
#include "ctld/sched/change.h"
#include "ctld/sched/controller_policy.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/policy.h"
#include "ctld/store/lmdb_store.h"
#include "ctld/store/store.h"

namespace gantry::ctld {
namespace {

Result<auth::SigningKey> key_of_ours(const std::string& path) {
  if (auto key = auth::load_signing_key(path)) return key;
  const auth::SigningKey key = auth::generate_signing_key();
  TRY(auth::save_signing_key(path, key));
  return key;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::open(const Config& config, Logger logger) {
  const ControllerConfig& c = config.controller;
  ASSIGN(keys, net::load_key_pair(c.secret_key_file));
  auto store =
      store::LmdbStore::open({.directory = c.state_dir,
                              .map_bytes = static_cast<std::uint64_t>(c.store_map),
                              .max_map_bytes = static_cast<std::uint64_t>(c.store_map_max)});
  if (!store) return tl::unexpected(store.error());
  ASSIGN(signing, key_of_ours(c.state_dir + "/permission.key"));
  ASSIGN(token, key_of_ours(c.state_dir + "/token.key"));

  auto core = std::make_unique<core::Core>(config);
  TRY(recover(*core, **store));

  ASSIGN(age, load_age(c.state_dir, core->epoch(), (*store)->stats().last));

  net::RouterOptions options;
  options.endpoints = {"tcp://" + c.host + ":" + std::to_string(c.port)};
  options.keys = *keys;
  options.max_strangers = kMostStrangers;
  options.stranger_time = kStrangerTime;
  ASSIGN(router, net::Router::open(options));
  if (const std::uint64_t format = (*store)->upgraded_from(); format != 0)
    logger.write(LogLevel::info, "the store had no checksums, and has them now",
                 {{"format", format}});
  return std::unique_ptr<Server>(new Server(config, std::move(logger), std::move(*store),
                                            std::move(*router), Secrets{*signing, token->seed},
                                            std::move(core), std::move(*age)));
}

Server::Server(const Config& config, Logger logger, std::unique_ptr<store::LmdbStore> store,
               net::Router router, Secrets secrets, std::unique_ptr<core::Core> core, Age age)
    : config_(config),
      log_(std::move(logger)),
      store_(std::move(store)),
      secrets_(secrets),
      core_(std::move(core)),
      clock_(core_->last_time()),
      audit_(*core_, clock_),
      shell_{config_,
             log_,
             *core_,
             clock_,
             loop_,
             audit_,
             [this](core::Input input) { step(std::move(input)); },
             [this](const Error& error) { fatal(error); }},
      gate_(make_gate(std::move(age))),
      connections_(shell_, std::move(router), secrets_.token),
      relays_(shell_, connections_,
              [this](rpc::Session& session, const net::MessageHeader& header,
                     std::string_view body) { from_client(session, header, body); }),
      hook_(shell_, connections_,
            [this](rpc::Session& session, const net::MessageHeader& header, core::Identity who,
                   core::ClientMessage message) {
              step_as(session, header, std::move(who), std::move(message));
            }) {}

Server::~Server() {
  planner_.reset();  // its thread posts to the loop
  history_.reset();
  scrubber_.reset();
  exports_.reset();
  notary_.reset();  // its timers run on the loop
}

Result<bool> Server::run() {
  if (!failed_) loop_.run();
  if (failed_) return tl::unexpected(*failed_);
  fold();
  const bool again = again_ && !ended_;
  log_.write(LogLevel::info, again ? "starting anew" : "stopped");
  return again;
}

Result<void> Server::start() {
  relays_.look_up_login_nodes();
  if (auto done = core_->start(clock_.now()); !done) return done;
  ASSIGN(notary, Notary::open(config_.controller, *core_, clock_, loop_, log_));
  notary_ = std::move(*notary);
  if (auto done = connections_.identities().accept_issuer(config_.controller); !done) return done;
  stepped_ = true;
  exports_ = std::make_unique<Exports>(shell_, *notary_, [this] {
    return store_metrics(scrubber_->status()) + connections_.metrics();
  });
  if (auto done = exports_->open(); !done) return done;
  if (auto done = audit_.open(config_.controller.state_dir + "/audit"); !done) return done;
  const sched::Policy policy =
      sched::controller_policy(config_.controller.backfill_depth, config_.controller.balance);
  planner_ = std::make_unique<Planner>(policy, [this](sched::Plan plan) {
    loop_.post([this, plan = std::move(plan)]() mutable {
      passed_over_ = !plan.stats.everything;
      step(core::PlanReady{std::move(plan)});
      planned_ = true;
    });
  });
  history_ = std::make_unique<acct::HistoryReader>(
      *store_, [this](std::function<void()> work) { loop_.post(std::move(work)); });
  scrubber_ =
      std::make_unique<store::Scrubber>(*store_, store::ScrubPace{}, [this](std::string damage) {
        loop_.post([this, damage = std::move(damage)] { log_.write(LogLevel::error, damage); });
      });
  answers_ = std::make_unique<Answers>(shell_, connections_, *planner_, *history_, *notary_,
                                       secrets_.token);
  core_->full_view(
      [this](std::vector<sched::Change> changes) { planner_->advance(std::move(changes)); });
  const std::vector<std::string> key_files = enroll_from_files(shell_);
  gate_.hold_waiting(core_->state());
  end_of_turn();
  if (failed_) return tl::unexpected(*failed_);
  key_files_used(shell_, key_files);
  if (auto noted = gate_.started(core_->state(), store_->stats().last, clock_.now()); !noted)
    return noted;
  planner_->request(clock_.now());

  queue_ = loop_.add_queue(connections_.router(), [this] { return receive_one(); });
  turn_ = loop_.at_end_of_turn([this] { end_of_turn(); });
  fold_ = loop_.every(kFoldPeriod, [this] { fold(); });
  look_ = loop_.every(sched::kLookAtEverything, [this] {
    if (passed_over_) planner_->request(clock_.now());
  });
  const auto stop = [this] {
    ended_ = true;
    loop_.stop();
  };
  term_ = loop_.on_signal(SIGTERM, stop);
  intr_ = loop_.on_signal(SIGINT, stop);
  hup_ = loop_.on_signal(SIGHUP, [this] {
    if (auto sound = check_new_config(); !sound)
      log_.write(LogLevel::error, "the configuration is as it was",
                 {{"why", sound.error().message}});
    else
      start_anew();
  });
  log_.write(
      LogLevel::info, "ready",
      {{"address", connections_.router().endpoints().front()}, {"cluster", config_.cluster}});
  return {};
}

void Server::step(core::Input input) {
  core_->step(clock_.now(), std::move(input));
  stepped_ = true;
}

void Server::end_of_turn() {
  if (failed_) return;
  if (!stepped_) {
    if (!shell_.kept(audit_.sync_if_due())) return;
    connections_.send_greetings();
    return connections_.close_leaving();
  }
  stepped_ = false;
  core::Turn turn = core_->take_turn();
  unfolded_ += turn.append.events.size();
  if (auto done = store_->append(turn.append); !done) {
    fatal(done.error());
    return;
  }
  if (!shell_.kept(gate_.turn_taken(core_->state()))) return;
  if (!shell_.kept(exports_->committed(turn))) return;
  if (!shell_.kept(audit_.answers(turn.replies))) return;
  connections_.send_greetings();
  for (core::Reply& reply : turn.replies) send_reply(reply);
  for (core::Order& order : turn.orders) send_order(order);
  connections_.close_leaving();
  planner_->advance(std::move(turn.changes));
  if (std::exchange(planned_, false)) planner_->plan_applied();
  if (turn.schedule) planner_->request(clock_.now());
  for (const std::string& note : turn.notes) log_.write(LogLevel::info, note);
  set_wake(turn.wake);
  if (unfolded_ >= kFoldEvents) fold();
}

void Server::send_reply(core::Reply& reply) {
  const rpc::Session* session = connections_.find(reply.connection);
  if (session == nullptr) return;
  const auto uid = session->identity ? std::optional(session->identity->owner.uid) : std::nullopt;
  const Duration began = Connections::loop_time();
  if (!reply.blobs.empty()) {
    if (auto done = core::fill(reply, *store_); !done) {
      connections_.refuse(*session, reply.request, done.error());
      return;
    }
  }
  if (auto* granted = reply.message.get_if<proto::StepGranted>()) {
    granted->signature =
        auth::sign(secrets_.permission,
                   granted->attach ? proto::kStepAttachContext : proto::kStepPermissionContext,
                   granted->permission);
  }
  if (auto* table = reply.message.get_if<proto::GateTable>()) notary_->prepare(*table);
  hook_.add_warning(reply);
  if (auto* ping = reply.message.get_if<proto::PingReply>()) ping->config_problem = config_problem_;
  const rpc::Encoded encoded = rpc::encode_reply(reply.message);
  connections_.send_to(*session, encoded.type, reply.request, encoded.body);
  if (uid) connections_.took(*uid, Connections::loop_time() - began);
}

void Server::send_order(core::Order& order) {
  if (!connections_.peer_of(order.node)) return;  // the core repeats it when the node registers
  if (!order.blobs.empty()) {
    if (auto done = core::fill(order, *store_); !done) {
      log_.write(LogLevel::error, "an order could not be completed",
                 {{"node", order.node}, {"error", done.error().message}});
      return;
    }
  }
  if (auto ready = notary_->prepare(order); !ready) {
    if (const auto* launch = order.message.get_if<proto::Launch>())
      refuse_launch(order.node, launch->key, ready.error().message);
    return;
  }
  if (auto* accept = order.message.get_if<proto::NodeAccept>()) {
    accept->permission_key = Bytes(secrets_.permission.verify_key.view());
  }
  rpc::Encoded encoded = rpc::encode_order(order.message);
  Notary::forget_contents(order);
  const auto sent = connections_.send_to_node(order.node, encoded.type, encoded.body);
  if (order.message.is<proto::Launch>()) secrets::wipe(encoded.body);
  if (sent) return;
  log_.write(LogLevel::warning, "an order could not be sent",
             {{"node", order.node}, {"error", sent.error().message}});
  if (sent.error().code != ErrorCode::invalid_argument) return;
  if (const auto* launch = order.message.get_if<proto::Launch>())
    refuse_launch(order.node, launch->key,
                  fmt::format("the job cannot be started, because the order to its node would be "
                              "{}: its script, its environment and its lists of nodes are too "
                              "large together",
                              sent.error().message));
}

// The order would be the same if sent again. If a node did not answer it, the job would start late,
// and the node would be drained, and so would the next node.
void Server::refuse_launch(const std::string& node, const proto::AttemptKey& key, std::string why) {
  proto::ExitReport report;
  report.key = key;
  report.cause = proto::ExitCause::refused;
  report.message = std::move(why);
  loop_.post([this, node, report] { step(core::FromNode{node, report}); });
}

void Server::set_wake(std::optional<Instant> at) {
  if (!at) {
    wake_ = {};
    return;
  }
  wake_ = loop_.after(*at - clock_.now(), [this] { step(core::Tick{}); });
}

void Server::fold() {
  if (failed_ || stepped_) return;  // folds only between turns; else in the next second
  unfolded_ = 0;
  if (!shell_.kept(exports_->sync())) return;  // before the journal's tail is dropped
  if (!shell_.kept(audit_.sync())) return;
  const store::FoldBatch batch = core_->take_fold();
  if (auto done = store_->fold(batch); !done) {
    fatal(done.error());
    return;
  }
  if (auto more = store_->maintain(); !more) fatal(more.error());
  (void)shell_.kept(gate_.note_events(store_->stats().last, clock_.now()));
}

void Server::fatal(const Error& error) {
  failed_ = error;
  log_.write(LogLevel::error, "stopping: what is acknowledged is safe, nothing more can be",
             {{"error", error.message}});
  loop_.stop();
}

Result<Server::Age> Server::load_age(const std::string& state_dir, Epoch epoch, EventSeq last) {
  Age age;
  ASSIGN(mark, age::load_high_water(state_dir));
  if (*mark) {
    age.mark = **mark;
    TRY(age::Gate::check(age.mark, epoch, last, state_dir + "/data.mdb"));
  }
  ASSIGN(strangers, age::Strangers::load(state_dir));
  age.strangers = std::move(*strangers);
  return age;
}

age::Gate Server::make_gate(Age age) {
  const std::string& state_dir = config_.controller.state_dir;
  return {
      age.mark,
      std::move(age.strangers),
      config_.nodes.size(),
      state_dir + "/data.mdb",
      {[state_dir](const age::HighWater& mark) { return age::save_high_water(state_dir, mark); },
       [this](core::ClientRequest order) { step(std::move(order)); },
       [this](LogLevel level, const std::string& what) { log_.write(level, what); }}};
}

// Returns false if the core must not get this message.
bool Server::admit(const std::string& node, core::NodeMessage& message) {
  const auto admitted = gate_.admit(core_->state(), node, message);
  if (!admitted) fatal(admitted.error());
  return admitted.value_or(false) && !failed_;
}

}  // namespace gantry::ctld
