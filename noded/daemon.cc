#include "noded/daemon.h"

#include "common/overloaded.h"
#include "noded/machine/discover.h"
#include "noded/wire.h"

namespace gantry::node {

namespace {

constexpr Duration kFarewell = milliseconds(100);  // time for the last message to be sent

}  // namespace

Daemon::Daemon(loop::Loop& loop, const Logger& log, Parts parts)
    : loop_(loop),
      log_(log),
      parts_(std::move(parts)),
      clock_(parts_.memory.memory().last_contact.value_or(Instant{})),
      logs_(loop, parts_.facts.node, parts_.storage, [this](proto::FetchLogReply&& reply) {
        events_.emplace_back(FileRead{std::move(reply)});
      }) {}

Daemon::~Daemon() = default;

void Daemon::start(JobSockets& sockets, UserSocket* users) {
  sockets_ = &sockets;
  users_ = users;
  auto recovered = parts_.runtime->recover();
  if (parts_.gpus) parts_.facts.gpus = parts_.gpus();
  core_ = std::make_unique<Core>(parts_.facts, parts_.memory.memory(), std::move(recovered),
                                 clock_.now());
  core_->step(clock_.now(), LinkUp{});
  queue_ = loop_.add_queue(parts_.link, [this] { return receive_one(); });
  if (const int fd = parts_.runtime->descriptor(); fd >= 0)
    poll_ = loop_.on_readable(fd, [this] { parts_.runtime->poll(clock_.now(), events_); });
  turn_ = loop_.at_end_of_turn([this] { finish_turn(); });
  if (users_ != nullptr) watch_link();
  finish_turn();
}

// A command whose connection to the controller ends is told so at once, also if it asked by way of
// this daemon.
void Daemon::watch_link() {
  const auto source = parts_.link.watch_link();
  if (!source) {
    log_.warning("the end of the link is noticed late", {{"why", source.error().message}});
    return;
  }
  link_ = loop_.add_queue(**source, [this] {
    if (!parts_.link.link_ended()) return false;
    link_lives_ = false;
    users_->link_is_lost();
    return true;
  });
}

void Daemon::stop() {
  leave({});
}

void Daemon::make_way() {
  leave({.makes_way = true});
}

void Daemon::leave(Stop how) {
  if (stopping_) return;
  stopping_ = true;
  core_->step(clock_.now(), how);
  finish_turn();
  farewell_ = loop_.after(kFarewell, [this] { loop_.stop(); });
}

bool Daemon::receive_one() {
  auto message = parts_.link.receive();
  if (!message) return false;
  link_lives_ = true;
  if (stopping_) return true;
  auto decoded = message->frames == net::kFrames
                     ? decode_order(message->header, message->body)
                     : Result<FromWire>(fail(ErrorCode::malformed, "a message of a wrong shape"));
  if (!decoded) {
    log_.write(bad_message_, LogLevel::warning, "message of the controller not understood",
               {{"why", decoded.error().message}});
    return true;
  }
  std::visit(Overloaded{
                 [&](Order& order) {
                   const auto* accept = std::get_if<proto::NodeAccept>(&order);
                   if (accept != nullptr && on_permission_key)
                     on_permission_key(accept->permission_key);
                   core_->step(clock_.now(), FromController{std::move(order)});
                 },
                 [&](proto::RelayReply& reply) {
                   if (!UserSocket::is_user_channel(reply.channel))
                     sockets_->reply(reply);
                   else if (users_ != nullptr)
                     users_->reply(reply);
                 },
                 [&](proto::RereadConfig&) {
                   if (on_reread) on_reread();
                 },
                 [&](proto::ErrorReply& error) {
                   log_.write(bad_message_, LogLevel::error, "the controller refused this node",
                              {{"why", error.message}});
                 },
             },
             *decoded);
  return true;
}

void Daemon::finish_turn() {
  std::vector<Report> messages;
  std::optional<Instant> wake;
  while (!failure_) {
    std::vector<Input> events = std::exchange(events_, {});
    for (auto& event : events) core_->step(clock_.now(), std::move(event));
    Turn turn = core_->take_turn();
    wake = turn.wake;
    for (auto& action : turn.actions) act(std::move(action));
    messages.insert(messages.end(), std::make_move_iterator(turn.messages.begin()),
                    std::make_move_iterator(turn.messages.end()));
    if (events_.empty()) break;
  }
  if (failure_) return;
  for (auto& message : messages) send(std::move(message));
  set_timer(wake);
  if (core_->registered() != was_registered_) {
    was_registered_ = !was_registered_;
    if (was_registered_) sockets_->link_is_new();
    if (users_ != nullptr && !was_registered_) users_->link_is_lost();
    log_.info(was_registered_ ? "registered with the controller" : "no session with the controller",
              {{"node", parts_.facts.node}, {"attempts", core_->attempts().size()}});
  }
}

void Daemon::act(Action&& action) {
  const Instant now = clock_.now();
  std::visit(Overloaded{
                 [&](RememberEpoch& a) {
                   if (failure_) return;
                   if (const auto kept = parts_.memory.remember(a); !kept) fail_with(kept.error());
                 },
                 [&](RememberJob& a) {
                   if (failure_) return;
                   const auto kept = parts_.memory.remember(a);
                   if (!kept) events_.emplace_back(NotRemembered{});
                   say_kept(job_kept_, kept, "the highest job id that was ordered here");
                 },
                 [&](RememberContact& a) {
                   if (failure_) return;
                   say_kept(contact_kept_, parts_.memory.remember(a, now),
                            "when the controller was last heard");
                 },
                 [&](ReadFile& a) { logs_.read(a.fetch); },
                 [&](auto& a) {
                   if (!failure_) parts_.runtime->act(now, Action(std::move(a)), events_);
                 },
             },
             action);
}

// A report that is lost here is repeated, because the core waits for the controller's
// acknowledgement.
void Daemon::send(Report&& report) {
  if (auto* registration = std::get_if<proto::NodeRegister>(&report))
    for (const proto::AttemptSleep& sleep : parts_.runtime->asleep())
      for (proto::AttemptStatus& status : registration->attempts)
        if (status.key == sleep.key) status.asleep = sleep.asleep;
  if (auto* beat = std::get_if<proto::Heartbeat>(&report)) {
    beat->load = runtime::load_average();
    beat->free_memory = runtime::available_memory();
    beat->checkpoints = parts_.runtime->checkpoints(beat->sent);
    beat->asleep = parts_.runtime->asleep();
    beat->gpus = parts_.runtime->gpu_activity();
    beat->usage = parts_.runtime->usage();
    if (sharing) beat->sharing = sharing();
    beat->trouble = parts_.runtime->trouble();
    if (beat->trouble != trouble_) {
      trouble_ = beat->trouble;
      if (trouble_.empty())
        log_.info("the state directory is in order again");
      else
        log_.error("nothing starts here", {{"why", trouble_}});
    }
  }
  const ToWire wire = encode_report(report);
  if (const auto sent = parts_.link.send(wire.header.view(), wire.body); !sent)
    log_.write(full_queue_, LogLevel::warning, "a report could not be sent",
               {{"why", sent.error().message}});
}

void Daemon::gpus_changed(const GpuInventory& now) {
  events_.emplace_back(GpusChanged{now});
}

template <class Relayed>
bool Daemon::pass_on(const Relayed& relayed) {
  if (!core_ || !core_->registered() || stopping_) return false;
  const ToWire wire = encode_relay(relayed);
  return parts_.link.send(wire.header.view(), wire.body).has_value();
}
template bool Daemon::pass_on(const proto::NodeRelay&);
template bool Daemon::pass_on(const proto::UserRelay&);
template bool Daemon::pass_on(const proto::UsersGone&);

void Daemon::set_timer(std::optional<Instant> wake) {
  if (!wake || (armed_ && *armed_ <= *wake)) return;  // an early wake-up does no harm
  armed_ = wake;
  timer_ = loop_.after(std::max(*wake - clock_.now(), Duration{}), [this] {
    armed_.reset();
    core_->step(clock_.now(), Wake{});
  });
}

void Daemon::say_kept(bool& was_kept, const Result<void>& kept, std::string_view what) {
  if (was_kept == kept.has_value()) return;
  was_kept = !was_kept;
  if (was_kept)
    log_.info("what could not be written is written again", {{"what", what}});
  else
    log_.warning("cannot write what a restarted daemon should know; it is tried again",
                 {{"what", what}, {"why", kept.error().message}});
}

void Daemon::fail_with(Error error) {
  failure_ = std::move(error);
  log_.error("cannot keep what must not be forgotten; stopping, jobs run on",
             {{"why", failure_->message}});
  loop_.stop();
}

}  // namespace gantry::node
