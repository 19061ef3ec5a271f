// The node daemon: the core, what carries out its actions, and the link to the controller, in one
// loop.
//
// At the end of each turn the core's actions are carried out, and the resulting events go back into
// the core. When there are no more actions, its messages are sent. An epoch that cannot be made
// durable ends the daemon with a clear message; its jobs continue under their shims. If the highest
// job id or the last contact cannot be written, the daemon warns and writes it later.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "common/log/log.h"
#include "common/loop/clock.h"
#include "common/loop/loop.h"
#include "common/net/dealer.h"
#include "common/net/header.h"
#include "common/proto/control.h"
#include "common/proto/node_relay.h"
#include "common/proto/session.h"
#include "common/result.h"
#include "noded/core/core.h"
#include "noded/log_reader.h"
#include "noded/machine/files.h"
#include "noded/net/job_sockets.h"
#include "noded/net/user_socket.h"
#include "noded/runtime/job_dir.h"
#include "noded/seam.h"

namespace gantry::node {

// Keeps what a node daemon must remember over a restart, besides its attempts: the epoch of the
// newest controller, the highest job id that it was told, and under fencing when that controller is
// known to have last received its messages. The files are in the state directory:
//
//   memory.msgpack   Memory without the contact; durable through a power cut
//   contact          under fencing, for the shims as well (noded/runtime/job_dir.h); outlives the
//                    daemon, not the machine
//
// A MemoryFile holds the lock of the state directory for as long as it exists, so each directory
// has only one daemon.
class MemoryFile {
 public:
  // Makes the directory. Error wrong_state: another daemon uses it.
  static Result<MemoryFile> open(const std::string& state_dir);

  [[nodiscard]] const Memory& memory() const { return memory_; }
  Result<void> remember(const RememberEpoch& what);
  Result<void> remember(const RememberJob& what);
  Result<void> remember(const RememberContact& what, Instant now);

 private:
  MemoryFile() = default;
  Result<void> write();
  void drop_contact() {
    if (!memory_.fence_after) ::unlinkat(directory_.get(), runtime::kContactFile, 0);
  }
  Fd directory_;
  Fd lock_;
  std::string path_;
  Memory memory_;
};

class Daemon {
 public:
  struct Parts {
    proto::NodeRegister facts;
    MemoryFile memory;
    net::Dealer link;
    std::unique_ptr<AttemptRuntime> runtime;
    // The GPUs, including those that attempts of earlier daemons hold; called when these are known.
    // Empty: the node has no GPUs.
    std::function<GpuInventory()> gpus;
    std::vector<std::string> storage{};  // noded.storage
  };
  // start() gets `sockets` as an argument, because the runtime needs them and is made before the
  // daemon.
  Daemon(loop::Loop& loop, const Logger& log, Parts parts);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // `users` is null unless this is a login node.
  void start(JobSockets& sockets, UserSocket* users);
  // Tells the controller that the daemon stops, then stops the loop. Jobs continue.
  void stop() { leave({}); }
  // Stops without telling the controller, for a daemon that is replaced at once: for the controller
  // nothing changes until the new one registers.
  void make_way() { leave({.makes_way = true}); }
  void gpus_changed(const GpuInventory& now) { events_.emplace_back(GpusChanged{now}); }
  // Accepts an event that an action produces between two turns.
  void take(Input&& event) { events_.push_back(std::move(event)); }
  // Returns false if there is no session with the controller now.
  bool relay(const proto::NodeRelay& relay) { return pass_on(relay); }
  bool relay(const proto::UserRelay& relay) { return link_lives_ && pass_on(relay); }
  bool relay(const proto::UsersGone& gone) { return pass_on(gone); }

  [[nodiscard]] std::optional<Error> failure() const { return failure_; }

  // Called at each registration with the key that signs step permissions.
  std::function<void(std::string_view)> on_permission_key;
  // Called when the controller orders the configuration to be read again.
  std::function<void()> on_reread;
  // Returns what a heartbeat reports about neighbours; empty function: nothing is watched.
  std::function<proto::NodeSharing()> sharing;

 private:
  void leave(Stop how);
  bool receive_one();
  void watch_link();
  template <class Relayed>
  bool pass_on(const Relayed& relayed);
  void finish_turn();
  void act(Action&& action);
  void send(Report&& report);
  void set_timer(std::optional<Instant> wake);
  // Logs the first failed write of data that may be lost, and later that writing works again.
  void say_kept(bool& was_kept, const Result<void>& kept, std::string_view what);
  void fail_with(Error error);

  loop::Loop& loop_;
  const Logger& log_;
  Parts parts_;
  loop::ClusterClock clock_;
  std::unique_ptr<Core> core_;
  LogReader logs_;
  JobSockets* sockets_ = nullptr;
  UserSocket* users_ = nullptr;
  std::vector<Input> events_;  // events produced by actions, for the core
  bool stopping_ = false;
  std::optional<Error> failure_;
  std::optional<Instant> armed_;
  bool was_registered_ = false;
  bool link_lives_ = false;  // the controller has sent something over the present connection
  bool job_kept_ = true, contact_kept_ = true;
  std::string trouble_;  // trouble as it was last logged
  LogLimit bad_message_, full_queue_;
  loop::Watch timer_, queue_, turn_, poll_, farewell_, link_;
};

// The node's side of the wire: decodes orders and encodes reports, by the numbers of messages.def.
// Only ErrorReply and messages that the table calls orders can be decoded here.

using FromWire = std::variant<Order, proto::RelayReply, proto::ErrorReply, proto::RereadConfig>;

// malformed, unsupported, or version_mismatch.
Result<FromWire> decode_order(std::string_view header, std::string_view body);

struct ToWire {
  net::HeaderBytes header;
  Bytes body;
};
ToWire encode_report(const Report& report);
ToWire encode_relay(const proto::NodeRelay& relay);
ToWire encode_relay(const proto::UserRelay& relay);
ToWire encode_relay(const proto::UsersGone& gone);

}  // namespace gantry::node
