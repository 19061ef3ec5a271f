// The controller's end of the wire: a ZeroMQ ROUTER with CURVE, for clients and nodes alike.
//
// Every client key is accepted at this level; who a key belongs to is for the caller, and so each
// message comes with its sender's public key, which CURVE has proved. Nothing here blocks. ZeroMQ's
// descriptor is edge-triggered: hand the Router to Loop::add_queue(), which knows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/loop/queue_source.h"
#include "common/net/header.h"
#include "common/net/keys.h"
#include "common/result.h"
#include "common/types.h"

namespace gantry::net {

using PeerId = Bytes;  // one connection, as long as it lasts; never reused by a Router

struct Incoming {
  PeerId peer;
  PublicKey key;
  Bytes header;              // first frame, whatever its length
  Bytes body;                // second frame
  std::uint32_t frames = 0;  // how many there were; a proper message has kFrames
};

struct RouterOptions {
  std::vector<std::string>
      endpoints;  // "tcp://0.0.0.0:7600", "ipc:///run/x.sock"; port 0 or * = any
  KeyPair keys;
  int queued_messages = 20'000;  // per peer and direction; beyond it a peer has to wait
  int max_connections = 16'384;  // also raises the limit of open files as far as allowed
};

class Router final : public loop::QueueSource {
 public:
  static Result<Router> open(const RouterOptions& options);
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router() override;

  // The next message, or nothing when there is none right now.
  std::optional<Incoming> receive();
  // not_found: the peer has gone. limit_exceeded: it does not read, its queue is full.
  Result<void> send(const PeerId& peer, std::string_view header, std::string_view body);
  [[nodiscard]] const std::vector<std::string>& endpoints() const;  // as bound, with real ports

  [[nodiscard]] int descriptor() const override;
  [[nodiscard]] bool readable() override;

 private:
  struct Impl;
  explicit Router(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::net
