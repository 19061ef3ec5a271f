// The data that the two threads of a Router share: messages on their way in and out, and how much
// waits for each peer. Private to common/net.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/net/router.h"
#include "common/net/socket.h"

namespace gantry::net {

// A descriptor that is readable after ring(), until silence().
class Bell {
 public:
  Bell();
  [[nodiscard]] int fd() const { return socket_.fd(); }
  void ring() const;
  void silence() const;

 private:
  Socket socket_;
};

struct RouterEvent {
  Incoming message;
  bool closed = false;  // the peer has closed; there is no message
};

struct RouterCommand {
  enum class Kind : std::uint8_t { send, close, standing, resume };
  Kind kind = Kind::send;
  PeerId peer{};
  Standing standing = Standing::stranger;
  Bytes header, body;
  std::string owner;  // with Kind::standing
};

struct UnsentLimits {  // bytes
  std::size_t peer = kMostUnsent, node = kMostUnsentNode;
  std::size_t owner = kMostUnsentOfOwner, in_all = kMostUnsentInAll, fair = kFairUnsent;
};

class RouterQueues {
 public:
  explicit RouterQueues(const UnsentLimits& unsent = {}) : unsent_(unsent) {}

  // Functions for the caller's thread.
  std::deque<RouterEvent> take();  // returns all events that have come
  Result<void> send(PeerId peer, std::string_view header, std::string_view body,
                    std::size_t most_messages);
  void command(RouterCommand command);
  [[nodiscard]] std::string address_of(PeerId peer) const;
  [[nodiscard]] bool empty() const;
  void stop();
  [[nodiscard]] const Bell& caller_bell() const { return caller_bell_; }

  // Functions for the Router's own thread.
  void add_peer(PeerId peer, const std::string& address);
  void remove_peer(PeerId peer, bool tell);
  // Returns true if enough messages of this peer wait; the thread then reads nothing from it until
  // a `resume` comes.
  bool deliver(std::vector<Incoming>&& messages);
  // Returns true if enough messages of the peer's owner wait. Called before anything is read.
  bool hold_back(PeerId peer);
  std::vector<RouterCommand> commands();
  void sent(PeerId peer, std::string_view header, std::string_view body);
  [[nodiscard]] bool stopping() const { return stopping_; }
  [[nodiscard]] const Bell& thread_bell() const { return thread_bell_; }

 private:
  struct Count {
    std::size_t messages = 0, bytes = 0;
  };
  struct Peer {
    std::string address;
    std::string owner;  // "" for a node
    Standing standing = Standing::stranger;
    Count out;
    Count in;  // in the batch that the caller takes next
    std::uint64_t batch = 0;
  };
  void push(RouterEvent&& event);
  void push(RouterCommand&& command);
  void set_owner(Peer& peer, std::string owner);
  void count_out(const Peer& peer, std::size_t add, std::size_t take);
  [[nodiscard]] std::size_t most_unsent(const Peer& peer, std::size_t bytes) const;

  const UnsentLimits unsent_;

  Bell caller_bell_, thread_bell_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;  // guards everything below
  std::deque<RouterEvent> events_;
  std::vector<RouterCommand> commands_;
  std::unordered_map<PeerId, Peer> peers_;
  std::vector<PeerId> paused_;
  std::unordered_map<std::string, std::size_t> in_of_;   // messages in events_, by owner
  std::unordered_map<std::string, std::size_t> out_of_;  // bytes that wait to leave, by owner
  std::size_t event_bytes_ = 0;                          // bytes in events_
  std::size_t out_bytes_ = 0;                            // waiting bytes of all peers
  std::uint64_t batch_ = 1;                              // grows with each take()
};

}  // namespace gantry::net
