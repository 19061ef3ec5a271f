// gantry-shim: one per running job on a node, and one per step. It owns the container's standard
// files and its exit record, and outlives noded.
//
//   gantry-shim job  STATE_DIR JOB.ATTEMPT
//   gantry-shim step STATE_DIR JOB.ATTEMPT STEP
//   gantry-shim epilog STATE_DIR JOB.ATTEMPT     in the place of a shim that was killed
//   gantry-shim door ADDRESS PORT INSIDE         a replica's door alone: process/door.h
//   gantry-shim template STATE_DIR PADDING       becomes the two above, by forking: template.h
//
// Descriptor 3 is the open, locked shim.lock of its directory: as long as the lock is held, this
// process lives (an epilog has no lock). Everything else that it needs lies in STATE_DIR
// (noded/runtime/job_dir.h).
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "common/codec/codec.h"
#include "noded/machine/storage_view.h"
#include "noded/shim/fence.h"
#include "noded/shim/process/door.h"
#include "noded/shim/run/template.h"
#include "noded/shim/shim.h"

namespace gantry::runtime {
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

// Is the attempt over? If the shim got the processor so late that noded has given it up, it must
// not begin.
bool is_over(const Shim& shim) {
  return ::faccessat(shim.dir_fd.get(), kExitFile, F_OK, 0) == 0;
}

// Runs the epilog that a killed shim did not run. Its job is taken to have ended by a signal; the
// true one is not known.
int run_lost_epilog(const Shim& shim, Signals& signals) {
  ExitRecord record;
  record.exit = {0, SIGKILL};
  const auto r = run_hook(shim, "epilog", shim.request.epilog, {-1, -1, &record}, signals);
  if (!r)
    std::fprintf(stderr, "gantry-shim: job %s: %s\n", job_name(shim.request.key).c_str(),
                 r.error().message.c_str());
  return r ? 0 : 1;
}

// `words` are those of the command line, from the mode on.
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
  // noded's queue is short; if a note is lost, noded finds the record by itself.
  const timeval patience{1, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  (void)!::sendto(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

// noded is told before the record is safe on the disk. A power cut in between has the same effect
// as one a moment before the job's end, and a mere restart of noded needs no safe disk. An
// incomplete record counts as none.
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
    // tidy-allow(sleep): no event tells when a full disk has room again
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
