#include "noded/shim/io/step_io.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/codec/codec.h"
#include "common/codec/define.h"
#include "common/net/secure_stream.h"
#include "common/proto/step_io.h"
#include "noded/machine/files.h"
#include "noded/runtime/job_dir.h"

namespace gantry::runtime {

namespace {

// For a step without grun at the other end: nobody reads, and nothing is kept.
class NoStepIo : public StepIo {
 public:
  void started(std::uint32_t) override {}
  void output(std::uint32_t, int, std::string_view) override {}
  void closed(std::uint32_t, int) override {}
  void exited(std::uint32_t, ExitStatus, std::string_view) override {}
  void peer(std::uint32_t, std::string_view) override {}
  void aborted(std::uint32_t, std::optional<std::int32_t>, std::string_view) override {}
  void notice(std::string_view, Notice) override {}
  [[nodiscard]] bool full() const override { return false; }
  [[nodiscard]] int fd() const override { return -1; }
  [[nodiscard]] short events() const override { return 0; }
  void ready(short, StepControl&) override {}
  void look_at_input(const StepControl&) override {}
  [[nodiscard]] bool lost() const override { return false; }
  void finish(const ExitRecord&) override {}
};

constexpr int kDialPatienceMs = 10'000;
constexpr int kFlushPatienceMs = 5'000;  // for each piece of the last output
// The time limit for all of the last output, because its reader is a program of the job.
constexpr Duration kLongestFinish = minutes(1);

tl::unexpected<Error> unreachable(const std::string& address, int error) {
  return fail(ErrorCode::unavailable,
              "grun cannot be reached at " + address + ": " + std::strerror(error));
}

// Connects to "tcp://127.0.0.1:7000" or "tcp://[::1]:7000". Names are not resolved: grun sends
// numeric addresses, and a resolver would need shared libraries. The connection may not be
// established yet when this returns; what is written until then waits.
Result<Fd> begin_dial(const std::string& address) {
  const auto bad = [&] {
    return fail(ErrorCode::invalid_argument,
                "'" + address + "' is not the address of a step's stream; tcp://NUMBER:PORT is");
  };
  constexpr std::string_view kScheme = "tcp://";
  const auto colon = address.rfind(':');
  if (!address.starts_with(kScheme) || colon == std::string::npos || colon < kScheme.size())
    return bad();
  std::string host = address.substr(kScheme.size(), colon - kScheme.size());
  const auto port =
      static_cast<std::uint16_t>(std::strtoul(address.c_str() + colon + 1, nullptr, 10));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  sockaddr_in in{};
  sockaddr_in6 in6{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  const bool v4 = ::inet_pton(AF_INET, host.c_str(), &in.sin_addr) == 1;
  if (!v4 && ::inet_pton(AF_INET6, host.c_str(), &in6.sin6_addr) != 1) return bad();
  const sockaddr* to = v4 ? reinterpret_cast<sockaddr*>(&in) : reinterpret_cast<sockaddr*>(&in6);
  const socklen_t size = v4 ? sizeof in : sizeof in6;
  Fd fd(::socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return unreachable(address, errno);
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (::connect(fd.get(), to, size) != 0 && errno != EINPROGRESS)
    return unreachable(address, errno);
  return fd;
}

Result<Fd> dial(const std::string& address) {
  auto fd = begin_dial(address);
  if (!fd) return fd;
  pollfd ready{fd->get(), POLLOUT, 0};
  if (::poll(&ready, 1, kDialPatienceMs) <= 0) return unreachable(address, ETIMEDOUT);
  int error = 0;
  socklen_t error_size = sizeof error;
  ::getsockopt(fd->get(), SOL_SOCKET, SO_ERROR, &error, &error_size);
  if (error != 0) return unreachable(address, error);
  return fd;
}

class StreamIo : public StepIo {
 public:
  StreamIo(Fd fd, net::SecureStream stream, std::string node, const StepRequest& request)
      : fd_(std::move(fd)),
        stream_(std::move(stream)),
        node_(std::move(node)),
        request_(request),
        tasks_(static_cast<std::uint32_t>(request.task_env.size())) {
    send({proto::StepHello{node_, request.first_rank, tasks_}});
  }

  void started(std::uint32_t) override {}
  void output(std::uint32_t task, int stream, std::string_view bytes) override {
    while (!bytes.empty()) {
      const std::string_view part = bytes.substr(0, proto::kMaxTaskData);
      send({proto::TaskOutput{request_.rank(task), stream == STDERR_FILENO, Bytes(part)}});
      bytes.remove_prefix(part.size());
    }
  }
  void closed(std::uint32_t, int) override {}  // the task's exit is enough
  void exited(std::uint32_t task, ExitStatus status, std::string_view message) override {
    send({proto::TaskExit{request_.rank(task), status, std::string(message)}});
  }
  void peer(std::uint32_t node, std::string_view bytes) override {
    send({proto::StepPeer{node, Bytes(bytes)}});
  }
  void aborted(std::uint32_t rank, std::optional<std::int32_t> status,
               std::string_view message) override {
    send({proto::StepAbort{rank, status, std::string(message)}});
  }
  void notice(std::string_view text, Notice kind) override {
    send({proto::StepNotice{std::string(text), kind != Notice::message, kind == Notice::end}});
  }
  [[nodiscard]] bool full() const override {
    return !lost_ && stream_.unsent() > kMaxStreamBacklog;
  }
  [[nodiscard]] int fd() const override { return lost_ ? -1 : fd_.get(); }
  [[nodiscard]] short events() const override {
    return static_cast<short>((input_full_ ? 0 : POLLIN) |
                              (stream_.output().empty() ? 0 : POLLOUT));
  }
  [[nodiscard]] bool lost() const override { return lost_; }

  void ready(short events, StepControl& control) override {
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && !input_full_) read(control);
    if (!lost_) write();
  }
  void look_at_input(const StepControl& control) override { input_full_ = control.input_full(); }

  void finish(const ExitRecord& record) override {
    if (lost_) return;
    send({done_of(record)});
    stream_.finish();
    const Duration end = since_boot() + kLongestFinish;
    while (!lost_ && !stream_.output().empty()) {
      write();
      if (stream_.output().empty()) break;
      if (end < since_boot()) return void(lost_ = true);
      pollfd ready{fd_.get(), POLLOUT, 0};
      if (::poll(&ready, 1, kFlushPatienceMs) <= 0) lost_ = true;
    }
    // grun cannot decode anything before it has the hello frame. So this waits for grun's part of
    // the handshake, and then until grun closes, so that no reset discards what was sent.
    drain_until_closed(end);
  }

 protected:
  static proto::StepNodeDone done_of(const ExitRecord& record) {
    return {record.usage, record.cause == ExitCause::out_of_memory, record.timed_out};
  }
  // Handles a frame from the other side.
  virtual void take(const proto::StepFrame& frame, StepControl& control) {
    if (const auto* input = std::get_if<proto::TaskInput>(&frame.body)) {
      if (!input->data.empty()) control.input(input->data);
      if (input->end) control.close_input();
    } else if (const auto* signal = std::get_if<proto::StepSignal>(&frame.body)) {
      control.signal(signal->signal);
    } else if (const auto* window = std::get_if<proto::StepWindow>(&frame.body)) {
      control.window({window->rows, window->columns});
    } else if (const auto* peer = std::get_if<proto::StepPeer>(&frame.body)) {
      control.peer(peer->node, peer->data);
    }
  }

  void send(const proto::StepFrame& frame) {
    if (lost_) return;
    if (!stream_.send(codec::encode(frame))) lost_ = true;
    write();
  }

  void write() {
    while (!stream_.output().empty()) {
      const std::string_view out = stream_.output();
      const ssize_t n = ::send(fd_.get(), out.data(), out.size(), MSG_NOSIGNAL);
      if (n > 0) {
        stream_.written(static_cast<std::size_t>(n));
        continue;
      }
      if (n < 0 && errno != EAGAIN && errno != EINTR) lost_ = true;
      return;
    }
  }

  void read(StepControl& control) {
    char buffer[16 * 1024];
    const ssize_t n = ::read(fd_.get(), buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0 || !stream_.feed({buffer, static_cast<std::size_t>(n)})) {
      lost_ = true;
      return;
    }
    while (auto bytes = stream_.next()) {
      const auto frame = codec::decode<proto::StepFrame>(*bytes);
      if (!frame) {
        lost_ = true;
        return;
      }
      take(*frame, control);
    }
  }

  void drain_until_closed(Duration end) {
    char buffer[4096];
    while (!lost_ && since_boot() < end) {
      pollfd ready{fd_.get(), POLLIN, 0};
      if (::poll(&ready, 1, kFlushPatienceMs) <= 0) return;
      const ssize_t n = ::read(fd_.get(), buffer, sizeof buffer);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return;
      if (n > 0 && !stream_.feed({buffer, static_cast<std::size_t>(n)})) return;
      while (stream_.next()) {  // no task is left that could read it
      }
      write();
    }
  }

  Fd fd_;
  net::SecureStream stream_;
  std::string node_;
  const StepRequest& request_;
  std::uint32_t tasks_;
  bool lost_ = false;
  bool input_full_ = false;  // true: nothing is read, so grun has to wait
};

// The stream of an attached reader, for which nothing waits. What the reader does not read in time
// is dropped, and it is told how much that was.
class AttachedIo final : public StreamIo {
 public:
  AttachedIo(Fd fd, net::SecureStream stream, std::string node, const StepRequest& request,
             bool may_type)
      : StreamIo(std::move(fd), std::move(stream), std::move(node), request), may_type_(may_type) {}

  void output(std::uint32_t task, int stream, std::string_view bytes) override {
    if (stream_.unsent() + bytes.size() > kMaxAttachedBacklog || skipped_ > 0) {
      skipped_ += bytes.size();
      tell_skipped();
      return;
    }
    StreamIo::output(task, stream, bytes);
  }
  void peer(std::uint32_t, std::string_view) override {}
  void notice(std::string_view, Notice) override {}  // for the client that started the step
  [[nodiscard]] bool full() const override { return false; }
  void ready(short events, StepControl& control) override {
    StreamIo::ready(events, control);
    tell_skipped();
  }
  void finish(const ExitRecord& record) override {
    if (lost_) return;
    if (skipped_ > 0) send({proto::StepSkipped{std::exchange(skipped_, 0)}});
    send({done_of(record)});
    stream_.finish();
    write();
  }

 private:
  // Skipping ends only when half of the queue is sent, so that the reader does not lose every other
  // line.
  void tell_skipped() {
    if (skipped_ > 0 && stream_.unsent() < kMaxAttachedBacklog / 2)
      send({proto::StepSkipped{std::exchange(skipped_, 0)}});
  }
  // When an attached reader closes its input, the step's input stays open: only grun can end that.
  void take(const proto::StepFrame& frame, StepControl& control) override {
    const auto* input = std::get_if<proto::TaskInput>(&frame.body);
    if (may_type_ && input != nullptr && !input->data.empty()) control.input(input->data);
  }

  bool may_type_;
  std::uint64_t skipped_ = 0;  // bytes
};

constexpr int kLastPatienceMs = 5'000;  // waits this long at the end while no attached reader reads
constexpr Duration kLongestEnd = minutes(1);  // never waits longer than this in total

}  // namespace

Result<std::unique_ptr<StepIo>> make_step_io(const Shim& shim, const StepRequest& request) {
  if (request.io_address.empty()) return std::make_unique<NoStepIo>();
  return dial_step_stream(shim.setup.node, request);
}

Result<std::unique_ptr<StepIo>> dial_step_stream(const std::string& node,
                                                 const StepRequest& request) {
  ASSIGN(fd, dial(request.io_address));
  auto stream =
      net::SecureStream::create(net::StreamRole::dialler, request.io_key, request.io_ticket);
  if (!stream) return tl::unexpected(stream.error());
  return std::make_unique<StreamIo>(std::move(*fd), std::move(*stream), node, request);
}

Result<std::unique_ptr<StepIo>> dial_attached(const std::string& node, const StepRequest& request,
                                              const StepAttachment& attachment) {
  ASSIGN(fd, begin_dial(attachment.io_address));
  auto stream =
      net::SecureStream::create(net::StreamRole::dialler, attachment.io_key, attachment.io_ticket);
  if (!stream) return tl::unexpected(stream.error());
  return std::make_unique<AttachedIo>(std::move(*fd), std::move(*stream), node, request,
                                      attachment.may_type);
}

void StepAudience::look_for_attachments() {
  for (const std::string& name : list_dir(dir_)) {
    const bool is_notice = name.starts_with(kStepNoticePrefix);
    if ((!is_notice && !name.starts_with(kAttachPrefix)) || name.ends_with(".tmp")) continue;
    const std::string path = dir_ + "/" + name;
    const auto bytes = read_file(path);
    ::unlink(path.c_str());
    if (is_notice && bytes) pass_notice(*bytes);
    if (is_notice) continue;
    const auto attachment =
        bytes ? codec::decode<StepAttachment>(*bytes) : tl::unexpected(bytes.error());
    if (!attachment || attached_.size() >= kMostAttached) continue;
    auto io = dial_attached(shim_.setup.node, request_, *attachment);
    if (!io) continue;  // the reader waits until it gives up
    for (const Piece& piece : recent_) (*io)->output(piece.task, piece.stream, piece.bytes);
    for (const auto& [task, exit] : exits_) (*io)->exited(task, exit.status, exit.message);
    attached_.push_back(std::move(*io));
  }
}

// Text for the error output of a job begins with the name of Slurm's shim. The report that the job
// is being ended is passed on as it is; for a message the client adds the name.
void StepAudience::pass_notice(std::string_view text) {
  constexpr std::string_view kName = "slurmstepd: error: ", kEnd = "*** JOB ";
  const bool named = text.starts_with(kName);
  if (named && text.substr(kName.size()).starts_with(kEnd)) return notice(text, Notice::end);
  if (named) text.remove_prefix(kName.size());
  notice(text, Notice::message);
}

void StepAudience::serve(const pollfd* watched, StepControl& control) {
  for (std::size_t i = 0; i < attached_.size(); ++i)
    if (watched[i].revents != 0) attached_[i]->ready(watched[i].revents, control);
  std::erase_if(attached_, [](const auto& one) { return one->lost(); });
}

void StepAudience::let_go(StepControl& control) {
  const Instant end = timer_clock() + kLongestEnd;
  while (!attached_.empty() && timer_clock() < end) {
    std::vector<pollfd> watched;
    add_watched(watched);
    const int ready = ::poll(watched.data(), watched.size(), kLastPatienceMs);
    if (ready == 0) return;
    if (ready > 0) serve(watched.data(), control);
  }
}

void StepAudience::output(std::uint32_t task, int stream, std::string_view bytes) {
  grun_->output(task, stream, bytes);
  for (const auto& one : attached_) one->output(task, stream, bytes);
  recent_.push_back({task, stream, std::string(bytes)});
  recent_bytes_ += bytes.size();
  while (recent_bytes_ > kRecentBytes) {
    recent_bytes_ -= recent_.front().bytes.size();
    recent_.pop_front();
  }
}

void StepAudience::exited(std::uint32_t task, ExitStatus status, std::string_view message) {
  grun_->exited(task, status, message);
  for (const auto& one : attached_) one->exited(task, status, message);
  exits_[task] = {status, std::string(message)};
}

void StepAudience::look_at_input(const StepControl& control) {
  grun_->look_at_input(control);
  for (const auto& one : attached_) one->look_at_input(control);
}

void StepAudience::finish(const ExitRecord& record) {
  grun_->finish(record);
  for (const auto& one : attached_) one->finish(record);
}

}  // namespace gantry::runtime

// The only wire message that the shim itself uses. With common/proto/codecs, which has all
// messages, this program, which starts with every job, would be twice as large.
GANTRY_CODEC_INSTANTIATE(gantry::proto::StepFrame)
