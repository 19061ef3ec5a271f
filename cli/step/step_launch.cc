// Streams can arrive in two ways (a listening socket of this process, or the job's socket), and
// requests leave in the same two ways.
#include "cli/step/step_launch.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sodium.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/random_id.h"
#include "cli/session.h"
#include "common/codec/codec.h"
#include "common/net/client.h"
#include "common/net/header.h"
#include "common/net/job_socket_client.h"
#include "common/net/secure_stream.h"
#include "common/net/socket.h"
#include "common/proto/messages.h"

namespace gantry::cli {
namespace {

constexpr Duration kLaunchTimeout = seconds(30);
constexpr std::string_view kTcp = "tcp://";

// This process's own listening socket. A peer must know the step's key; StepStreams limits the cost
// of all others.
class TcpSource final : public StreamSource {
 public:
  TcpSource(net::Socket socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)), ticket_(random_id()) {}
  [[nodiscard]] std::string address() const override { return address_; }
  [[nodiscard]] Bytes ticket() const override { return ticket_; }
  [[nodiscard]] int descriptor() const override { return socket_.fd(); }
  Result<std::optional<int>> take() override {
    const int fd = ::accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) return fd;
    if (errno == EMFILE || errno == ENFILE)
      return fail(ErrorCode::limit_exceeded, "too many open files for the streams of this step");
    return std::nullopt;
  }

 private:
  net::Socket socket_;
  std::string address_;
  Bytes ticket_;
};

// Descriptors of streams, which the node passes over the job's socket with one byte each.
class PassedSource final : public StreamSource {
 public:
  PassedSource(net::JobSocketClient client, proto::StepListening listening)
      : client_(std::move(client)), listening_(std::move(listening)) {}
  [[nodiscard]] std::string address() const override { return listening_.address; }
  [[nodiscard]] Bytes ticket() const override { return listening_.ticket; }
  [[nodiscard]] int descriptor() const override { return client_.descriptor(); }
  Result<std::optional<int>> take() override {
    char byte = 0;
    iovec io{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(client_.descriptor(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    if (n <= 0) return fail(ErrorCode::unavailable, "the node daemon has gone");
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return std::nullopt;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
  }

 private:
  net::JobSocketClient client_;
  proto::StepListening listening_;
};

template <class T>
constexpr std::uint16_t kNumberOf = static_cast<std::uint16_t>(proto::number_of<T>);

Error refused(std::string_view body, const std::string& node) {
  const auto error = codec::decode<proto::ErrorReply>(body);
  if (!error) return error.error();
  return {static_cast<ErrorCode>(error->code),
          fmt::format("node {}: {}", node, to_error(*error).message)};
}

Error at_node(const Error& error, const std::string& node) {
  return {error.code, fmt::format("node {}: {}", node, error.message)};
}

// The local address from which `towards` ("tcp://HOST:PORT") is reached. No packet is sent.
Result<sockaddr_storage> local_address(const std::string& towards) {
  ASSIGN(socket, net::connect_to(towards, net::Deadline(seconds(10))));
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  if (::getsockname(socket->fd(), reinterpret_cast<sockaddr*>(&local), &size) != 0)
    return fail(ErrorCode::io_error, fmt::format("getsockname: {}", std::strerror(errno)));
  return local;
}

std::string address_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET6) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof text);
    return fmt::format("tcp://[{}]:{}", text, ntohs(in6.sin6_port));
  }
  const auto& in = reinterpret_cast<const sockaddr_in&>(address);
  ::inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
  return fmt::format("tcp://{}:{}", text, ntohs(in.sin_port));
}

// Raises the limit of descriptors: each node needs two, for its connection and for its stream.
void allow_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Result<std::unique_ptr<StreamSource>> listen_for_streams(const proto::StepPermission& permission) {
  if (permission.nodes.empty()) return fail(ErrorCode::invalid_argument, "the step has no node");
  ASSIGN(local, local_address(std::string(kTcp) + permission.nodes.front().address));
  if (local->ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(*local).sin6_port = 0;
  } else {
    reinterpret_cast<sockaddr_in&>(*local).sin_port = 0;
  }
  net::Socket socket(::socket(local->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  socklen_t size = sizeof *local;
  if (socket.fd() < 0 || ::bind(socket.fd(), reinterpret_cast<sockaddr*>(&*local), size) != 0 ||
      ::listen(socket.fd(), SOMAXCONN) != 0 ||
      ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&*local), &size) != 0)
    return fail(ErrorCode::io_error,
                fmt::format("cannot listen for the step's output: {}", std::strerror(errno)));
  return std::make_unique<TcpSource>(std::move(socket), address_text(*local));
}

Result<std::unique_ptr<StreamSource>> listen_through_node(const std::string& path) {
  ASSIGN(client, net::JobSocketClient::connect(path, kLaunchTimeout));
  const net::MessageHeader header{proto::kProtocolVersion, kNumberOf<proto::StepListen>, 1};
  TRY(client->send(header, codec::encode(proto::StepListen{}), kLaunchTimeout));
  ASSIGN(reply, client->receive(kLaunchTimeout));
  if (reply->header.type != kNumberOf<proto::StepListening>)
    return tl::unexpected(refused(reply->body, "of this job"));
  ASSIGN(listening, codec::decode<proto::StepListening>(reply->body));
  return std::make_unique<PassedSource>(std::move(*client), std::move(*listening));
}

namespace {

// The answers of the nodes, by their place in the permission; nullopt means Ok.
using Answers = std::vector<std::optional<Error>>;

// Sends a message to each node. A node connects back only to the host that sent the request, so
// each connection leaves from the address on which the streams are accepted.
template <class Message>
Result<Answers> tell_nodes(const proto::StepPermission& permission, Message message) {
  allow_descriptors();
  ASSIGN(listener, net::split_address(std::string_view(message.io_address).substr(kTcp.size())));
  // All nodes are asked before the first answer is awaited, so that a step starts in one round
  // trip.
  std::vector<net::Client> clients;
  const net::HeaderBytes header({proto::kProtocolVersion, kNumberOf<Message>, 1});
  for (const proto::StepNode& node : permission.nodes) {
    const auto key = net::parse_public_key(node.public_key);
    if (!key) return tl::unexpected(at_node(key.error(), node.node));
    net::ClientOptions options;
    options.address = "tcp://" + node.address;
    options.server_key = *key;
    options.from = listener->host;
    auto client = net::Client::start(options);
    if (!client) return tl::unexpected(at_node(client.error(), node.node));
    clients.push_back(std::move(*client));
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    message.node = permission.nodes[i].node;
    auto sent = clients[i].finish();
    if (sent) sent = clients[i].send(header.view(), codec::encode(message), kLaunchTimeout);
    if (!sent) return tl::unexpected(at_node(sent.error(), message.node));
  }
  Answers answers(clients.size());
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const std::string& node = permission.nodes[i].node;
    const auto frames = clients[i].receive(kLaunchTimeout);
    if (!frames) return tl::unexpected(at_node(frames.error(), node));
    const auto reply = net::decode_header(frames->front());
    if (!reply) return tl::unexpected(at_node(reply.error(), node));
    if (reply->type != kNumberOf<proto::Ok>) answers[i] = refused(frames->back(), node);
  }
  return answers;
}

template <class Message>
Result<Answers> tell_through_node(const std::string& path, const proto::StepPermission& permission,
                                  Message message) {
  ASSIGN(client, net::JobSocketClient::connect(path, kLaunchTimeout));
  std::uint64_t request = 0;
  for (const proto::StepNode& node : permission.nodes) {
    message.node = node.node;
    const net::MessageHeader header{proto::kProtocolVersion, kNumberOf<Message>, ++request};
    TRY(client->send(header, codec::encode(message), kLaunchTimeout));
  }
  Answers answers(permission.nodes.size());
  for (std::size_t i = 0; i < permission.nodes.size(); ++i) {
    ASSIGN(reply, client->receive(kLaunchTimeout));
    if (reply->header.type == kNumberOf<proto::Ok>) continue;
    const std::size_t asked = reply->header.request - 1;
    if (asked >= permission.nodes.size()) return tl::unexpected(refused(reply->body, "?"));
    answers[asked] = refused(reply->body, permission.nodes[asked].node);
  }
  return answers;
}

Result<void> all_well(const Result<Answers>& answers) {
  if (!answers) return tl::unexpected(answers.error());
  for (const auto& answer : *answers)
    if (answer) return tl::unexpected(*answer);
  return {};
}

Result<std::vector<std::size_t>> where_none_runs(const Result<Answers>& answers) {
  if (!answers) return tl::unexpected(answers.error());
  std::vector<std::size_t> none;
  for (std::size_t i = 0; i < answers->size(); ++i) {
    const auto& answer = (*answers)[i];
    if (answer && answer->code != ErrorCode::not_found) return tl::unexpected(*answer);
    if (answer) none.push_back(i);
  }
  return none;
}

}  // namespace

Result<void> launch_on_nodes(const proto::StepPermission& permission, proto::LaunchStep launch) {
  return all_well(tell_nodes(permission, std::move(launch)));
}

Result<void> launch_through_node(const std::string& path, const proto::StepPermission& permission,
                                 proto::LaunchStep launch) {
  return all_well(tell_through_node(path, permission, std::move(launch)));
}

Result<std::vector<std::size_t>> attach_on_nodes(const proto::StepPermission& permission,
                                                 proto::AttachStep attach) {
  return where_none_runs(tell_nodes(permission, std::move(attach)));
}

Result<std::vector<std::size_t>> attach_through_node(const std::string& path,
                                                     const proto::StepPermission& permission,
                                                     proto::AttachStep attach) {
  return where_none_runs(tell_through_node(path, permission, std::move(attach)));
}

Result<StepDoor> StepDoor::open(const proto::StepPermission& permission) {
  StepDoor door;
  if (const char* path = std::getenv(net::kJobSocketVariable); path != nullptr)
    door.job_socket_ = path;
  ASSIGN(source, door.job_socket_ ? listen_through_node(*door.job_socket_)
                                  : listen_for_streams(permission));
  door.source_ = std::move(*source);
  door.key_.resize(net::kStreamKeyBytes);
  ::randombytes_buf(door.key_.data(), door.key_.size());
  return door;
}

Result<void> StepDoor::launch(const proto::StepPermission& permission,
                              const proto::LaunchStep& launch, std::size_t at_a_time) const {
  const std::size_t count = permission.nodes.size();
  const std::size_t most = at_a_time == 0 ? std::max<std::size_t>(count, 1) : at_a_time;
  for (std::size_t first = 0; first < count; first += most) {
    proto::StepPermission some =
        permission;  // only lists the nodes to contact; each gets the whole permission
    const auto begin = permission.nodes.begin() + static_cast<std::ptrdiff_t>(first);
    some.nodes.assign(begin, begin + static_cast<std::ptrdiff_t>(std::min(most, count - first)));
    auto launched = job_socket_ ? launch_through_node(*job_socket_, some, launch)
                                : launch_on_nodes(some, launch);
    if (!launched) return launched;
  }
  return {};
}

Result<std::vector<std::size_t>> StepDoor::attach(const proto::StepPermission& permission,
                                                  proto::AttachStep attach) const {
  return job_socket_ ? attach_through_node(*job_socket_, permission, std::move(attach))
                     : attach_on_nodes(permission, std::move(attach));
}

}  // namespace gantry::cli
