// A session over the socket of a login node's daemon, with CURVE as the fallback.
//
// The socket is used if its daemon runs as root, or as the owner of client.conf. If the socket is
// missing, refuses, or stays silent, the session continues over CURVE with its open requests. A
// request is sent there again only if the daemon has refused it, if the daemon has sent nothing at
// all for a while (then it drops requests of clients that are gone), or if sending it twice does no
// harm.
#include <sys/stat.h>

#include <algorithm>

#include "cli/session.h"
#include "common/proto/message_table.h"
#include "common/proto/messages.h"

namespace gantry::cli {
namespace {

// A daemon that is alive sends something after at most half a second (noded/net/user_socket.cc).
constexpr Duration kSilence = seconds(3);
// As many numbers as Hello and Authenticate need, so that requests keep theirs after the fallback.
constexpr std::uint64_t kIntroduction = 2;

constexpr auto kError = static_cast<std::uint16_t>(proto::MessageType::ErrorReply);

bool is_trusted(const net::JobSocketClient& link, const ClientConfig& config) {
  const auto listener = link.listener();
  if (!listener) return false;
  if (*listener == Uid{0}) return true;
  struct stat file {};
  return ::stat(config.path.c_str(), &file) == 0 && Uid{file.st_uid} == *listener;
}

// Requests that may be sent twice: reads, and those that the controller recognises as repeated.
bool may_be_repeated(std::uint16_t type) {
  const auto row = proto::find_message(type);
  return row &&
         (row->kind == proto::MessageKind::read || row->type == proto::MessageType::SubmitJob ||
          row->type == proto::MessageType::SubmitTogether ||
          row->type == proto::MessageType::CancelJobs);
}

std::optional<Error> error_in(const net::StreamMessage& message) {
  if (message.header.type != kError) return std::nullopt;
  const auto error = codec::decode<proto::ErrorReply>(message.body);
  return error ? to_error(*error) : error.error();
}

// Errors that concern the socket or the login node, not the request.
bool is_of_the_way(ErrorCode code) {
  return code == ErrorCode::unauthenticated || code == ErrorCode::unavailable ||
         code == ErrorCode::version_mismatch || code == ErrorCode::unsupported;
}

}  // namespace

std::optional<Session> Session::open_socket(std::string_view program, const ClientConfig& config) {
  if (config.socket.empty() || config.auth == Auth::token || config.auth == Auth::key)
    return std::nullopt;
  auto link = net::JobSocketClient::connect(config.socket, kConnectTimeout);
  if (!link || !is_trusted(*link, config)) return std::nullopt;
  const net::MessageHeader header{proto::kProtocolVersion,
                                  static_cast<std::uint16_t>(proto::MessageType::SocketHello), 1};
  link->queue(header, codec::encode(proto::SocketHello{net::to_z85(config.server_key)}));
  Session session(config, std::move(*link), program);
  session.socket_.emplace();
  session.introduction_ = session.last_request_ = kIntroduction;
  return session;
}

// Requests that need more proof than a login node's word are sent over CURVE, unless answers are
// still to come.
bool Session::needs_encryption(std::uint16_t type) const {
  if (!socket_ || socket_->waiting > 0) return false;
  const auto row = proto::find_message(type);
  return row && proto::needs_credential(*row);
}

void Session::note_sent(std::uint16_t type, std::uint64_t request, const Bytes& body) {
  if (socket_->opened == Instant{}) socket_->opened = system_now();
  ++socket_->waiting;
  if (!socket_->heard) socket_->unheard.push_back({type, request, body});
}

// Continues over CURVE, and sends the requests without an answer there again.
Result<void> Session::go_around() {
  ASSIGN(other, open_encrypted(program_, config_));
  link_ = std::move(other->link_);
  auto& client = std::get<net::Client>(link_);
  for (const Sent& sent : socket_->unheard)
    client.queue(net::HeaderBytes({proto::kProtocolVersion, sent.type, sent.request}).view(),
                 sent.body);
  socket_.reset();
  return {};
}

// The next message; over CURVE if the socket turns out to be unusable.
Result<net::StreamMessage> Session::receive_over_socket(Duration timeout) {
  auto& link = std::get<net::JobSocketClient>(link_);
  OverSocket& s = *socket_;
  const Duration patience = s.lives ? timeout
                                    : std::clamp(s.opened + kSilence - system_now(), Duration{},
                                                 std::max(timeout, Duration{}));
  auto message = link.receive(patience);
  bool around = false;
  if (!message) {
    const bool silent = message.error().code == ErrorCode::timed_out;
    if (silent)
      around = !s.lives && system_now() >= s.opened + kSilence;
    else
      around = !s.heard && std::all_of(s.unheard.begin(), s.unheard.end(),
                                       [](const Sent& m) { return may_be_repeated(m.type); });
    if (!around) return message;
  } else {
    s.lives = true;
    const auto error = error_in(*message);
    const bool introduction = message->header.request <= kIntroduction;
    if (introduction)
      around = error && error->code != ErrorCode::too_many;
    else
      around = !s.heard && error && is_of_the_way(error->code);
    if (!around && !introduction) {
      s.heard = true;
      s.unheard.clear();
      if (s.waiting > 0) --s.waiting;
    }
  }
  if (!around) return message;
  TRY(go_around());
  return receive_message(timeout);
}

}  // namespace gantry::cli
