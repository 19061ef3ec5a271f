// Sends and receives the frames of a session; encoding their contents is the codec's work.
#include "cli/session.h"

#include <fmt/core.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "cli/command.h"
#include "common/auth/munge.h"
#include "common/auth/registered_key.h"
#include "common/codec/texts.h"
#include "common/text/printable.h"

namespace gantry::cli {
namespace {

// Bytes of requests that may wait for the first receive().
constexpr std::size_t kMostQueued = 64 << 10;

}  // namespace

Instant system_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return {std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000};
}

Patience::Patience(Duration whole) : until_(system_now() + whole), next_(milliseconds(200)) {}

bool Patience::pause() {
  const Duration longest = until_ - system_now();
  if (longest <= Duration{}) return false;
  std::uint32_t random = 0;
  (void)::getrandom(&random, sizeof random, GRND_NONBLOCK);
  const std::int64_t us = next_.us / 2 + static_cast<std::int64_t>(random) % next_.us;
  const Duration length = std::min(microseconds(us), longest);
  next_ = std::min(microseconds(next_.us * 2), seconds(4));
  const timespec time{static_cast<time_t>(length.us / 1'000'000),
                      static_cast<long>(length.us % 1'000'000) * 1'000};
  // tidy-allow(sleep): the controller sends no event when it can accept requests again
  ::nanosleep(&time, nullptr);
  return true;
}

Error to_error(const proto::ErrorReply& reply) {
  const auto code = static_cast<ErrorCode>(reply.code);
  const bool known = name_of(code) != "unknown";  // a newer controller may have more codes
  return {known ? code : ErrorCode::wrong_state, printable(reply.message, Lines::many)};
}

Result<Session> Session::open(std::string_view program) {
  ASSIGN(config, find_client_config());
  return open(program, *config);
}

namespace {

tl::unexpected<Error> unreachable(const ClientConfig& config, const Error& error) {
  return fail(error.code,
              fmt::format("cannot reach the controller at {}: {}", config.address, error.message));
}

}  // namespace

Result<Session> Session::open(std::string_view program, const ClientConfig& config) {
  if (config.auth == Auth::none) {
    auto link = net::JobSocketClient::connect(config.address, kConnectTimeout);
    if (!link) return unreachable(config, link.error());
    return Session(config, std::move(*link), program);
  }
  if (auto session = open_socket(program, config)) return std::move(*session);
  return open_encrypted(program, config);
}

Result<Session> Session::open_encrypted(std::string_view program, const ClientConfig& config) {
  net::ClientOptions options;
  options.address = config.address;
  options.server_key = config.server_key;
  options.timeout = kConnectTimeout;
  auto link = net::Client::start(options);
  if (!link) return unreachable(config, link.error());
  Session session(config, std::move(*link), program);
  // The credential is made while the controller does its part of the handshake.
  const auto& started = std::get<net::Client>(session.link_);
  proto::Authenticate authenticate;
  auto bytes = session.credential(authenticate.method, started.session_key());
  if (auto done = std::get<net::Client>(session.link_).finish(); !done)
    return unreachable(config, done.error());
  if (!bytes) return tl::unexpected(bytes.error());
  authenticate.credential = std::move(*bytes);
  session.introduce(authenticate);
  return session;
}

Result<Bytes> Session::credential(proto::AuthMethod& method,
                                  const net::PublicKey& session_key) const {
  if (config_.auth == Auth::token) {
    method = proto::AuthMethod::token;
    return Bytes(config_.token);
  }
  const std::string key_file = key_path(config_);
  const bool may_use_key = config_.auth != Auth::munge && !key_file.empty();
  if (may_use_key && (config_.auth == Auth::key || ::access(key_file.c_str(), R_OK) == 0)) {
    ASSIGN(key, auth::load_signing_key(key_file));
    method = proto::AuthMethod::key;
    return auth::make_key_credential(*key, session_key, system_now());
  }
  method = proto::AuthMethod::munge;
  auto credential = auth::munge_encode(session_key, {.socket = config_.munge_socket});
  if (!credential && may_use_key)
    return fail(credential.error().code,
                fmt::format("{}; and there is no key in {}", credential.error().message, key_file));
  return credential;
}

// Hello and the credential are sent in one packet with the first request, and the command does not
// wait for replies to them: if one is refused, so is the request.
void Session::introduce(const proto::Authenticate& authenticate) {
  auto& client = std::get<net::Client>(link_);
  const auto queue = [&]<class T>(const T& message) {
    const net::MessageHeader header{
        proto::kProtocolVersion, static_cast<std::uint16_t>(proto::number_of<T>), ++last_request_};
    client.queue(net::HeaderBytes(header).view(), codec::encode(message));
  };
  proto::Hello hello;
  hello.program = fmt::format("{} {}", program_, kVersion);
  queue(hello);
  queue(authenticate);
  introduction_ = last_request_;
}

Result<std::uint64_t> Session::send_raw(std::uint16_t type, const Bytes& body) {
  if (needs_encryption(type)) TRY(go_around());
  const std::uint64_t request = ++last_request_;
  const net::MessageHeader header{proto::kProtocolVersion, type, request};
  Result<void> sent;
  if (auto* client = std::get_if<net::Client>(&link_)) {
    client->queue(net::HeaderBytes(header).view(), body);
    if (client->queued_bytes() > kMostQueued) sent = client->flush(kCallTimeout);
  } else {
    sent = std::get<net::JobSocketClient>(link_).send(header, body, kCallTimeout);
  }
  // The caller that waits for this answer gets it, or learns that there is none.
  if (socket_) note_sent(type, request, body);
  if (!sent && !socket_) return tl::unexpected(sent.error());
  return request;
}

Result<net::StreamMessage> Session::receive_message(Duration timeout) {
  if (socket_) return receive_over_socket(timeout);
  if (auto* socket = std::get_if<net::JobSocketClient>(&link_)) return socket->receive(timeout);
  auto& client = std::get<net::Client>(link_);
  if (client.queued_bytes() > 0) TRY(client.flush(kCallTimeout));
  ASSIGN(frames, client.receive(timeout));
  if (frames->size() != net::kFrames)
    return fail(ErrorCode::malformed, "the controller sent a message that is not two frames");
  ASSIGN(header, net::decode_header((*frames)[0]));
  return net::StreamMessage{*header, std::move((*frames)[1])};
}

// Moves one message from the wire into arrived_. An error that concerns the whole session is
// returned.
Result<void> Session::receive_one(Duration timeout) {
  ASSIGN(message, receive_message(timeout));
  Frame frame{message->header.type, std::move(message->body)};
  const std::uint64_t request = message->header.request;
  const bool refused = frame.type == static_cast<std::uint16_t>(proto::MessageType::ErrorReply);
  if (request > introduction_) {
    arrived_[request] = std::move(frame);
  } else if (refused) {
    const auto error = codec::decode<proto::ErrorReply>(frame.body);
    return tl::unexpected(error ? to_error(*error) : error.error());
  }
  return {};
}

Result<Bytes> Session::receive_raw(std::uint64_t request, std::uint16_t type, Duration timeout) {
  const Instant deadline = system_now() + timeout;
  auto found = arrived_.find(request);
  while (found == arrived_.end()) {
    const Duration left = std::clamp(deadline - system_now(), Duration{}, timeout);
    if (auto done = receive_one(left); !done) {
      if (done.error().code == ErrorCode::timed_out)
        return fail(ErrorCode::timed_out, "the controller does not answer");
      return tl::unexpected(done.error());
    }
    found = arrived_.find(request);
  }
  Frame frame = std::move(found->second);
  arrived_.erase(found);
  if (frame.type == type) return std::move(frame.body);
  if (frame.type != static_cast<std::uint16_t>(proto::MessageType::ErrorReply))
    return fail(
        ErrorCode::malformed,
        fmt::format("the controller answered with message {} instead of {}", frame.type, type));
  ASSIGN(error, codec::decode<proto::ErrorReply>(frame.body));
  return tl::unexpected(to_error(*error));
}

Result<void> Session::receive(std::uint64_t request, const Awaited& awaited, Duration timeout) {
  ASSIGN(body, receive_raw(request, awaited.type, timeout));
  return awaited.read(*body, awaited.reply);
}

Result<void> Session::exchange(std::uint16_t type, const Bytes& body, const Awaited& awaited,
                               Duration timeout, Retry retry) {
  Patience patience;
  while (true) {
    ASSIGN(id, send_raw(type, body));
    auto done = receive(*id, awaited, timeout);
    if (done || retry == Retry::never || done.error().code != ErrorCode::too_many ||
        !patience.pause())
      return done;
  }
}

Result<void> ask(std::string_view program, std::uint16_t type, const Bytes& body,
                 const Awaited& awaited) {
  Patience patience;
  while (true) {
    ASSIGN(session, Session::open(program));
    auto done = session->exchange(type, body, awaited, kCallTimeout, Session::Retry::never);
    if (done || done.error().code != ErrorCode::too_many || !patience.pause()) return done;
  }
}

// How each reply is read: decoded, made printable, and joined from its pages. Compiled only here,
// not in every command.
namespace {

// True for replies whose texts are data or signed, and are not shown to people.
template <class Reply>
constexpr bool kIsData =
    std::is_same_v<Reply, proto::LogChunk> || std::is_same_v<Reply, proto::StepGranted> ||
    std::is_same_v<Reply, proto::TokenMade> || std::is_same_v<Reply, proto::AuditPage>;

void put_printable(std::string& text, Lines lines) {
  if (!is_printable(text, lines)) text = printable(text, lines);
}

}  // namespace

template <class Reply>
void make_printable(Reply& reply) {
  if constexpr (!kIsData<Reply>) {
    constexpr Lines kLines =
        std::is_same_v<Reply, proto::TenancyDocuments> ? Lines::many : Lines::one;
    codec::each_text(reply, [](std::string_view field, auto& text) {
      if constexpr (!std::is_const_v<std::remove_reference_t<decltype(text)>>)
        if (field != "script") put_printable(text, kLines);
    });
  }
}

template <class Reply>
Result<void> read_reply(const Bytes& body, void* reply) {
  ASSIGN(decoded, codec::decode<Reply>(body));
  auto& out = *static_cast<Reply*>(reply);
  out = std::move(*decoded);
  make_printable(out);
  return {};
}

template <class Reply, class Request>
Result<Reply> Session::read_pages(Request request, Duration timeout, Retry retry) {
  Pages<Request>::first(request);
  Reply whole;
  Patience patience;
  bool any = retry == Retry::patiently;
  while (true) {
    ASSIGN(id, send(request));
    auto page = receive<Reply>(*id, timeout);
    if (!page && any && page.error().code == ErrorCode::too_many && patience.pause()) continue;
    if (!page) return page;
    any = true;
    if (!Pages<Request>::add(whole, std::move(*page), request)) break;
    patience = Patience();
  }
  Pages<Request>::finish(whole);
  return whole;
}

#define GANTRY_KIND_session(type)
#define GANTRY_KIND_read(type)
#define GANTRY_KIND_write(type)
#define GANTRY_KIND_reply(type)                            \
  template void make_printable<proto::type>(proto::type&); \
  template Result<void> read_reply<proto::type>(const Bytes&, void*);
#define GANTRY_KIND_report(type)
#define GANTRY_KIND_order(type)
#define X(type, number, from, kind, ...) GANTRY_KIND_##kind(type)
#include "common/proto/messages.def"
#undef X

#define PAGES(request, reply) \
  template Result<proto::reply> Session::read_pages<proto::reply>(proto::request, Duration, Retry);
PAGES(ListNodes, ListNodesReply)
PAGES(ListPartitions, ListPartitionsReply)
PAGES(ShowConfig, ShowConfigReply)
PAGES(ShareTree, ShareTreeReply)
PAGES(PriorityTuples, PriorityTuplesReply)
PAGES(TenancyHistory, TenancyHistoryReply)
PAGES(ListAccess, AccessReply)
#undef PAGES

}  // namespace gantry::cli
