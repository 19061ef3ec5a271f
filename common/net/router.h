// The controller's end of the wire: ZMTP with CURVE over sockets of our own, for clients and nodes
// alike. A thread of its own accepts, encrypts, reads and writes; this object passes the messages
// to and from the caller's thread.
//
// A peer is one connection. Its number is given here and never used again; nothing that the peer
// says about itself (above all ZeroMQ's routing id) is used. Each message comes with the key that
// its connection has proved; the caller has to know whose key it is. A reply goes to the connection
// that asked, or to nobody.
//
// Everything that a peer can occupy is limited (kMost... below, RouterOptions): connections,
// unfinished handshakes, unfinished messages, messages that wait for the caller, and answers that
// are not read. Limits that many peers share are divided between owners, not connections, because
// everybody can open any number of connections. The caller says who the owner of a peer is; until
// then it is the peer's network. Nothing here blocks. Give the Router to Loop::add_queue().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/loop/queue_source.h"
#include "common/net/header.h"
#include "common/net/keys.h"
#include "common/result.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::net {

enum class PeerId : std::uint64_t {};  // one connection, for as long as it lasts

// What a peer has proved to the caller, which determines its limits.
enum class Standing : std::uint8_t {
  stranger,  // nothing but a key, which everybody can make
  known,     // its identity is known
  node,      // it is one of the cluster's nodes
};

struct Incoming {
  PeerId peer{};
  PublicKey key;
  Bytes header;              // first frame, whatever its length
  Bytes body;                // second frame
  std::uint32_t frames = 0;  // number of frames; a proper message has kFrames
};

inline constexpr std::size_t kMostUnsent = 40u << 20;       // bytes that wait for one peer
inline constexpr std::size_t kMostUnsentNode = 256u << 20;  // likewise for a node
inline constexpr std::size_t kMostUnsentOfOwner = 192u << 20;
// If the output waiting for one owner exceeds kMostUnsentOfOwner, or that for all peers exceeds
// kMostUnsentInAll, each peer may have only kFairUnsent. This does not limit nodes, because all
// jobs depend on them.
inline constexpr std::size_t kMostUnsentInAll = 768u << 20;
inline constexpr std::size_t kFairUnsent = 1u << 20;
inline constexpr std::size_t kMostHeld = 256u << 20;  // bytes of unfinished messages, in total
inline constexpr std::size_t kMostHeldByStrangers = 64u << 20;  // likewise for strangers only
inline constexpr std::size_t kMostWaiting = 1'024;  // messages of one peer that wait for the caller
inline constexpr std::size_t kMostWaitingBytes = 16u << 20;   // bytes of these messages
inline constexpr std::size_t kMostWaitingOfOwner = 4'096;     // messages of all peers of an owner
inline constexpr std::size_t kMostWaitingInAll = 256u << 20;  // bytes of all peers
inline constexpr std::size_t kMostHandshakes = 2'048;         // unfinished handshakes of all peers

// The owner of an unauthenticated peer: its address. For IPv6 it is the network of 64 bits, because
// whoever has one address of such a network has all of them.
std::string network_of(const std::string& address);

struct RouterOptions {
  std::vector<std::string>
      endpoints;  // "tcp://0.0.0.0:7600", "ipc:///run/x.sock"; port 0 or * = any
  KeyPair keys;
  int queued_messages = 20'000;  // messages that wait for one peer; beyond it send() fails
  int max_connections = 16'384;  // also raises the limit of open files as far as allowed
  Duration handshake_time = seconds(10);
  // A peer that reads nothing for this long while output waits for it is closed.
  Duration stall_time = seconds(60);
  // If there are more strangers than this, some are closed: first the one that is connected
  // longest, from the address that has most strangers. Every stranger is closed after
  // stranger_time. 0 = no limit.
  std::size_t max_strangers = 0;
  Duration stranger_time{};
};

class Router final : public loop::QueueSource {
 public:
  static Result<Router> open(const RouterOptions& options);
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router() override;  // offers the waiting output to the peers once more

  // The next message; nullopt if there is none right now.
  std::optional<Incoming> receive();
  // After its last message was received, the caller is told of the end of each connection that had
  // sent a message.
  void on_closed(std::function<void(PeerId)> handler);
  // The error not_found means that the peer has gone; limit_exceeded means that it does not read
  // and too much waits for it; invalid_argument means that a frame is larger than kMaxFrameBytes.
  Result<void> send(PeerId peer, std::string_view header, std::string_view body);
  // Sets what a peer has proved. `owner` answers for what the peer occupies ("uid 1000"); several
  // peers may have the same owner.
  void set_standing(PeerId peer, Standing standing, const std::string& owner = {});
  // Closes the peer after its waiting output was written, or after a few seconds.
  void close(PeerId peer);
  // "10.0.0.7"; "local" for a unix socket; "" if the peer has gone.
  [[nodiscard]] std::string address_of(PeerId peer) const;
  [[nodiscard]] const std::vector<std::string>& endpoints() const;  // as bound, with real ports

  [[nodiscard]] int descriptor() const override;
  [[nodiscard]] bool readable() override;

 private:
  struct Impl;
  explicit Router(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::net

template <>
struct std::hash<gantry::net::PeerId> {
  std::size_t operator()(gantry::net::PeerId id) const noexcept {
    return static_cast<std::size_t>(id);
  }
};
