// The controller's end of the wire: ZMTP with CURVE over sockets of our own, for clients and nodes
// alike. A thread of its own accepts, encrypts, reads and writes; this object hands messages over.
//
// A peer is one connection: its number is given here, is never used again, and nothing that the
// peer says (ZeroMQ's routing id above all) has a say in it. Each message comes with the key that
// its connection has proved; who a key belongs to is for the caller. A reply goes to the connection
// that asked, or to nobody.
//
// Everything that a peer may hold is bounded (kMost... below, RouterOptions): connections, half
// handshakes, unfinished messages, messages that wait for the caller, answers that are not read.
// What many share is shared by owners and not by connections, of which everybody opens as many as
// they like: a peer's owner is whom the caller says, and its network until it has said so.
// Nothing here blocks. Hand the Router to Loop::add_queue().
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

enum class PeerId : std::uint64_t {};  // one connection, as long as it lasts

// What a peer has shown to the caller, and with it how much it may hold.
enum class Standing : std::uint8_t {
  stranger,  // nothing: it has a key, as everybody can
  known,     // an identity
  node,      // that it is a node of ours
};

struct Incoming {
  PeerId peer{};
  PublicKey key;
  Bytes header;              // first frame, whatever its length
  Bytes body;                // second frame
  std::uint32_t frames = 0;  // how many there were; a proper message has kFrames
};

inline constexpr std::size_t kMostUnsent = 40u << 20;       // bytes that wait for one peer
inline constexpr std::size_t kMostUnsentNode = 256u << 20;  // and for a node
inline constexpr std::size_t kMostUnsentOfOwner = 192u << 20;
// Beyond either of these kFairUnsent for each peer; nodes are apart, as all jobs hang on them.
inline constexpr std::size_t kMostUnsentInAll = 768u << 20;
inline constexpr std::size_t kFairUnsent = 1u << 20;
inline constexpr std::size_t kMostHeld = 256u << 20;            // of unfinished messages, in all
inline constexpr std::size_t kMostHeldByStrangers = 64u << 20;  // and of strangers
inline constexpr std::size_t kMostWaiting = 1'024;              // messages of a peer for the caller
inline constexpr std::size_t kMostWaitingBytes = 16u << 20;   // and their bytes; nobody else's wait
inline constexpr std::size_t kMostWaitingOfOwner = 4'096;     // messages of all its peers
inline constexpr std::size_t kMostWaitingInAll = 256u << 20;  // bytes
inline constexpr std::size_t kMostHandshakes = 2'048;         // that have not ended, in all

// Who answers for a peer that has shown nothing: its address. Of IPv6 it is the network of 64 bits,
// as whoever has one address of it has them all.
std::string network_of(const std::string& address);

struct RouterOptions {
  std::vector<std::string>
      endpoints;  // "tcp://0.0.0.0:7600", "ipc:///run/x.sock"; port 0 or * = any
  KeyPair keys;
  int queued_messages = 20'000;  // that wait for one peer; beyond it send() fails
  int max_connections = 16'384;  // also raises the limit of open files as far as allowed
  Duration handshake_time = seconds(10);
  Duration stall_time = seconds(60);  // a peer that reads nothing of what waits for it
  // Strangers beyond this many make room for others, the longest connected of the address that has
  // most of them first; after stranger_time each goes. 0 = no limit.
  std::size_t max_strangers = 0;
  Duration stranger_time{};
};

class Router final : public loop::QueueSource {
 public:
  static Result<Router> open(const RouterOptions& options);
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router() override;  // what waits is offered to the peers once more

  // The next message, or nothing when there is none right now.
  std::optional<Incoming> receive();
  // Hears from receive(), after its last message, of each connection that had sent one and is gone.
  void on_closed(std::function<void(PeerId)> handler);
  // not_found: the peer has gone. limit_exceeded: it does not read, too much waits for it.
  // invalid_argument: a frame of more than kMaxFrameBytes.
  Result<void> send(PeerId peer, std::string_view header, std::string_view body);
  // `owner`: who answers for what a known peer holds, "uid 1000"; several peers may have one.
  void set_standing(PeerId peer, Standing standing, const std::string& owner = {});
  // After what waits for it has been written; a few seconds at the most.
  void close(PeerId peer);
  // "10.0.0.7"; "local" of a unix socket; "" when it has gone.
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
