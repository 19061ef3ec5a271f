#include "noded/daemon.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "common/codec/codec.h"
#include "common/codec/define.h"
#include "common/fields.h"
#include "common/overloaded.h"
#include "common/proto/message_table.h"
#include "noded/machine/discover.h"
#include "noded/runtime/job_dir.h"

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

// When a command's connection to the controller ends, the command is told at once, even if it asked
// through this daemon.
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

// A lost report is sent again, because the core waits for the controller's acknowledgement.
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

namespace {

constexpr const char* kMemoryFile = "memory.msgpack";
constexpr const char* kDaemonLock = "noded.lock";

struct MemoryRecord {
  Epoch epoch{};
  std::optional<Duration> fence_after;
  JobId highest_job{};
  GANTRY_FIELDS(FIELD(1, epoch), FIELD(2, fence_after), FIELD(3, highest_job))
};

Result<Memory> read_memory(const std::string& dir) {
  Memory memory;
  const std::string path = dir + "/" + kMemoryFile;
  if (::access(path.c_str(), F_OK) != 0) return memory;  // there is no file at the first start
  ASSIGN(bytes, runtime::read_file(path));
  const auto record = codec::decode<MemoryRecord>(*bytes);
  if (!record)
    return fail(ErrorCode::malformed, fmt::format("{}: {}", path, record.error().message));
  memory.epoch = record->epoch;
  memory.fence_after = record->fence_after;
  memory.highest_job = record->highest_job;
  if (const auto text = runtime::read_file(dir + "/" + runtime::kContactFile))
    if (const auto contact = runtime::parse_contact(*text)) memory.last_contact = contact->at;
  return memory;
}

}  // namespace

Result<MemoryFile> MemoryFile::open(const std::string& state_dir) {
  TRY(runtime::make_dirs(state_dir, 0711));
  MemoryFile file;
  file.path_ = state_dir;
  file.directory_ = Fd(::open(state_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.directory_) return runtime::fail_errno(ErrorCode::io_error, state_dir);
  file.lock_ = Fd(::openat(file.directory_.get(), kDaemonLock, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.lock_) return runtime::fail_errno(ErrorCode::io_error, state_dir + "/" + kDaemonLock);
  if (::flock(file.lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::wrong_state,
                fmt::format("another gantry-noded uses the state directory {}", state_dir));
  ASSIGN(memory, read_memory(state_dir));
  file.memory_ = *memory;
  file.drop_contact();
  return file;
}

Result<void> MemoryFile::remember(const RememberEpoch& what) {
  memory_.epoch = what.epoch;
  memory_.fence_after = what.fence_after;
  auto kept = write();
  if (kept) drop_contact();
  return kept;
}

Result<void> MemoryFile::remember(const RememberJob& what) {
  memory_.highest_job = what.highest;
  return write();
}

Result<void> MemoryFile::write() {
  return runtime::write_whole(
      directory_.get(), kMemoryFile,
      codec::encode(MemoryRecord{memory_.epoch, memory_.fence_after, memory_.highest_job}),
      runtime::Durability::durable);
}

Result<void> MemoryFile::remember(const RememberContact& what, Instant now) {
  memory_.last_contact = what.at;
  const runtime::Contact contact{what.at, runtime::since_boot() - (now - what.at),
                                 memory_.fence_after.value_or(Duration{})};
  return runtime::write_whole(directory_.get(), runtime::kContactFile,
                              runtime::contact_text(contact), runtime::Durability::none);
}

// Removes the contact file if fencing is off, so that no shim counts the silence.
namespace {

template <class T>
Result<FromWire> decode_as(std::string_view body) {
  ASSIGN(message, codec::decode<T>(body));
  if constexpr (std::is_constructible_v<Order, T>)
    return FromWire(std::in_place_type<Order>, std::move(*message));
  else
    return FromWire(std::in_place_type<T>, std::move(*message));
}

struct Row {
  proto::MessageType type;
  Result<FromWire> (*decode)(std::string_view body);
};

template <class... Ts>
constexpr std::array<Row, sizeof...(Ts)> rows() {
  return {Row{proto::number_of<Ts>, decode_as<Ts>}...};
}

constexpr auto kOrders =
    rows<proto::NodeAccept, proto::RegisterAgain, proto::HeartbeatAck, proto::Launch, proto::Go,
         proto::Terminate, proto::SignalAttempt, proto::AckExit, proto::FetchLog,
         proto::TellAttempt, proto::ResumeGpu, proto::Freeze, proto::ProbeAttempt,
         proto::IdentityTokens, proto::LimitStep, proto::RelayReply, proto::RereadConfig>();
constexpr Row kRefusal{proto::number_of<proto::ErrorReply>, decode_as<proto::ErrorReply>};

// True if kOrders has exactly the messages that the table of messages calls orders.
constexpr bool complete() {
  std::size_t orders = 0;
  for (const proto::MessageRow& m : proto::kMessages) {
    if (m.kind != proto::MessageKind::order) continue;
    ++orders;
    if (std::ranges::count(kOrders, m.type, &Row::type) != 1) return false;
  }
  return orders == kOrders.size();
}
static_assert(complete());

template <class T>
ToWire encode(const T& message) {
  return {net::HeaderBytes(
              {proto::kProtocolVersion, static_cast<std::uint16_t>(proto::number_of<T>), 0}),
          codec::encode(message)};
}

}  // namespace

Result<FromWire> decode_order(std::string_view header, std::string_view body) {
  ASSIGN(head, net::decode_header(header));
  if (head->protocol < proto::kOldestProtocol || head->protocol > proto::kProtocolVersion)
    return fail(ErrorCode::version_mismatch,
                fmt::format("the controller speaks protocol {}, this node {}", head->protocol,
                            proto::kProtocolVersion));
  const auto type = static_cast<proto::MessageType>(head->type);
  if (type == kRefusal.type) return kRefusal.decode(body);
  const auto row = std::ranges::find(kOrders, type, &Row::type);
  if (row == kOrders.end())
    return fail(ErrorCode::unsupported,
                fmt::format("message {} is no order to a node", head->type));
  return row->decode(body);
}

ToWire encode_report(const Report& report) {
  return std::visit([](const auto& message) { return encode(message); }, report);
}

ToWire encode_relay(const proto::NodeRelay& relay) {
  return encode(relay);
}

ToWire encode_relay(const proto::UserRelay& relay) {
  return encode(relay);
}
ToWire encode_relay(const proto::UsersGone& gone) {
  return encode(gone);
}

}  // namespace gantry::node
