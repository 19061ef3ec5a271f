// Opening, recovery, and the turn: commits first, and only then tells anybody.
#include "ctld/server.h"

#include <csignal>

#include "common/codec/codec.h"
#include "common/http/http_server.h"
#include "common/http/tokens.h"
#include "ctld/acct/usage_log.h"
#include "ctld/core/job/submit/blobs.h"
#include "ctld/http/webhook.h"
#include "ctld/mailer.h"
#include "ctld/notary.h"
#include "ctld/policy_hook.h"
#include "ctld/programs.h"
#include "ctld/recovery.h"
#include "ctld/rpc/dispatch.h"
#include "ctld/sched/controller_policy.h"
#include "ctld/store/lmdb_store.h"

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
      router_(std::move(router)),
      secrets_(secrets),
      core_(std::move(core)),
      gate_(make_gate(std::move(age))),
      clock_(core_->last_time()),
      audit_(*core_, clock_),
      identities_(
          config.controller.admins, config.controller.allow_munge,
          [this](const auth::VerifyKey& key) {
            return core_->user_of_key(net::to_hex(key.view()));
          },
          secrets.token),
      limits_({config.controller.max_user_connections, config.controller.max_user_requests}) {
  router_.on_closed([this](net::PeerId peer) { peer_closed(peer); });
}

Server::~Server() {
  planner_.reset();  // its thread posts to the loop
  history_.reset();
  scrubber_.reset();
  http_.reset();
  notary_.reset();  // it looks at its keys from time to time, by the loop
  webhook_.reset();
  hook_.reset();
  mailer_.reset();
  programs_.reset();
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
  started_ = clock_.now();
  std::vector<std::string> problems;
  login_nodes_ = rpc::LoginNodes::from(config_, problems);
  for (const std::string& problem : problems) log_.write(LogLevel::warning, problem);
  if (auto done = core_->start(started_); !done) return done;
  ASSIGN(notary, Notary::open(config_.controller, *core_, clock_, loop_, log_));
  notary_ = std::move(*notary);
  if (auto done = identities_.accept_issuer(config_.controller); !done) return done;
  stepped_ = true;
  if (auto done = open_exports(); !done) return done;
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
  core_->full_view(
      [this](std::vector<sched::Change> changes) { planner_->advance(std::move(changes)); });
  const std::vector<std::string> key_files = enroll_from_files();
  gate_.hold_waiting(core_->state());
  end_of_turn();
  if (failed_) return tl::unexpected(*failed_);
  key_files_used(key_files);
  if (auto noted = gate_.started(core_->state(), store_->stats().last, clock_.now()); !noted)
    return noted;
  planner_->request(clock_.now());

  queue_ = loop_.add_queue(router_, [this] { return receive_one(); });
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
  log_.write(LogLevel::info, "ready",
             {{"address", router_.endpoints().front()}, {"cluster", config_.cluster}});
  return {};
}

void Server::step(core::Input input) {
  core_->step(clock_.now(), std::move(input));
  stepped_ = true;
}

void Server::end_of_turn() {
  if (failed_) return;
  if (!stepped_) {
    if (!kept(audit_.sync_if_due())) return;
    send_greetings();
    return close_leaving();
  }
  stepped_ = false;
  core::Turn turn = core_->take_turn();
  unfolded_ += turn.append.events.size();
  if (auto done = store_->append(turn.append); !done) {
    fatal(done.error());
    return;
  }
  if (!kept(gate_.turn_taken(core_->state()))) return;
  if (usage_ && !turn.usage.empty()) {
    if (auto done = usage_->append(turn.usage); !done) {
      fatal(done.error());
      return;
    }
    if (webhook_) webhook_->wake();
  }
  if (mailer_ && !turn.letters.empty()) mailer_->send(std::move(turn.letters));
  if (programs_ && !turn.programs.empty()) programs_->run(std::move(turn.programs));
  if (!kept(audit_.answers(turn.replies))) return;
  send_greetings();
  for (core::Reply& reply : turn.replies) send_reply(reply);
  for (core::Order& order : turn.orders) send_order(order);
  close_leaving();
  planner_->advance(std::move(turn.changes));
  if (std::exchange(planned_, false)) planner_->plan_applied();
  if (turn.schedule) planner_->request(clock_.now());
  for (const std::string& note : turn.notes) log_.write(LogLevel::info, note);
  set_wake(turn.wake);
  if (unfolded_ >= kFoldEvents) fold();
}

void Server::close_leaving() {
  for (const net::PeerId peer : std::exchange(leaving_, {})) router_.close(peer);
}

void Server::send_greetings() {
  for (const Greeting& greeting : std::exchange(greetings_, {})) {
    const rpc::Session* session = find_session(greeting.connection);
    if (session == nullptr) continue;
    send_to(*session, static_cast<std::uint16_t>(proto::number_of<proto::HelloReply>),
            greeting.request, codec::encode(greeting.reply));
  }
}

void Server::send_reply(core::Reply& reply) {
  const rpc::Session* session = find_session(reply.connection);
  if (session == nullptr) return;
  const auto uid = session->identity ? std::optional(session->identity->owner.uid) : std::nullopt;
  const Duration began = loop_time();
  if (!reply.blobs.empty()) {
    if (auto done = core::fill(reply, *store_); !done) {
      refuse(*session, reply.request, done.error());
      return;
    }
  }
  if (auto* granted = std::get_if<proto::StepGranted>(&reply.message)) {
    granted->signature =
        auth::sign(secrets_.permission,
                   granted->attach ? proto::kStepAttachContext : proto::kStepPermissionContext,
                   granted->permission);
  }
  if (auto* table = std::get_if<proto::GateTable>(&reply.message)) notary_->prepare(*table);
  add_hook_warning(reply);
  if (auto* ping = std::get_if<proto::PingReply>(&reply.message))
    ping->config_problem = config_problem_;
  const rpc::Encoded encoded = rpc::encode_reply(reply.message);
  send_to(*session, encoded.type, reply.request, encoded.body);
  if (uid) limits_.took(*uid, loop_time() - began);
}

void Server::send_order(core::Order& order) {
  const auto link = links_.find(order.node);
  if (link == links_.end()) return;  // the core repeats it when the node registers
  if (core_->node_of_key(link->second.key) != order.node) {  // the key is now another node's
    links_.erase(link);
    return;
  }
  if (!order.blobs.empty()) {
    if (auto done = core::fill(order, *store_); !done) {
      log_.write(LogLevel::error, "an order could not be completed",
                 {{"node", order.node}, {"error", done.error().message}});
      return;
    }
  }
  if (auto ready = notary_->prepare(order); !ready) {
    if (const auto* launch = std::get_if<proto::Launch>(&order.message))
      refuse_launch(order.node, launch->key, ready.error().message);
    return;
  }
  if (auto* accept = std::get_if<proto::NodeAccept>(&order.message)) {
    accept->permission_key = Bytes(secrets_.permission.verify_key.view());
  }
  rpc::Encoded encoded = rpc::encode_order(order.message);
  Notary::forget_contents(order);
  const net::HeaderBytes header({proto::kProtocolVersion, encoded.type, 0});
  const auto sent = router_.send(link->second.peer, header.view(), encoded.body);
  if (std::holds_alternative<proto::Launch>(order.message)) secrets::wipe(encoded.body);
  if (sent) return;
  log_.write(LogLevel::warning, "an order could not be sent",
             {{"node", order.node}, {"error", sent.error().message}});
  // If an order is too large, that is no sign of a broken connection.
  if (sent.error().code != ErrorCode::invalid_argument)
    links_.erase(link);
  else if (const auto* launch = std::get_if<proto::Launch>(&order.message))
    refuse_launch(order.node, launch->key,
                  fmt::format("the job cannot be started, because the order to its node would be "
                              "{}: its script, its environment and its lists of nodes are too "
                              "large together",
                              sent.error().message));
}

// Sent again, the order would be the same. Without an answer of the node the job would be late to
// start, and the node would be drained for it and the next node after it.
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
  if (failed_ || stepped_) return;  // fold only between turns; the next second will do
  unfolded_ = 0;
  if (usage_) {  // before the journal's tail is let go
    if (auto done = usage_->sync(); !done) {
      fatal(done.error());
      return;
    }
  }
  if (!kept(audit_.sync())) return;
  const store::FoldBatch batch = core_->take_fold();
  if (auto done = store_->fold(batch); !done) {
    fatal(done.error());
    return;
  }
  if (auto more = store_->maintain(); !more) fatal(more.error());
  (void)kept(gate_.note_events(store_->stats().last, clock_.now()));
}

void Server::fatal(const Error& error) {
  failed_ = error;
  log_.write(LogLevel::error, "stopping: what is acknowledged is safe, nothing more can be",
             {{"error", error.message}});
  loop_.stop();
}

}  // namespace gantry::ctld
