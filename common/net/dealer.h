// A node's connection to the controller: a ZeroMQ DEALER with CURVE and a key pair of its own.
// ZeroMQ reconnects by itself, for ever. Messages that were queued for a lost connection may be
// lost with it; the node protocol expects that.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/loop/queue_source.h"
#include "common/net/keys.h"
#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::net {

struct DealerOptions {
  std::string endpoint;  // "tcp://ctld:7600"
  PublicKey server_key;
  KeyPair keys;
  int queued_messages = 20'000;  // each direction
  Duration reconnect_min = milliseconds(100);
  Duration reconnect_max = seconds(5);
  Duration silence = seconds(30);  // a connection without messages for this long is replaced
};

class Dealer final : public loop::QueueSource {
 public:
  struct Message {
    Bytes header;
    Bytes body;
    std::uint32_t frames = 0;
  };
  static Result<Dealer> open(const DealerOptions& options);
  Dealer(Dealer&&) noexcept;
  Dealer& operator=(Dealer&&) noexcept;
  ~Dealer() override;

  std::optional<Message> receive();
  // Errors: limit_exceeded: too much is queued already (the controller is down); invalid_argument:
  // a frame is larger than kMaxFrameBytes.
  Result<void> send(std::string_view header, std::string_view body);

  // From the first call on, tells when the connection ends: give the source to Loop::add_queue()
  // and call link_ended() until it is false.
  Result<loop::QueueSource*> watch_link();
  // Returns true for each end of a connection that was not told yet.
  bool link_ended();

  [[nodiscard]] int descriptor() const override;
  [[nodiscard]] bool readable() override;

 private:
  struct Impl;
  explicit Dealer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::net
