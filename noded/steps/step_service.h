// Steps on this node: checks permissions, starts step shims, and helps a grun inside a container,
// which has no network of its own.
//
//   grun outside    -> our ROUTER (CURVE)  -> LaunchStep -> shim connects to grun
//   grun in a job   -> the job's socket    -> LaunchStep, for this node or passed on to another
//                   -> StepListen          -> shims connect to the stream port; the first bytes
//                   have a
//                                             ticket, and a relay copies between them and that grun
//
// A permission is a bearer token. The controller signs it for one attempt and step, and each node
// accepts it once. The daemon does not carry the data of a running step, so it may be restarted
// meanwhile. (A relay is a separate process.)
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/auth/signature.h"
#include "common/log/log.h"
#include "common/loop/loop.h"
#include "common/net/dealer.h"
#include "common/net/router.h"
#include "common/net/socket.h"
#include "common/proto/node_relay.h"
#include "common/proto/step_attach.h"
#include "common/proto/steps.h"
#include "common/result.h"
#include "noded/net/job_sockets.h"
#include "noded/runtime/runtime.h"

namespace gantry::node {

struct StreamPort {
  net::Socket socket;
  std::string address;  // tcp://HOST:PORT, for other nodes
};
// Listens on `host`. For the wildcard address it listens everywhere and reports the loopback
// address to others. That works only if all nodes are on one machine, so nodes of a real cluster
// need their own addresses.
Result<StreamPort> listen_on_any_port(const std::string& host);

inline constexpr std::size_t kTicketBytes = 32;
Bytes new_ticket();  // number of random hex digits
bool is_ticket(std::string_view text);

// Whether a shim, which is root and in the host's network, may connect to `address`
// ("tcp://HOST:PORT") for a client at `asker` (both numeric). It may if the host is the asker's
// own, which every user can reach anyway. Errors: permission_denied: the host is another one;
// invalid_argument: it is no such address.
Result<void> may_dial(std::string_view address, const std::string& asker);
// Adds to `address` ("HOST:PORT") that connections come from `host`, if both are numeric and of one
// family; otherwise the kernel chooses the source address.
std::string endpoint_from(const std::string& host, const std::string& address);

// The message that a step has ended, sent instead of a grun that is gone. It looks as if it came
// from inside the job.
proto::NodeRelay unheard_end(const runtime::RuntimeEvent& event);

const proto::StepNode* find_node(const proto::StepPermission& permission, const std::string& name);

// Largest allowed difference between the clocks of controller and node.
inline constexpr Duration kPermissionSkew = minutes(5);
inline constexpr Duration kPeerTimeout = seconds(20);  // time for another node to answer a launch
// Connections that have not sent a ticket yet. Each takes two descriptors; if the daemon may open
// only few, these may use a quarter of them.
inline constexpr std::size_t kMaxWaitingStreams = 1024;
// How many launches of one job may wait for other nodes at a time; a step on more nodes may have
// more. Each needs its own connection, and the daemon can have about a thousand. Beyond these
// limits a launch is refused, to be sent again (too_many).
inline constexpr std::size_t kMostPassedOn = 128;
inline constexpr std::size_t kMostPassedOnBytes = 128u << 20;  // bytes of one job's launches

// Runs steps: in containers (of_containers), or not at all (null_runtime.h).
class StepRuntime {
 public:
  virtual ~StepRuntime() = default;
  // The owner of an attempt that runs here.
  [[nodiscard]] virtual std::optional<Owner> owner_of(const proto::AttemptKey& key) const = 0;
  // Whether the attempt has its own network, in which it reaches its nodes by their names.
  [[nodiscard]] virtual bool has_network(const proto::AttemptKey& key) const {
    (void)key;
    return false;
  }
  virtual Result<void> begin_step(const runtime::StepRequest& request) = 0;
  virtual Result<void> attach_step(const runtime::StepAttachment& attachment) = 0;
};
std::unique_ptr<StepRuntime> of_containers(runtime::Runtime& runtime);

struct StepServiceOptions {
  std::string node;
  std::string listen_host;                   // address of the ROUTER and the stream port
  std::uint16_t port = 0;                    // port of the ROUTER
  std::string shim_path;                     // path of gantry-shim, which is also the relay
  net::KeyPair keys;                         // keys of the node
  std::vector<std::uint16_t> shared_cpus{};  // see RealRuntimeOptions
  std::map<std::uint16_t, std::uint32_t> socket_of{};  // socket of each of the machine's CPUs
  // The path of the job's socket inside the job; unset: jobs have none.
  std::function<std::string(const proto::AttemptKey&)> job_socket{};
};

class StepService {
 public:
  static Result<std::unique_ptr<StepService>> open(StepServiceOptions options, loop::Loop& loop,
                                                   const Logger& log,
                                                   std::unique_ptr<StepRuntime> runtime,
                                                   JobSockets& sockets);
  ~StepService();

  // the key comes with NodeAccept
  void set_permission_key(std::string_view raw) {
    if (const auto key = auth::verify_key_from_bytes(raw)) permission_key_ = *key;
  }
  // Handles a message on a job's socket; returns true if the message was for steps.
  bool local(JobConnection& connection, net::StreamMessage& message);

 private:
  struct Peer;     // a launch passed on to another node
  struct Waiting;  // a stream that has not sent its ticket yet
  struct Relay;    // a process that copies streams, until it ends
  StepService(StepServiceOptions options, loop::Loop& loop, const Logger& log,
              std::unique_ptr<StepRuntime> runtime, JobSockets& sockets, net::Router router,
              net::Socket listener, std::string stream_address);

  bool receive_one();
  // Message is LaunchStep or AttachStep; each has its own kind of permission.
  template <class Message>
  Result<proto::StepPermission> signed_permission(const Message& message) const;
  // Whether a shim may connect to the address in the message. The first form is for a message
  // through the ROUTER, from `asker`, the second for a message through a job's own socket.
  template <class Message>
  Result<void> check_listener(const Message& message, const std::string& asker) const;
  template <class Message>
  Result<void> check_listener(const Message& message, const JobConnection& connection) const;
  template <class Message>
  Result<void> act_for(const std::string& asker, std::string_view body);
  // Checks a message about a step on this node.
  template <class Message>
  Result<proto::StepPermission> check(const Message& message) const;
  // Checks a message about a step on another node: it must be of the asker's own job, or of another
  // component of it that is not on this node.
  template <class Message>
  Result<proto::StepPermission> check_passed_on(const JobConnection& connection,
                                                const Message& message) const;
  Result<void> act(const proto::LaunchStep& launch);
  Result<void> bind_tasks(const proto::LaunchStep& launch, runtime::StepRequest& request) const;
  Result<void> act(const proto::AttachStep& attach);
  template <class Message>
  void act_or_pass_on(JobConnection& connection, net::StreamMessage& message);
  const Bytes& ticket_of(std::uint64_t channel);
  // Whether the job may have one more waiting launch of this many bytes, for a step on this many
  // nodes.
  [[nodiscard]] bool may_pass_on(const proto::AttemptKey& key, std::size_t bytes,
                                 std::size_t nodes) const;
  void pass_on(JobConnection& connection, net::MessageHeader header, const proto::StepNode& node,
               std::string_view body);
  void peer_answered(std::uint64_t id);
  void accept_streams();
  void stream_readable(std::uint64_t id);
  bool start_relay(JobConnection& grun);
  // Connects a stream to grun through a relay, because the job must not get a socket of the host's
  // network.
  bool hand_stream(JobConnection& grun, const net::Socket& stream);

  StepServiceOptions options_;
  loop::Loop& loop_;
  const Logger& log_;
  std::unique_ptr<StepRuntime> runtime_;
  JobSockets& sockets_;
  net::Router router_;
  net::Socket listener_;
  std::string stream_address_;
  std::size_t most_waiting_;
  std::optional<auth::VerifyKey> permission_key_;
  std::set<std::pair<proto::AttemptKey, StepId>>
      launched_;  // steps of attempts that are still active
  std::map<std::uint64_t, std::unique_ptr<Peer>> peers_;
  std::map<std::uint64_t, std::unique_ptr<Waiting>> waiting_;
  std::map<std::uint64_t, std::unique_ptr<Relay>> relays_;
  static constexpr std::size_t kFewTickets = 64;
  std::map<Bytes, std::uint64_t> tickets_;    // ticket -> channel
  std::map<std::uint64_t, Bytes> ticket_of_;  // channel -> ticket
  std::size_t tickets_kept_ = kFewTickets;    // number of tickets when they were last cleaned up
  std::uint64_t next_id_ = 1;
  LogLimit not_handed_;  // limits log lines that a job's own user can cause
  loop::Watch queue_, accept_;
};

}  // namespace gantry::node
