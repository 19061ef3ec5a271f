// A command's connection: one blocking CURVE DEALER over a TCP or unix socket, speaking ZMTP 3.1
// itself (net/zmtp.h). Needs libsodium only, which is linked statically: loading libzmq would cost
// a command 2 ms before main().
//
// Every call has its own time limit and survives signals. After an error other than timed_out the
// connection is of no more use.
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
  std::optional<KeyPair> keys;     // unset: a fresh pair, for this session only
  Duration timeout = seconds(10);  // to connect and shake hands
  std::string from{};              // see connect_to(); of TCP only
};

class Client {
 public:
  // unavailable: nobody there, or it closed the connection (a wrong server key looks like that).
  static Result<Client> connect(const ClientOptions& options);
  // The same in two parts: what is done between them costs no time while the other side computes.
  // Only session_key() may be used until finish() has been Ok.
  static Result<Client> start(const ClientOptions& options);
  Result<void> finish();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // What credentials must cover.
  [[nodiscard]] const PublicKey& session_key() const;

  // Goes out with the next flush() or send(): requests made together share packets.
  void queue(std::string_view header, std::string_view body);
  [[nodiscard]] std::size_t queued_bytes() const;
  Result<void> flush(Duration timeout);
  Result<void> send(std::string_view header, std::string_view body, Duration timeout);
  Result<void> send_frames(std::initializer_list<std::string_view> frames, Duration timeout);
  // All frames of the next message. A timeout of zero looks without waiting.
  Result<std::vector<Bytes>> receive(Duration timeout);
  // For poll(): readable means receive(0) may have something. Call receive() until timed_out first.
  [[nodiscard]] int descriptor() const;

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::net
