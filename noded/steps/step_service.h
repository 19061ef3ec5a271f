// Steps on this node: checks permissions, starts step shims, and helps a grun inside a container,
// which has no network of its own.
//
//   grun outside    -> our ROUTER (CURVE)  -> LaunchStep -> shim dials grun
//   grun in a job   -> the job's socket    -> LaunchStep, for us or passed on to the node it names
//                   -> StepListen          -> shims dial our stream port; the first bytes name the
//                                             ticket, and a relay copies between them and that grun
//
// A permission is a bearer token. The controller signs it for one attempt and step, and each node
// accepts it once. The daemon does not carry the data of a running step, so it may die meanwhile.
// (A relay is a process of its own.)
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
  std::string address;  // tcp://HOST:PORT, as another node dials it
};
// Listens on `host`. For the wildcard address it listens everywhere and gives the loopback address
// to others. That is right only if all nodes are on one machine, so give the nodes of a real
// cluster their own addresses.
Result<StreamPort> listen_on_any_port(const std::string& host);

inline constexpr std::size_t kTicketBytes = 32;
Bytes new_ticket();  // so many hex digits, random
bool is_ticket(std::string_view text);

// May a shim, which is root and in the host's network, dial `address` ("tcp://HOST:PORT") for a
// client at `asker` (as numbers)? It may if the host is the asker's own, because everybody can
// reach that one anyway. permission_denied: the host is another one; invalid_argument: it is no
// such address.
Result<void> may_dial(std::string_view address, const std::string& asker);
// Adds to `address` ("HOST:PORT") that connections come from `host`, if both are numbers of one
// family; otherwise the kernel chooses from where.
std::string endpoint_from(const std::string& host, const std::string& address);

// The message that a step has ended, in place of a grun that is gone. It looks as if it came from
// inside the job.
proto::NodeRelay unheard_end(const runtime::RuntimeEvent& event);

const proto::StepNode* find_node(const proto::StepPermission& permission, const std::string& name);

// Largest difference of the clocks of controller and node.
inline constexpr Duration kPermissionSkew = minutes(5);
inline constexpr Duration kPeerTimeout = seconds(20);  // time for another node to answer a launch
// Connections that have not named a ticket yet. Each takes two descriptors; in a daemon that may
// open few, they have a quarter of these.
inline constexpr std::size_t kMaxWaitingStreams = 1024;
// How many launches of one job may wait for other nodes at a time; more are allowed only for a step
// on more nodes. Each needs a connection of its own, and the daemon has about a thousand. Beyond
// these limits a launch is refused, to be asked again (too_many).
inline constexpr std::size_t kMostPassedOn = 128;
inline constexpr std::size_t kMostPassedOnBytes = 128u << 20;  // bytes of one job's launches

// Runs steps: in containers (of_containers), or not at all (null_runtime.h).
class StepRuntime {
 public:
  virtual ~StepRuntime() = default;
  // The owner of an attempt that runs here.
  [[nodiscard]] virtual std::optional<Owner> owner_of(const proto::AttemptKey& key) const = 0;
  // Whether the attempt reaches its nodes in a network of its own, by their names.
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
  std::string shim_path;                     // path of gantry-shim, which also is the relay
  net::KeyPair keys;                         // the node's
  std::vector<std::uint16_t> shared_cpus{};  // see RealRuntimeOptions
  std::map<std::uint16_t, std::uint32_t> socket_of{};  // sockets of the machine's CPUs
  // The job's socket as programs of the job see it; unset: jobs have none.
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
  struct Waiting;  // a stream that has not said its ticket yet
  struct Relay;    // a process that copies streams, until it has ended
  StepService(StepServiceOptions options, loop::Loop& loop, const Logger& log,
              std::unique_ptr<StepRuntime> runtime, JobSockets& sockets, net::Router router,
              net::Socket listener, std::string stream_address);

  bool receive_one();
  // Message is LaunchStep or AttachStep; each has its own kind of permission.
  template <class Message>
  Result<proto::StepPermission> signed_permission(const Message& message) const;
  // May a shim dial the address that the message names? The first form is for a message that came
  // through the ROUTER, from `asker`, and the second for one that came through a job's own socket.
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
  // component of it, which is not here.
  template <class Message>
  Result<proto::StepPermission> check_passed_on(const JobConnection& connection,
                                                const Message& message) const;
  Result<void> act(const proto::LaunchStep& launch);
  Result<void> bind_tasks(const proto::LaunchStep& launch, runtime::StepRequest& request) const;
  Result<void> act(const proto::AttachStep& attach);
  template <class Message>
  void act_or_pass_on(JobConnection& connection, net::StreamMessage& message);
  const Bytes& ticket_of(std::uint64_t channel);
  // May the job have one more launch of so many bytes waiting, for a step on so many nodes?
  [[nodiscard]] bool may_pass_on(const proto::AttemptKey& key, std::size_t bytes,
                                 std::size_t nodes) const;
  void pass_on(JobConnection& connection, net::MessageHeader header, const proto::StepNode& node,
               std::string_view body);
  void peer_answered(std::uint64_t id);
  void accept_streams();
  void stream_readable(std::uint64_t id);
  bool start_relay(JobConnection& grun);
  // Passes a stream to grun through a relay, because the job has no socket of the host's network.
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
  std::set<std::pair<proto::AttemptKey, StepId>> launched_;  // steps of attempts that still live
  std::map<std::uint64_t, std::unique_ptr<Peer>> peers_;
  std::map<std::uint64_t, std::unique_ptr<Waiting>> waiting_;
  std::map<std::uint64_t, std::unique_ptr<Relay>> relays_;
  static constexpr std::size_t kFewTickets = 64;
  std::map<Bytes, std::uint64_t> tickets_;    // ticket -> channel
  std::map<std::uint64_t, Bytes> ticket_of_;  // channel -> ticket
  std::size_t tickets_kept_ = kFewTickets;    // number of tickets when they were last cleaned up
  std::uint64_t next_id_ = 1;
  LogLimit not_handed_;  // a job's own user can bring it about
  loop::Watch queue_, accept_;
};

}  // namespace gantry::node
