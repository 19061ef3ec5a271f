// A command's connection: one blocking CURVE DEALER over a TCP or unix socket. It speaks ZMTP 3.1
// itself (net/zmtp.h) and needs only libsodium, which is linked statically: loading libzmq would
// cost a command 2 ms before main().
//
// Every call has its own time limit and is not disturbed by signals. After an error other than
// timed_out the connection cannot be used any more.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/net/keys.h"
#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::net {

struct ClientOptions {
  std::string address;  // "tcp://HOST:PORT" or "ipc:///PATH"
  PublicKey server_key;
  std::optional<KeyPair> keys;     // not set: a new pair, for this session only
  Duration timeout = seconds(10);  // to connect and shake hands
  std::string from{};              // see connect_to(); for TCP only
};

class Client {
 public:
  // Connects. The error unavailable means that nobody listens there, or that the other side closed
  // the connection (for example because of a wrong server key).
  static Result<Client> connect(const ClientOptions& options);
  // The same in two parts. Work between them costs no time, because the other side computes
  // meanwhile. Only session_key() may be used until finish() has returned Ok.
  static Result<Client> start(const ClientOptions& options);
  Result<void> finish();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // The key that credentials must cover.
  [[nodiscard]] const PublicKey& session_key() const;

  // Queues a message. It is sent with the next flush() or send(), so that requests that are made
  // together share packets.
  void queue(std::string_view header, std::string_view body);
  [[nodiscard]] std::size_t queued_bytes() const;
  Result<void> flush(Duration timeout);
  Result<void> send(std::string_view header, std::string_view body, Duration timeout);
  Result<void> send_frames(std::initializer_list<std::string_view> frames, Duration timeout);
  // Returns all frames of the next message. A timeout of zero only looks, without waiting.
  Result<std::vector<Bytes>> receive(Duration timeout);
  // A descriptor for poll(): when it is readable, receive(0) may return something. Call receive()
  // until timed_out before polling.
  [[nodiscard]] int descriptor() const;

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::net
