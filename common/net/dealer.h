// A node's link to the controller: a ZeroMQ DEALER with CURVE and a key pair of its own. ZeroMQ
// reconnects by itself, for ever; what was queued for a lost connection may be lost with it, which
// the node protocol expects.
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
  Duration silence = seconds(30);  // a connection that carries nothing for so long is made anew
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
  // limit_exceeded: too much is queued already (the controller is away). invalid_argument: a frame
  // of more than kMaxFrameBytes.
  Result<void> send(std::string_view header, std::string_view body);

  [[nodiscard]] int descriptor() const override;
  [[nodiscard]] bool readable() override;

 private:
  struct Impl;
  explicit Dealer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::net
