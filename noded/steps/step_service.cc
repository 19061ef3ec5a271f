// Permissions and launches. step_streams.cc handles the streams of a grun without a network.
#include "noded/steps/step_service.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/codec/codec.h"
#include "common/net/job_socket_client.h"
#include "common/net/keys.h"
#include "common/net/listen.h"
#include "common/proto/message_table.h"
#include "common/proto/messages.h"
#include "noded/core/job_environment.h"
#include "noded/core/task_places.h"
#include "noded/machine/discover.h"
#include "noded/runtime/job_dir.h"

namespace gantry::node {

namespace {

// Limits of connections to the ROUTER, where a grun sends one request and disconnects.
constexpr std::size_t kMostAskers = 4'096;
constexpr Duration kAskerTime = seconds(60);

template <class T>
constexpr std::uint16_t number = static_cast<std::uint16_t>(proto::number_of<T>);

// True if receive_one() handles every message that clients send to a node. SocketHello belongs to
// net/user_socket.cc.
constexpr bool complete() {
  return std::ranges::all_of(proto::kMessages, [](const proto::MessageRow& m) {
    const bool asked = m.taker == proto::Taker::noded && m.from.has(proto::Sender::client) &&
                       m.kind != proto::MessageKind::session;
    const bool named =
        m.type == proto::MessageType::LaunchStep || m.type == proto::MessageType::AttachStep;
    return asked == named;
  });
}
static_assert(complete());

struct Answer {
  std::uint16_t type = 0;
  Bytes body;
};

Answer answer_of(const Result<void>& result) {
  if (result) return {number<proto::Ok>, codec::encode(proto::Ok{})};
  return {number<proto::ErrorReply>,
          codec::encode(proto::ErrorReply{static_cast<std::uint16_t>(result.error().code),
                                          result.error().message})};
}

// The address of the first node's machine cannot be used in a job's own network. Steps of several
// components use the first node of all of them.
void meet_by_name(const proto::LaunchStep& launch, const proto::StepPermission& permission,
                  StepEnvironment& environment) {
  if (!launch.meeting_point) return;
  const bool joined = launch.het && !launch.het->nodes.empty();
  environment.shared["MASTER_ADDR"] =
      joined ? launch.het->nodes.front() : permission.nodes.front().node;
}

class ContainerSteps final : public StepRuntime {
 public:
  explicit ContainerSteps(runtime::Runtime& runtime) : runtime_(runtime) {}
  [[nodiscard]] std::optional<Owner> owner_of(const proto::AttemptKey& key) const override {
    return runtime_.owner_of(key);
  }
  [[nodiscard]] bool has_network(const proto::AttemptKey& key) const override {
    return runtime_.has_network(key);
  }
  Result<void> begin_step(const runtime::StepRequest& request) override {
    return runtime_.begin_step(request);
  }
  Result<void> attach_step(const runtime::StepAttachment& attachment) override {
    return runtime_.attach_step(attachment);
  }

 private:
  runtime::Runtime& runtime_;
};

// The address in network byte order, IPv4 as ::ffff:1.2.3.4; nullopt if `host` is not numeric.
std::optional<std::array<std::uint8_t, 16>> number_of_host(const std::string& host) {
  std::array<std::uint8_t, 16> bytes{};
  if (::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1) return bytes;
  return ::inet_pton(AF_INET6, ("::ffff:" + host).c_str(), bytes.data()) == 1 ? std::optional(bytes)
                                                                              : std::nullopt;
}

constexpr std::string_view kTcp = "tcp://";

}  // namespace

std::unique_ptr<StepRuntime> of_containers(runtime::Runtime& runtime) {
  return std::make_unique<ContainerSteps>(runtime);
}

Result<std::unique_ptr<StepService>> StepService::open(StepServiceOptions options, loop::Loop& loop,
                                                       const Logger& log,
                                                       std::unique_ptr<StepRuntime> runtime,
                                                       JobSockets& sockets) {
  net::RouterOptions router_options;
  router_options.endpoints = {fmt::format("tcp://{}:{}", options.listen_host, options.port)};
  router_options.keys = options.keys;
  router_options.max_connections = static_cast<int>(kMostAskers);
  router_options.max_strangers = kMostAskers;
  router_options.stranger_time = kAskerTime;
  // Each waiting stream takes two descriptors, beside the connections of the askers.
  net::raise_file_limit(kMostAskers + 2 * kMaxWaitingStreams);
  ASSIGN(router, net::Router::open(router_options));
  ASSIGN(streams, listen_on_any_port(options.listen_host));
  return std::unique_ptr<StepService>(
      new StepService(std::move(options), loop, log, std::move(runtime), sockets,
                      std::move(*router), std::move(streams->socket), std::move(streams->address)));
}

bool StepService::receive_one() {
  auto incoming = router_.receive();
  if (!incoming) return false;
  const auto header = net::decode_header(incoming->header);
  Result<void> result;
  if (!header || incoming->frames != net::kFrames) {
    result = fail(ErrorCode::malformed, "a message has two frames, header and body");
  } else if (header->protocol < proto::kOldestProtocol ||
             header->protocol > proto::kProtocolVersion) {
    result =
        fail(ErrorCode::version_mismatch, fmt::format("this node speaks protocol {}, not {}",
                                                      proto::kProtocolVersion, header->protocol));
  } else if (auto sent =
                 proto::check_sender(header->type, proto::Sender::client, proto::Place::node);
             !sent) {
    result = std::move(sent);
  } else if (header->type == number<proto::LaunchStep>) {
    result = act_for<proto::LaunchStep>(router_.address_of(incoming->peer), incoming->body);
  } else if (header->type == number<proto::AttachStep>) {
    result = act_for<proto::AttachStep>(router_.address_of(incoming->peer), incoming->body);
  } else {
    result = fail(ErrorCode::unsupported, "only steps are started and attached to here");
  }
  const Answer answer = answer_of(result);
  const net::HeaderBytes out({proto::kProtocolVersion, answer.type, header ? header->request : 0});
  // If the peer is gone, that matters only to the peer.
  (void)router_.send(incoming->peer, out.view(), answer.body);
  // Checking a signature takes time, so a client with a wrong one has to connect again.
  if (!result) router_.close(incoming->peer);
  return true;
}

namespace {

tl::unexpected<Error> denied(std::string why) {
  return fail(ErrorCode::permission_denied, std::move(why));
}

std::string_view context_of(const proto::LaunchStep&) {
  return proto::kStepPermissionContext;
}
std::string_view context_of(const proto::AttachStep&) {
  return proto::kStepAttachContext;
}

}  // namespace

template <class Message>
Result<proto::StepPermission> StepService::signed_permission(const Message& message) const {
  if (!permission_key_) return denied("this node is not registered with its controller yet");
  if (!auth::verify(*permission_key_, context_of(message), message.permission, message.signature))
    return denied("the permission is not signed by this cluster's controller");
  auto permission = codec::decode<proto::StepPermission>(message.permission);
  if (!permission) return permission;
  if (runtime::wall_clock() > permission->expires + kPermissionSkew)
    return denied("the permission has expired");
  return permission;
}

// A step may have no reader; then no address is connected.
template <class Message>
Result<void> StepService::check_listener(const Message& message, const std::string& asker) const {
  if (message.io_address.empty()) return {};
  if (!is_ticket(message.io_ticket)) return denied("a ticket of a stream has 32 hex digits");
  return may_dial(message.io_address, asker);
}

template <class Message>
Result<void> StepService::check_listener(const Message& message,
                                         const JobConnection& connection) const {
  if (message.io_address.empty()) return {};
  const auto channel = tickets_.find(message.io_ticket);
  const JobConnection* reader =
      channel == tickets_.end() ? nullptr : sockets_.find(channel->second);
  if (reader != nullptr && reader->key() == connection.key() &&
      message.io_address == stream_address_)
    return {};
  return denied(
      "a step's stream goes to where the job's own node listens for it, with the ticket "
      "that StepListen has given");
}

template <class Message>
Result<void> StepService::act_for(const std::string& asker, std::string_view body) {
  ASSIGN(message, codec::decode<Message>(body));
  TRY(check_listener(*message, asker));
  return act(*message);
}

template <class Message>
Result<proto::StepPermission> StepService::check(const Message& message) const {
  auto permission = signed_permission(message);
  if (!permission) return permission;
  const auto owner = runtime_->owner_of(permission->key);
  if (!owner)
    return fail(ErrorCode::not_found, fmt::format("attempt {} of job {} does not run on node {}",
                                                  permission->key.attempt.value(),
                                                  permission->key.job.value(), options_.node));
  if (owner->uid != permission->owner.uid) return denied("the permission is for another user");
  return permission;
}

template <class Message>
Result<proto::StepPermission> StepService::check_passed_on(const JobConnection& connection,
                                                           const Message& message) const {
  auto permission = signed_permission(message);
  if (!permission) return permission;
  const auto asker = runtime_->owner_of(connection.key());
  if (!asker || asker->uid != permission->owner.uid)
    return denied("the permission is for another user");
  return permission;
}

Result<void> StepService::act(const proto::AttachStep& attach) {
  ASSIGN(permission, check(attach));
  runtime::StepAttachment attachment;
  attachment.key = permission->key;
  attachment.step = permission->step;
  attachment.io_address = attach.io_address;
  attachment.io_key = attach.io_key;
  attachment.io_ticket = attach.io_ticket;
  attachment.may_type = permission->may_type;
  return runtime_->attach_step(attachment);
}

// Applies --cpu-bind and --mem-bind; without them each task gets its share of the step's CPUs.
Result<void> StepService::bind_tasks(const proto::LaunchStep& launch,
                                     runtime::StepRequest& request) const {
  if (launch.cpu_bind == TaskBind{} && launch.mem_bind == TaskBind{}) return {};
  for (const TaskBind* bind : {&launch.cpu_bind, &launch.mem_bind}) TRY(check_task_bind(*bind));
  StepHere here{options_.node, request.cpus, request.bind_tasks, {}, options_.socket_of, {}};
  const runtime::NumaMap numa = runtime::NumaMap::read();
  for (const auto& [cpu, node] : numa.nodes()) here.numa[cpu] = static_cast<std::uint16_t>(node);
  for (std::uint32_t i = 0; i < request.task_env.size(); ++i) here.ranks.push_back(request.rank(i));
  ASSIGN(places, task_places(launch.cpu_bind, launch.mem_bind, here));
  request.task_cpus = std::move(places->cpus);
  request.task_mems = std::move(places->mems);
  request.task_notes = std::move(places->notes);
  request.mems_preferred = launch.mem_bind.prefer;
  return {};
}

Result<void> StepService::act(const proto::LaunchStep& launch) {
  ASSIGN(permission, check(launch));
  ASSIGN(environment, step_environment(*permission, launch, options_.node));
  if (runtime_->has_network(permission->key)) meet_by_name(launch, *permission, *environment);
  if (launch.node != options_.node)
    return fail(ErrorCode::invalid_argument,
                fmt::format("this is node {}, not {}", options_.node, launch.node));
  if (launch.mpi != proto::StepMpi::none &&
      !permission->nodes[environment->node_index].ranks.empty())
    return fail(ErrorCode::unsupported, fmt::format("with --mpi={} tasks are numbered node by node",
                                                    enum_name(launch.mpi)));
  if (launch.het && (launch.mpi != proto::StepMpi::none || launch.terminal))
    return fail(ErrorCode::unsupported,
                "a step in several components has no --mpi and no terminal");
  if (launch.argv.empty()) return fail(ErrorCode::invalid_argument, "a step needs a command");
  if (launch.gpu_bind) TRY(check_gpu_bind(*launch.gpu_bind));
  TRY(check_limits(launch.limits));
  std::erase_if(launched_, [&](const auto& entry) { return !runtime_->owner_of(entry.first); });
  if (!launched_.insert({permission->key, permission->step}).second)
    return fail(ErrorCode::already_exists, "this step has been launched here already");

  const proto::StepNode& here = permission->nodes[environment->node_index];
  runtime::StepRequest request;
  request.key = permission->key;
  request.step = permission->step;
  request.name = permission->name;
  request.argv = launch.argv;
  request.env = std::move(environment->shared);
  request.task_env = std::move(environment->tasks);
  request.work_dir = launch.work_dir;
  const std::uint32_t before = launch.het ? launch.het->first_rank : 0;
  request.first_rank = here.first_rank + before;
  request.ranks = here.ranks;
  for (std::uint32_t& rank : request.ranks) rank += before;
  request.node_index = environment->node_index;
  request.cpus = order_cores(launch.core_order, runtime::cpus_here(here.cpus, options_.shared_cpus),
                             options_.socket_of, request.task_env.size());
  // With overcommit there may be fewer cores than the tasks would have: then all tasks share all
  // cores.
  request.bind_tasks =
      !here.cpus.empty() && here.cpus.size() >= std::size_t{here.tasks} * permission->cpus_per_task;
  request.node = options_.node;
  TRY(bind_tasks(launch, request));
  if (options_.job_socket) request.env[net::kJobSocketVariable] = options_.job_socket(request.key);
  request.gpu_bind = launch.gpu_bind;
  request.std_out = launch.std_out;
  request.std_err = launch.std_err;
  request.std_in = launch.std_in;
  request.limits = launch.limits;
  request.io_address = launch.io_address;
  request.io_key = launch.io_key;
  request.io_ticket = launch.io_ticket;
  request.terminal = launch.terminal;
  request.input = launch.input;
  request.input_rank = launch.input_rank;
  request.open_mode = launch.open_mode;
  request.gpus = here.gpus;
  request.memory = here.memory;
  request.time_limit = permission->time_limit;
  request.kill_wait = permission->kill_wait;
  request.mpi = launch.mpi;
  if (launch.mpi != proto::StepMpi::none)
    for (const proto::StepNode& node : permission->nodes) {
      request.nodes.push_back(node.node);
      request.node_tasks.push_back(node.tasks);
    }
  return runtime_->begin_step(request);
}

bool StepService::local(JobConnection& connection, net::StreamMessage& message) {
  const std::uint64_t request = message.header.request;
  if (message.header.type == number<proto::StepListen>) {
    proto::StepListening reply;
    reply.address = stream_address_;
    reply.ticket = ticket_of(connection.channel());
    connection.send({proto::kProtocolVersion, number<proto::StepListening>, request},
                    codec::encode(reply));
    return true;
  }
  if (message.header.type == number<proto::LaunchStep>)
    act_or_pass_on<proto::LaunchStep>(connection, message);
  else if (message.header.type == number<proto::AttachStep>)
    act_or_pass_on<proto::AttachStep>(connection, message);
  else
    return false;
  return true;
}

// Each connection has one ticket, which is valid as long as the connection exists.
const Bytes& StepService::ticket_of(std::uint64_t channel) {
  if (const auto known = ticket_of_.find(channel); known != ticket_of_.end()) return known->second;
  if (tickets_.size() >= 2 * tickets_kept_) {  // removes tickets of connections that have closed
    std::erase_if(tickets_, [&](const auto& e) { return sockets_.find(e.second) == nullptr; });
    std::erase_if(ticket_of_, [&](const auto& e) { return sockets_.find(e.first) == nullptr; });
    tickets_kept_ = std::max(kFewTickets, tickets_.size());
  }
  Bytes& ticket = ticket_of_[channel];
  ticket = new_ticket();
  tickets_[ticket] = channel;
  return ticket;
}

template <class Message>
void StepService::act_or_pass_on(JobConnection& connection, net::StreamMessage& message) {
  const auto decoded = codec::decode<Message>(message.body);
  Result<void> result;
  if (!decoded) {
    result = tl::unexpected(decoded.error());
  } else if (auto allowed = check_listener(*decoded, connection); !allowed) {
    result = tl::unexpected(allowed.error());
  } else if (decoded->node == options_.node) {
    result = act(*decoded);
  } else {
    const auto permission = check_passed_on(connection, *decoded);
    const auto* node = permission ? find_node(*permission, decoded->node) : nullptr;
    if (node != nullptr &&
        may_pass_on(connection.key(), message.body.size(), permission->nodes.size()))
      return pass_on(connection, message.header, *node, message.body);
    if (node != nullptr)
      return connection.refuse(message.header.request, ErrorCode::too_many,
                               "too many launches of this job wait for other nodes: try again");
    result = permission ? Result<void>(fail(ErrorCode::not_found, "the step has no such node"))
                        : Result<void>(tl::unexpected(permission.error()));
  }
  const Answer answer = answer_of(result);
  connection.send({proto::kProtocolVersion, answer.type, message.header.request}, answer.body);
}

Result<StreamPort> listen_on_any_port(const std::string& host) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  const bool v4 = ::inet_pton(AF_INET, host.c_str(), &in.sin_addr) == 1;
  if (!v4 && ::inet_pton(AF_INET6, host.c_str(), &in6.sin6_addr) != 1)
    return fail(ErrorCode::invalid_argument,
                fmt::format("listen address '{}': give a number such as 10.0.0.7", host));
  sockaddr* address = v4 ? reinterpret_cast<sockaddr*>(&in) : reinterpret_cast<sockaddr*>(&in6);
  socklen_t size = v4 ? sizeof in : sizeof in6;
  net::Socket socket(
      ::socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.fd() < 0 || ::bind(socket.fd(), address, size) != 0 ||
      ::listen(socket.fd(), SOMAXCONN) != 0 || ::getsockname(socket.fd(), address, &size) != 0)
    return fail(ErrorCode::io_error, fmt::format("cannot listen for step streams on {}: {}", host,
                                                 std::strerror(errno)));
  const bool wildcard = host == "0.0.0.0" || host == "::";
  const std::uint16_t port = ntohs(v4 ? in.sin_port : in6.sin6_port);
  const std::string shown = wildcard ? (v4 ? "127.0.0.1" : "[::1]") : v4 ? host : "[" + host + "]";
  return StreamPort{std::move(socket), fmt::format("tcp://{}:{}", shown, port)};
}

Bytes new_ticket() {
  std::array<char, 16> raw{};
  ::randombytes_buf(raw.data(), raw.size());
  return net::to_hex({raw.data(), raw.size()});
}

bool is_ticket(std::string_view text) {
  return text.size() == kTicketBytes &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<void> may_dial(std::string_view address, const std::string& asker) {
  const auto parts = address.starts_with(kTcp)
                         ? net::split_address(address.substr(kTcp.size()))
                         : Result<net::HostPort>(fail(ErrorCode::invalid_argument, ""));
  const auto host = parts ? number_of_host(parts->host) : std::nullopt;
  const unsigned long port = host ? std::stoul(parts->port) : 0;
  if (port == 0 || port > 65'535)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("'{}' is not the address of a step's stream; tcp://NUMBER:PORT is", address));
  if (host == number_of_host(asker)) return {};
  return fail(ErrorCode::permission_denied,
              fmt::format("a step's stream goes to the host that asks for it, {}, and not to {}",
                          asker, parts->host));
}

std::string endpoint_from(const std::string& host, const std::string& address) {
  std::array<std::uint8_t, 16> ignored{};
  const auto parts = net::split_address(address);
  for (const int family : {AF_INET, AF_INET6}) {
    if (!parts || host == "0.0.0.0" || host == "::" ||
        ::inet_pton(family, host.c_str(), ignored.data()) != 1 ||
        ::inet_pton(family, parts->host.c_str(), ignored.data()) != 1)
      continue;
    return fmt::format(fmt::runtime(family == AF_INET ? "tcp://{}:0;{}" : "tcp://[{}]:0;{}"), host,
                       address);
  }
  return fmt::format("{}{}", kTcp, address);
}

proto::NodeRelay unheard_end(const runtime::RuntimeEvent& event) {
  proto::StepDone done;
  done.key = event.key;
  done.step = event.step;
  done.exit = event.record.exit;
  done.started = event.record.started.value_or(event.record.ended);
  done.ended = event.record.ended;
  done.usage = event.record.usage;
  proto::NodeRelay relay;  // its channel 0 belongs to no connection, so nobody gets the answer
  relay.key = event.key;
  relay.type = static_cast<std::uint16_t>(proto::number_of<proto::StepDone>);
  relay.body = codec::encode(done);
  return relay;
}

const proto::StepNode* find_node(const proto::StepPermission& permission, const std::string& name) {
  const auto it = std::ranges::find_if(permission.nodes,
                                       [&](const proto::StepNode& n) { return n.node == name; });
  return it == permission.nodes.end() ? nullptr : &*it;
}

}  // namespace gantry::node
