// A command's conversation with the controller: it connects, proves who the user is, and asks.
//
// Inside a job the connection uses the job's own socket, and the job's node vouches for the user.
// On a login node it uses the socket of the node's daemon (session_socket.cc), where the kernel
// tells who the user is. Everywhere else, and if that socket is missing or refuses, it uses CURVE:
// Hello and the credential are sent in one packet with the first request, so a command takes the
// handshake and one round trip. Replies come in any order; each is matched to its request.
#pragma once

#include <fmt/core.h>

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/client_config.h"
#include "cli/pages.h"
#include "common/codec/codec.h"
#include "common/net/client.h"
#include "common/net/header.h"
#include "common/net/job_socket_client.h"
#include "common/proto/messages.h"
#include "common/result.h"

namespace gantry::cli {

inline constexpr Duration kCallTimeout = seconds(30);  // an answer that takes longer is an error
inline constexpr Duration kConnectTimeout = seconds(10);

// Pauses between attempts while the controller says that it has too many requests (too_many). Each
// pause is about twice as long as the one before; they are random, so that commands do not all ask
// again at the same time.
class Patience {
 public:
  explicit Patience(Duration whole = kCallTimeout);
  // Sleeps for the next pause. Returns false at once when the time for all attempts is used up.
  bool pause();

 private:
  Instant until_;
  Duration next_;
};

// Replaces unprintable characters in all texts of a reply, except in data and signed contents. The
// texts come from other users, and old ones may have been accepted under weaker rules; so neither a
// terminal nor a reader of JSON gets characters that are not printable. Made for every reply in
// session_replies.cc.
template <class Reply>
void make_printable(Reply& reply);

// The bytes of a reply as a printable `Reply`, which `reply` points to.
using ReadReply = Result<void> (*)(const Bytes& body, void* reply);
template <class Reply>
Result<void> read_reply(const Bytes& body, void* reply);

// A request that waits for its reply: its number, how to read the reply, and where to put it.
struct Awaited {
  std::uint16_t type;
  ReadReply read;
  void* reply;

  template <class Reply>
  static Awaited into(Reply& reply) {
    return {static_cast<std::uint16_t>(proto::number_of<Reply>), read_reply<Reply>, &reply};
  }
};

class Session {
 public:
  // Connects with the configuration that the environment selects. `program` is for the controller's
  // log.
  static Result<Session> open(std::string_view program);
  static Result<Session> open(std::string_view program, const ClientConfig& config);

  // Queues a request. It is sent at the next receive() at the latest, together with other queued
  // ones.
  template <class Request>
  Result<std::uint64_t> send(const Request& request) {
    return send_raw(static_cast<std::uint16_t>(proto::number_of<Request>), codec::encode(request));
  }

  // Waits for the reply to a request. After timed_out the request is still open, so that the caller
  // can wait again.
  template <class Reply>
  Result<Reply> receive(std::uint64_t request, Duration timeout) {
    Result<Reply> reply;
    if (auto done = receive(request, Awaited::into(*reply), timeout); !done)
      return tl::unexpected(std::move(done.error()));
    return reply;
  }

  // Sends a request and reads the reply to it into the place named by `awaited`.
  enum class Retry : std::uint8_t { never, patiently };
  Result<void> exchange(std::uint16_t type, const Bytes& body, const Awaited& awaited,
                        Duration timeout, Retry retry);

  // Asks and waits for the reply. A listing that comes in pages is read to its end; each page may
  // take `timeout`.
  template <class Reply, class Request>
  Result<Reply> call_once(const Request& request, Duration timeout = kCallTimeout) {
    return call<Reply>(request, timeout, Retry::never);
  }
  // Like call_once(), but repeats the request while the controller answers that it has too many
  // requests.
  template <class Reply, class Request>
  Result<Reply> call(const Request& request, Duration timeout = kCallTimeout) {
    return call<Reply>(request, timeout, Retry::patiently);
  }

  [[nodiscard]] const ClientConfig& config() const { return config_; }

 private:
  using Link = std::variant<net::Client, net::JobSocketClient>;
  Session(ClientConfig config, Link link, std::string_view program)
      : config_(std::move(config)), link_(std::move(link)), program_(program) {}

  struct Frame {
    std::uint16_t type = 0;
    Bytes body;
  };

  template <class Reply, class Request>
  Result<Reply> call(const Request& request, Duration timeout, Retry retry) {
    if constexpr (Pages<Request>::kAny) {
      return read_pages<Reply>(request, timeout, retry);
    } else {
      Result<Reply> reply;
      if (auto done = exchange(static_cast<std::uint16_t>(proto::number_of<Request>),
                               codec::encode(request), Awaited::into(*reply), timeout, retry);
          !done)
        return tl::unexpected(std::move(done.error()));
      return reply;
    }
  }
  Result<void> receive(std::uint64_t request, const Awaited& awaited, Duration timeout);

  // Reads all pages of a listing. If the controller has too many requests (too_many), this is an
  // error at the first page, unless `retry` says otherwise; for later pages this function pauses
  // and asks again. Made for every listing in session_replies.cc.
  template <class Reply, class Request>
  Result<Reply> read_pages(Request request, Duration timeout, Retry retry);

  static Result<Session> open_encrypted(std::string_view program, const ClientConfig& config);
  void introduce(const proto::Authenticate& authenticate);
  Result<Bytes> credential(proto::AuthMethod& method, const net::PublicKey& session_key) const;
  Result<std::uint64_t> send_raw(std::uint16_t type, const Bytes& body);
  Result<Bytes> receive_raw(std::uint64_t request, std::uint16_t type, Duration timeout);
  Result<net::StreamMessage> receive_message(Duration timeout);
  Result<void> receive_one(Duration timeout);

  // session_socket.cc: the socket of a login node's daemon, and the fallback to CURVE
  struct Sent {
    std::uint16_t type = 0;
    std::uint64_t request = 0;
    Bytes body;
  };
  // State of the other end, kept as long as the socket may turn out to be unusable.
  struct OverSocket {
    Instant opened{};
    bool lives = false;  // it has sent something
    bool heard = false;  // it has answered a request, so the controller accepts the node's word
    std::size_t waiting = 0;    // requests without an answer
    std::vector<Sent> unheard;  // requests that were sent before that
  };
  static std::optional<Session> open_socket(std::string_view program, const ClientConfig& config);
  [[nodiscard]] bool needs_encryption(std::uint16_t type) const;
  void note_sent(std::uint16_t type, std::uint64_t request, const Bytes& body);
  Result<void> go_around();
  Result<net::StreamMessage> receive_over_socket(Duration timeout);

  ClientConfig config_;
  Link link_;
  std::string program_;
  std::optional<OverSocket> socket_;
  // Ids up to introduction_ are Hello and Authenticate, or SocketHello.
  std::uint64_t introduction_ = 0;
  std::uint64_t last_request_ = 0;
  std::map<std::uint64_t, Frame> arrived_;  // replies that no caller has asked for yet
};

// Microseconds since 1970 by this machine's clock. It is used for credentials and for a user's
// "now". The cluster's time comes in replies.
Instant system_now();

// The controller's error as an error of this process.
Error to_error(const proto::ErrorReply& reply);

// Opens a session and sends one request. Opens another one while the controller answers too_many.
Result<void> ask(std::string_view program, std::uint16_t type, const Bytes& body,
                 const Awaited& awaited);

// Opens a session, asks one request and returns the reply; most commands need no more.
template <class Reply, class Request>
Result<Reply> ask(std::string_view program, const Request& request) {
  if constexpr (Pages<Request>::kAny) {
    ASSIGN(session, Session::open(program));
    return session->template call<Reply>(request);
  } else {
    Result<Reply> reply;
    if (auto done = ask(program, static_cast<std::uint16_t>(proto::number_of<Request>),
                        codec::encode(request), Awaited::into(*reply));
        !done)
      return tl::unexpected(std::move(done.error()));
    return reply;
  }
}

// Prints a reply as JSON. Returns 0, the exit status for it.
template <class Reply>
int print_pretty(const Reply& reply) {
  fmt::print("{}\n", codec::to_json(reply, codec::JsonStyle::pretty));
  return 0;
}

}  // namespace gantry::cli
