// One poll loop over the listener, the nodes' streams, standard input and a signalfd.
#include "cli/step/step_streams.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "common/codec/codec.h"
#include "common/text/text.h"

namespace gantry::cli {
namespace {

constexpr std::size_t kMaxOutputLine = 64 << 10;     // bytes; a longer one is written in parts
constexpr std::size_t kMaxPeerBacklog = 256u << 20;  // bytes queued for one node's PMI server

void write_fully(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), data.size());
    if (n > 0) {
      data.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return;  // the reader of our output has gone; the tasks continue
    }
  }
}

sigset_t forwarded_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH}) sigaddset(&set, s);
  return set;
}

// A signalfd for the forwarded signals. They stay blocked to the end: reporting the end and
// releasing an allocation take only moments, and a terminal that hangs up sends two signals.
class SignalFd {
 public:
  SignalFd() {
    const sigset_t set = forwarded_signals();
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~SignalFd() { ::close(fd_); }
  SignalFd(const SignalFd&) = delete;
  SignalFd& operator=(const SignalFd&) = delete;
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::optional<int> next() const {
    signalfd_siginfo info{};
    if (::read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  int fd_ = -1;
};

int shell_status(ExitStatus status) {
  return status.signal ? 128 + status.signal : status.code;
}

}  // namespace

void StepEnd::add(const StepEnd& other) {
  if (shell_status(other.largest) > shell_status(largest)) largest = other.largest;
  timed_out = timed_out || other.timed_out;
  usage.cpu_user_us += other.usage.cpu_user_us;
  usage.cpu_system_us += other.usage.cpu_system_us;
  usage.io_read_bytes += other.usage.io_read_bytes;
  usage.io_write_bytes += other.usage.io_write_bytes;
  usage.memory_peak_bytes = std::max(usage.memory_peak_bytes, other.usage.memory_peak_bytes);
}

StepStreams::StepStreams(std::string program, const proto::StepPermission& permission, Bytes key,
                         const StepOptions& options, const StepFiles* files)
    : program_(std::move(program)),
      permission_(permission),
      key_(std::move(key)),
      options_(options),
      files_(files),
      input_open_(options.input != StepInput::none) {
  result_.nodes.resize(permission.nodes.size());
  heard_.resize(permission.nodes.size());
  tasks_.resize(permission.tasks, TaskState::unknown);
}

StepStreams::~StepStreams() {
  for (const auto& stream : streams_)
    if (stream->fd >= 0) ::close(stream->fd);
}

bool StepStreams::finished() const {
  return nodes_done_ == permission_.nodes.size();
}

bool StepStreams::all_here() const {
  const auto said_hello = [](const auto& stream) { return !stream->node.empty(); };
  return static_cast<std::size_t>(std::count_if(streams_.begin(), streams_.end(), said_hello)) ==
         permission_.nodes.size();
}

void StepStreams::leave_out(std::size_t node) {
  heard_[node] = true;
  ++nodes_done_;
}

Result<StepResult> StepStreams::run(StreamSource& source) {
  const SignalFd signals;
  begun_us_ = monotonic_us();
  while (!finished() && !detached_) {
    std::vector<pollfd> fds;
    fds.push_back({signals.fd(), POLLIN, 0});
    fds.push_back({all_here() ? -1 : source.descriptor(), POLLIN, 0});
    for (const auto& stream : streams_) {
      const short events = stream->crypt.output().empty() ? POLLIN : POLLIN | POLLOUT;
      fds.push_back({stream->closed ? -1 : stream->fd, events, 0});
    }
    const bool want_input = wants_input();
    fds.push_back({want_input ? STDIN_FILENO : -1, POLLIN, 0});
    const int patience = endings_.due_us() ? static_cast<int>(StepEndings::kMoment / 1'000) : -1;
    const int left = milliseconds_left();
    const int wait = left < 0 ? patience : patience < 0 ? left : std::min(left, patience);
    if (::poll(fds.data(), fds.size(), wait) < 0 && errno != EINTR)
      return fail(ErrorCode::io_error, fmt::format("poll: {}", std::strerror(errno)));

    if (const auto due = endings_.due_us(); due && monotonic_us() >= *due) say_endings();
    if (milliseconds_left() == 0) attached() ? give_up_absent() : end_in_time();
    if (fds[0].revents != 0)
      while (const auto signal = signals.next()) on_signal(*signal);
    const std::size_t known = streams_.size();
    for (std::size_t i = 0; i < known; ++i) {
      if (fds[i + 2].revents & (POLLIN | POLLHUP | POLLERR)) read(*streams_[i]);
      if (!streams_[i]->closed) write(*streams_[i]);
    }
    // If every stream is already here, the step loses nothing when the node's daemon ends.
    if (fds[1].revents != 0 && !all_here()) TRY(accept(source));
    if (fds.back().revents != 0) read_input();
    forget_strangers();
  }
  raw_.reset();
  flush_lines();
  say_endings();
  StepEnd all;
  for (const StepEnd& node : result_.nodes) all.add(node);
  result_.exit_status = detached_ ? 128 + *detached_ : shell_status(all.largest);
  return result_;
}

// Prints a line. A terminal in raw mode needs "\r" to return to the left. If the terminal has hung
// up, the step must go on; so this does not use fmt::print, which would throw.
void StepStreams::say(const std::string& line) const {
  std::fputs((line + (raw_ ? "\r\n" : "\n")).c_str(), stderr);
}

void StepStreams::read(Stream& stream) {
  char buffer[64 * 1024];
  const ssize_t n = ::read(stream.fd, buffer, sizeof buffer);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    lost(stream, n == 0 ? "its connection was closed" : std::strerror(errno));
    return;
  }
  if (auto fed = stream.crypt.feed({buffer, static_cast<std::size_t>(n)}); !fed) {
    lost(stream, fed.error().message);
    return;
  }
  while (auto bytes = stream.crypt.next()) {
    const auto frame = codec::decode<proto::StepFrame>(*bytes);
    if (!frame) {
      lost(stream, frame.error().message);
      return;
    }
    handle(stream, *frame);
  }
}

void StepStreams::write(Stream& stream) {
  while (!stream.crypt.output().empty()) {
    const std::string_view out = stream.crypt.output();
    const ssize_t n = ::send(stream.fd, out.data(), out.size(), MSG_NOSIGNAL);
    if (n <= 0) return;  // EAGAIN: poll tells when to go on; read() reports other errors
    stream.crypt.written(static_cast<std::size_t>(n));
  }
}

// A stream that ended without a hello came from a stranger without the key; the step loses nothing.
void StepStreams::lost(Stream& stream, const std::string& why) {
  stream.closed = true;
  ::close(stream.fd);
  stream.fd = -1;
  if (stream.node.empty() || stream.done) return;
  if (attached()) {
    say(fmt::format("{}: error: {}: {}", program_, stream.node, why));
    ++nodes_done_;
    return;
  }
  const proto::StepNode& node = permission_.nodes[stream.index];
  say(fmt::format("{}: error: {}: lost the step's tasks {}{}{}: {}", program_, stream.node,
                  node.rank(0), node.ranks.empty() ? "-" : " to ", node.rank(stream.tasks - 1),
                  why));
  ++nodes_done_;
  tell_ended(stream);
  worst(stream, {0, SIGKILL});
}

void StepStreams::handle(Stream& stream, const proto::StepFrame& frame) {
  if (const auto* hello = std::get_if<proto::StepHello>(&frame.body)) {
    greet(stream, *hello);
  } else if (const auto* out = std::get_if<proto::TaskOutput>(&frame.body)) {
    output(*out);
  } else if (const auto* exit = std::get_if<proto::TaskExit>(&frame.body)) {
    task_exit(stream, *exit);
  } else if (const auto* peer = std::get_if<proto::StepPeer>(&frame.body)) {
    pass_on(stream, *peer);
  } else if (const auto* abort = std::get_if<proto::StepAbort>(&frame.body)) {
    aborted(stream, *abort);
  } else if (const auto* notice = std::get_if<proto::StepNotice>(&frame.body)) {
    say(notice->of_shim ? notice->text : fmt::format("{}: {}", program_, notice->text));
    if (notice->ends) say_aborted();
  } else if (const auto* skipped = std::get_if<proto::StepSkipped>(&frame.body)) {
    say(fmt::format("{}: error: {}: {} bytes of output were not read in time and are lost here",
                    program_, stream.node, skipped->bytes));
  } else if (const auto* done = std::get_if<proto::StepNodeDone>(&frame.body)) {
    if (done->out_of_memory)
      say(fmt::format("{}: error: {}: the step ran out of its memory", program_, stream.node));
    result_.nodes[stream.index].add({{}, done->usage, done->timed_out});
    if (stream.done) return;
    stream.done = true;
    ++nodes_done_;
    tell_ended(stream);
  }
}

void StepStreams::greet(Stream& stream, const proto::StepHello& hello) {
  const auto& nodes = permission_.nodes;
  const auto it = std::find_if(nodes.begin(), nodes.end(),
                               [&](const proto::StepNode& n) { return n.node == hello.node; });
  if (it == nodes.end()) return lost(stream, "it has no part in this step");
  stream.node = hello.node;
  stream.first_rank = hello.first_rank;
  stream.tasks = hello.tasks;
  stream.index = static_cast<std::uint32_t>(it - nodes.begin());
  heard_[stream.index] = true;
  if (attached()) {
    if (options_.terminal && !raw_) raw_.emplace();
    return;
  }
  if (killing_) send(stream, {proto::StepSignal{SIGKILL}});
  for (const auto& frame : std::exchange(early_[stream.index], {})) send(stream, frame);
  for_tasks(stream, [&](std::uint32_t rank) {
    if (rank < tasks_.size()) tasks_[rank] = TaskState::running;
  });
  if (options_.input == StepInput::none && reads_input(stream))
    send(stream, {proto::TaskInput{{}, true}});
  if (!options_.terminal || hello.first_rank != 0) return;
  raw_.emplace();  // only now, because until here Ctrl-C ends this process
  send_window();
}

void StepStreams::pass_on(const Stream& from, const proto::StepPeer& peer) {
  for (std::uint32_t node = 0; node < permission_.nodes.size(); ++node)
    if (node == peer.node || (peer.node == proto::kAllOtherNodes && node != from.index))
      tell_peer(node, {proto::StepPeer{from.index, peer.data}});
}

void StepStreams::tell_peer(std::uint32_t node, const proto::StepFrame& frame) {
  for (const auto& stream : streams_) {
    if (stream->node.empty() || stream->index != node) continue;
    if (stream->done) return;  // its server has ended
    send(*stream, frame);
    if (!stream->closed && stream->crypt.output().size() > kMaxPeerBacklog)
      lost(*stream, "it does not take what the other nodes' PMI servers say");
    return;
  }
  early_[node].push_back(frame);
}

// Tells the PMI-2 servers of the other nodes that the tasks of `gone` have ended: only these
// servers know whether they wait for them in a fence. All that the server of `gone` has sent was
// passed on before.
void StepStreams::tell_ended(const Stream& gone) {
  if (options_.mpi == proto::StepMpi::pmi2) pass_on(gone, {proto::kAllOtherNodes, {}});
}

void StepStreams::aborted(const Stream& stream, const proto::StepAbort& abort) {
  if (killing_) return;
  if (abort.status)
    say(fmt::format("{}: error: {}: task {} called abort with status {}{}{}", program_, stream.node,
                    abort.rank, *abort.status, abort.message.empty() ? "" : ": ", abort.message));
  else
    say(fmt::format("{}: error: {}: task {}: {}", program_, stream.node, abort.rank,
                    abort.message));
  worst(stream, {std::clamp(abort.status.value_or(1), 1, 255), 0});
  end_all();
}

void StepStreams::say_endings() {
  for (const std::string& line : endings_.take()) say(fmt::format("{}: error: {}", program_, line));
}

void StepStreams::end_all() {
  say_endings();  // endings collected before this
  killing_ = true;
  signal_tasks(SIGTERM);
  signal_tasks(SIGKILL);
}

void StepStreams::send_window() {
  const auto size = terminal_size();
  if (!options_.terminal || attached() || !size) return;
  for (const auto& stream : streams_)
    if (!stream->node.empty() && stream->first_rank == 0 && !stream->done)
      send(*stream, {proto::StepWindow{size->rows, size->columns}});
}

// Writes whole lines only, so that outputs of several tasks do not mix within a line. The bytes of
// a single task are passed on as they come, so that a prompt appears.
void StepStreams::output(const proto::TaskOutput& output) {
  const auto& only = output.std_err ? options_.only_error : options_.only_output;
  if (only && *only != output.rank) return;
  const int fd = fd_of(output.rank, output.std_err);
  if (!options_.label && (permission_.tasks == 1 || options_.unbuffered || options_.terminal)) {
    write_fully(fd, output.data);
    return;
  }
  Line& line = lines_[{output.rank, output.std_err}];
  std::string_view rest = output.data;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    line.text += rest.substr(0, end);
    if (end == std::string_view::npos && line.text.size() < kMaxOutputLine) return;
    if (end == std::string_view::npos) {
      write_fully(fd, options_.label ? fmt::format("{}: {}", output.rank, line.text) : line.text);
      line.text.clear();
      return;
    }
    write_fully(fd, labelled(output.rank, line.text));
    line.text.clear();
    rest.remove_prefix(end + 1);
  }
}

std::string StepStreams::labelled(std::uint32_t rank, std::string_view line) const {
  return options_.label ? fmt::format("{}: {}\n", rank, line) : fmt::format("{}\n", line);
}

int StepStreams::fd_of(std::uint32_t rank, bool std_err) const {
  const int file = files_ != nullptr ? files_->fd_of(rank, std_err) : -1;
  return file >= 0 ? file : std_err ? STDERR_FILENO : STDOUT_FILENO;
}

void StepStreams::flush_lines() {
  for (auto& [key, line] : lines_)
    if (!line.text.empty())
      write_fully(fd_of(key.first, key.second), labelled(key.first, line.text));
}

void StepStreams::give_up_absent() {
  for (std::size_t i = 0; i < heard_.size(); ++i) {
    if (heard_[i]) continue;
    say(fmt::format("{}: error: {}: no stream has come from the step's tasks there", program_,
                    permission_.nodes[i].node));
    leave_out(i);
  }
}

void StepStreams::end_for_lateness() {
  say(fmt::format("{}: First task exited {}s ago", program_, options_.patience_s));
  if (options_.manner == Manner::slurm) say_status();
  say(fmt::format("{}: Terminating {}", program_, step_name()));
  end_all();
}

void StepStreams::task_exit(const Stream& stream, const proto::TaskExit& exit) {
  if (attached()) {  // Slurm's sattach ignores ends by a signal
    if (exit.status.code == 0) return;
    say(fmt::format("{}: error: task {} exited with exit code {}", program_, exit.rank,
                    exit.status.code));
    return worst(stream, {exit.status.code, 0});
  }
  if (exit.rank < tasks_.size())
    tasks_[exit.rank] = !exit.message.empty()         ? TaskState::failed
                        : exit.status == ExitStatus{} ? TaskState::exited
                                                      : TaskState::abnormal;
  if (first_end_us_ == 0) first_end_us_ = monotonic_us();
  worst(stream, exit.status);
  if (exit.status == ExitStatus{} && exit.message.empty()) return;
  std::string what = exit.message;
  if (what.empty() && exit.status.signal != 0) what = ::strsignal(exit.status.signal);
  if (what.empty()) what = fmt::format("Exited with exit code {}", exit.status.code);
  endings_.add(stream.node, exit.rank, what, monotonic_us());
  // Tasks that synchronise through a PMI server would wait for this one forever, so they are ended.
  if ((options_.kill_on_bad_exit || options_.mpi != proto::StepMpi::none) && !killing_) end_all();
}

void StepStreams::worst(const Stream& stream, ExitStatus status) {
  result_.nodes[stream.index].add({status, {}, false});
}

void StepStreams::send(Stream& stream, const proto::StepFrame& frame) {
  if (stream.closed) return;
  if (stream.crypt.send(codec::encode(frame))) write(stream);
}

}  // namespace gantry::cli
