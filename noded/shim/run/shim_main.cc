// gantry-shim: one per running job on a node, and one per step. It owns the container's standard
// files and its exit record, and outlives noded.
//
//   gantry-shim job  STATE_DIR JOB.ATTEMPT
//   gantry-shim step STATE_DIR JOB.ATTEMPT STEP
//   gantry-shim epilog STATE_DIR JOB.ATTEMPT     instead of a shim that was killed
//   gantry-shim door ADDRESS PORT INSIDE         a replica's door alone: process/door.h
//   gantry-shim template STATE_DIR PADDING       becomes the two above, by forking
//
// Descriptor 3 is the open, locked shim.lock of its directory: as long as the lock is held, this
// process lives (an epilog has no lock). Everything else that it needs is in STATE_DIR
// (noded/runtime/job_dir.h).
#include <fcntl.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "common/codec/codec.h"
#include "noded/machine/files.h"
#include "noded/machine/storage_view.h"
#include "noded/machine/user_child.h"
#include "noded/shim/fence.h"
#include "noded/shim/process/door.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {

// The template's side of noded/runtime/shim_process.h: it waits for noded's orders and forks
// shims.
//
// An order is a message with the arguments of a shim, each ended by NUL, and the locked shim.lock.
// The answer is the process id and, as a descriptor, the pidfd. The template ends when noded's end
// of the socket closes; the shims continue.

// argv: gantry-shim template STATE_DIR PADDING; the socket is descriptor 3. In each forked process,
// the call returns the arguments of a shim, and that process continues as if it had been started
// with them. In the template itself it returns nullopt, when noded is gone.
std::optional<std::vector<std::string>> serve_as_template(int argc, char** argv);

// The mode `relay`: copies the streams of steps between the node's network and a reader in a job.
//
// A program in a job never gets an internet socket of the host. Such a socket would give access to
// the host's network: the program could disconnect it and connect it to anything, or listen on it.
// So the reader gets one end of a unix socket pair, and this process has the other end and the
// connection.

inline constexpr std::size_t kMostRelayed = 4'096;  // streams of one relay; further ones are closed

// Descriptor 3 is noded's socket (SEQPACKET). Each message on it has two descriptors: the
// connection, and the end of the pair. The call returns when noded has closed its end or is gone,
// and all streams have ended. The relay stores no bytes: those not taken yet wait in the kernel's
// buffers.
int serve_as_relay();

namespace {

constexpr int kThirdFd = 3;  // the template's socket, or a shim's lock

// The words that /proc/PID/cmdline shows after the program's name. The kernel must be told where
// they end, which every process may do, but only together with the rest of its memory map.
class CommandLine {
 public:
  CommandLine(int argc, char** argv)
      : begin_(argv[1]), end_(argv[argc - 1] + std::strlen(argv[argc - 1]) + 1) {
    const auto text = read_file("/proc/self/stat").value_or("");
    const auto fields = split(std::string_view(text).substr(text.rfind(')') + 1), ' ');
    const auto field = [&](std::size_t number) {  // numbers as in proc(5); [1] is the third
      std::uint64_t value = 0;
      if (number - 2 < fields.size()) {
        const auto& word = fields[number - 2];
        std::from_chars(word.data(), word.data() + word.size(), value);
      }
      return value;
    };
    map_.start_code = field(26);
    map_.end_code = field(27);
    map_.start_stack = field(28);
    map_.start_data = field(45);
    map_.end_data = field(46);
    map_.start_brk = field(47);
    map_.arg_start = field(48);
    map_.env_start = field(50);
    map_.env_end = field(51);
    map_.exe_fd = static_cast<__u32>(-1);
  }

  bool show(const std::vector<std::string>& words) {
    char* at = begin_;
    for (const auto& word : words) {
      if (word.size() >= static_cast<std::size_t>(end_ - at)) return false;
      std::memcpy(at, word.c_str(), word.size() + 1);
      at += word.size() + 1;
    }
    map_.arg_end = reinterpret_cast<std::uintptr_t>(at);
    map_.brk = reinterpret_cast<std::uintptr_t>(::sbrk(0));
    return ::prctl(PR_SET_MM, PR_SET_MM_MAP, &map_, sizeof map_, 0) == 0;
  }

 private:
  char* begin_;
  char* end_;
  prctl_mm_map map_{};
};

std::vector<std::string> words_of(const std::string& bytes) {
  auto words = split(bytes, '\0');
  words.pop_back();
  return words;
}

// Leaves no zombies. A shim is reaped only after its pidfd is open, so its process id cannot be
// reused before.
void reap_shims(const Fd& signals) {
  signalfd_siginfo info{};
  (void)!::read(signals.get(), &info, sizeof info);
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace

std::optional<std::vector<std::string>> serve_as_template(int argc, char** argv) {
  CommandLine line(argc, argv);
  if (!line.show({argv[1], argv[2]})) {
    std::perror("gantry-shim template: PR_SET_MM_MAP");
    return std::nullopt;
  }
  ::close_range(kThirdFd + 1, ~0u,
                0);  // descriptors that the template inherited must not reach a job
  Fd socket(kThirdFd);
  sigset_t ended, none;
  sigemptyset(&none);
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &ended, nullptr);
  const Fd signals(::signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK));
  for (;;) {
    pollfd watched[2] = {{socket.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
    ::poll(watched, 2, -1);
    if (watched[1].revents != 0) reap_shims(signals);
    if (watched[0].revents == 0) continue;
    const auto order = take_passed(socket);
    if (order.bytes.empty()) return std::nullopt;
    const pid_t pid = order.fd ? ::fork() : -1;
    if (pid == 0) {
      ::dup2(order.fd.get(), socket.release());
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      ::setsid();
      auto words = words_of(order.bytes);
      (void)line.show(words);
      return words;
    }
    const Fd pidfd(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1);
    const int number = pid;
    if (!pass(socket, {reinterpret_cast<const char*>(&number), sizeof number}, pidfd.get()))
      return std::nullopt;
  }
}

namespace {

constexpr int kControl = 3;
constexpr std::size_t kPiece = 256u << 10;  // bytes
constexpr int kPiecesOfStream = 4;  // pieces of one stream before the next stream gets its turn
constexpr short kSome = POLLIN | POLLHUP | POLLERR;

// One direction of a stream.
struct Flow {
  bool blocked = false;  // the other side takes nothing at present
  bool done = false;     // no more bytes come, or the receiving side is gone
};

struct Stream {
  Fd network, job;
  Flow in, out;  // towards the job, and away from it
  bool over = false;
};

bool not_now(ssize_t n) {
  return n < 0 && (errno == EAGAIN || errno == EINTR);
}

void copy(const Fd& from, const Fd& to, bool from_network, Flow& way) {
  static std::array<char, kPiece> piece;
  for (int i = 0; i < kPiecesOfStream && !way.done; ++i) {
    const ssize_t seen = ::recv(from.get(), piece.data(), piece.size(), MSG_PEEK | MSG_DONTWAIT);
    if (not_now(seen)) return;
    if (seen <= 0) {
      way.done = true;
      ::shutdown(to.get(), SHUT_WR);
      return;
    }
    const ssize_t taken =
        ::send(to.get(), piece.data(), static_cast<std::size_t>(seen), MSG_NOSIGNAL | MSG_DONTWAIT);
    way.blocked = not_now(taken);
    if (way.blocked) return;
    if (taken < 0) {
      way.done = true;
      return;
    }
    // TCP discards bytes without copying them again.
    std::size_t left = static_cast<std::size_t>(taken);
    while (left > 0) {
      const ssize_t gone =
          ::recv(from.get(), piece.data(), left, MSG_DONTWAIT | (from_network ? MSG_TRUNC : 0));
      if (gone <= 0) break;
      left -= static_cast<std::size_t>(gone);
    }
    if (left > 0) way.done = true;  // cannot happen, because the bytes were there
  }
}

// The descriptor is -1 if no event is wanted: otherwise poll() would report a failed connection
// again and again.
pollfd watch_network(const Stream& s) {
  const auto events = static_cast<short>((s.in.done || s.in.blocked ? 0 : POLLIN) |
                                         (s.out.blocked && !s.out.done ? POLLOUT : 0));
  return {events == 0 ? -1 : s.network.get(), events, 0};
}

// The job's socket is watched even after the job has sent its last byte, to notice when the job
// closes it.
pollfd watch_job(const Stream& s) {
  const auto events = static_cast<short>((s.out.done || s.out.blocked ? 0 : POLLIN) |
                                         (s.in.blocked && !s.in.done ? POLLOUT : 0));
  return {events == 0 && !s.out.done ? -1 : s.job.get(), events, 0};
}

void serve(Stream& s, short network, short job) {
  if ((job & (POLLOUT | POLLHUP | POLLERR)) != 0) s.in.blocked = false;
  if ((network & (POLLOUT | POLLHUP | POLLERR)) != 0) s.out.blocked = false;
  if (network != 0 || (job & POLLOUT) != 0)
    if (!s.in.done && !s.in.blocked) copy(s.network, s.job, true, s.in);
  if ((job & kSome) != 0 || (network & POLLOUT) != 0)
    if (!s.out.done && !s.out.blocked) copy(s.job, s.network, false, s.out);
  s.over = (s.in.done && s.out.done) || (s.out.done && (job & (POLLHUP | POLLERR)) != 0);
}

struct Order {
  bool closed = false;
  Fd network, job;
};

Order take_order() {
  char byte = 0;
  int fds[2] = {-1, -1};
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = ::recvmsg(kControl, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  Order order;
  order.closed = n <= 0 && !not_now(n);
  const cmsghdr* header = n <= 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return order;
  // Fewer than two descriptors arrive if this process can open no more.
  std::memcpy(fds, CMSG_DATA(header),
              std::min(sizeof fds, static_cast<std::size_t>(header->cmsg_len - CMSG_LEN(0))));
  order.network.reset(fds[0]);
  order.job.reset(fds[1]);
  return order;
}

void set_up(const Fd& network) {
  const int on = 1;
  ::setsockopt(network.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(network.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

}  // namespace

int serve_as_relay() {
  ::close_range(kControl + 1, ~0u, 0);
  std::vector<Stream> streams;
  std::vector<pollfd> watched;
  bool closed = false;
  while (!closed || !streams.empty()) {
    watched.assign(1, {closed ? -1 : kControl, POLLIN, 0});
    for (const Stream& s : streams) {
      watched.push_back(watch_network(s));
      watched.push_back(watch_job(s));
    }
    ::poll(watched.data(), watched.size(), -1);
    for (std::size_t i = 0; i < streams.size(); ++i)
      serve(streams[i], watched[2 * i + 1].revents, watched[2 * i + 2].revents);
    std::erase_if(streams, [](const Stream& s) { return s.over; });
    if (watched[0].revents == 0) continue;
    Order order = take_order();
    closed = order.closed;
    if (!order.network || !order.job || streams.size() >= kMostRelayed) continue;
    set_up(order.network);
    streams.push_back({std::move(order.network), std::move(order.job), {}, {}, false});
  }
  return 0;
}

namespace {

constexpr int kLockFd = 3;

// noded made the lock file without a process id; this writes the shim's own id into it, for
// signals.
void sign_lock() {
  ::fcntl(kLockFd, F_SETFD, FD_CLOEXEC);
  const std::string text =
      std::to_string(::getpid()) + " " + std::to_string(start_time_of(::getpid())) + "\n";
  (void)!::pwrite(kLockFd, text.data(), text.size(), 0);
}

// Fills descriptors 0 to 2, so that no file that is opened later gets one of these numbers.
void fill_standard_files() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDWR);
}

template <class T>
Result<T> read_struct_file(const std::string& path) {
  ASSIGN(bytes, read_file(path));
  return codec::decode<T>(*bytes);
}

Result<Shim> load(const std::string& state_dir, const std::string& name) {
  const auto key = parse_job_name(name);
  if (!key) return fail(ErrorCode::usage, "'" + name + "' is not JOB.ATTEMPT");
  Shim shim;
  shim.dir = job_dir(state_dir, *key);
  shim.dir_fd.reset(::open(shim.dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!shim.dir_fd) return fail_errno(ErrorCode::io_error, shim.dir);
  ASSIGN(setup, read_struct_file<NodeSetup>(state_dir + "/" + kSetupFile));
  shim.setup = std::move(*setup);
  ASSIGN(request, read_struct_file<LaunchRequest>(shim.dir + "/" + kLaunchFile));
  shim.request = std::move(*request);
  set_storage_view({shim.setup.storage, shim.request.storage});
  return shim;
}

int usage() {
  std::fputs(
      "usage: gantry-shim job|step|epilog STATE_DIR JOB.ATTEMPT [STEP]\n"
      "       gantry-shim relay\n"
      "       gantry-shim door ADDRESS PORT INSIDE\n",
      stderr);
  return 2;
}

// Whether the attempt is over. If the shim got processor time so late that noded has given it up,
// it must not begin.
bool is_over(const Shim& shim) {
  return ::faccessat(shim.dir_fd.get(), kExitFile, F_OK, 0) == 0;
}

// Runs the epilog that a killed shim did not run. Its job is assumed to have ended by a signal; the
// real exit status is not known.
int run_lost_epilog(const Shim& shim, Signals& signals) {
  ExitRecord record;
  record.exit = {0, SIGKILL};
  const auto r = run_hook(shim, "epilog", shim.request.epilog, {-1, -1, &record}, signals);
  if (!r)
    std::fprintf(stderr, "gantry-shim: job %s: %s\n", job_name(shim.request.key).c_str(),
                 r.error().message.c_str());
  return r ? 0 : 1;
}

// `words` are the command line's arguments, from the mode on.
int run(const std::vector<std::string>& words) {
  const std::string_view mode = words.empty() ? "" : std::string_view(words[0]);
  if (mode == "relay") return serve_as_relay();
  if (mode == "door" && words.size() == 4) return serve_door_alone(words[1], words[2], words[3]);
  const bool epilog = mode == "epilog";
  const bool whole = mode == "job" || epilog;
  if (!((whole && words.size() == 3) || (mode == "step" && words.size() == 4))) return usage();
  fill_standard_files();
  if (!epilog) sign_lock();
  ::umask(022);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_NAME, "gantry-shim");
  // The shim takes a new session keyring, so that jobs cannot use noded's keys.
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  Signals signals;
  auto shim = load(words[1], words[2]);
  if (!shim) {
    std::fprintf(stderr, "gantry-shim: %s\n", shim.error().message.c_str());
    return 1;
  }
  if (epilog) return run_lost_epilog(*shim, signals);
  if (mode == "job") return is_over(*shim) ? 1 : run_job(*shim, signals);
  std::uint32_t step = 0;
  const std::string& number = words[3];
  if (std::from_chars(number.data(), number.data() + number.size(), step).ec != std::errc{})
    return usage();
  shim->step = StepId{step};
  return run_step(*shim, StepId{step}, signals);
}

int start(int argc, char** argv) {
  if (argc < 2) return usage();
  if (argc != 4 || std::string_view(argv[1]) != "template") return run({argv + 1, argv + argc});
  const auto words = serve_as_template(argc, argv);
  return words ? run(*words) : 0;
}

}  // namespace

void notify(const Shim& shim, NoteKind kind) {
  const auto bytes = codec::encode(ShimNote{shim.request.key, shim.step, kind});
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  const auto& path = shim.setup.notify_socket;
  if (path.empty() || path.size() >= sizeof to.sun_path) return;
  std::memcpy(to.sun_path, path.data(), path.size());
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  // noded's queue of notes is short; if a note is lost, noded finds the record by itself.
  const timeval patience{1, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  (void)!::sendto(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

// noded is told before the record is durable. A power failure in between has the same effect as one
// just before the job's end, and a mere restart of noded does not need durability. An incomplete
// record counts as missing.
void write_exit_record(const Shim& shim, int dir_fd, const ExitRecord& record) {
  constexpr int kTries = 600;
  const auto bytes = codec::encode(record);
  bool told = false;
  for (int i = 0; i < kTries; ++i) {
    const auto file = write_visible(dir_fd, kExitFile, bytes);
    if (file && !told) notify(shim, NoteKind::exited);
    told = told || file.has_value();
    const auto durable =
        file ? make_durable(dir_fd, *file, kExitFile) : Result<void>(tl::unexpected(file.error()));
    if (durable) return;
    if (i == 0)
      std::fprintf(stderr, "gantry-shim: %s: %s\n", shim.dir.c_str(),
                   durable.error().message.c_str());
    struct stat dir {};
    // The attempt was forgotten: nobody waits for the record.
    if (::fstat(dir_fd, &dir) == 0 && dir.st_nlink == 0) return;
    // tidy-allow(sleep): no event tells when a full disk has space again
    ::sleep(1);
  }
}

std::string on_node(const Shim& shim, const std::string& text) {
  return "node " + shim.setup.node + ": " + text;
}

}  // namespace gantry::runtime

int main(int argc, char** argv) {
  return gantry::runtime::start(argc, argv);
}
