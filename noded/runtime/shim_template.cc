#include "noded/runtime/shim_template.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "noded/machine/passing.h"

namespace gantry::runtime {
namespace {

constexpr int kPatienceMs = 5000;
constexpr int kMostInVain = 3;
// Room in the template's command line for the words of a shim: "job" or "step", two numbers with a
// dot, and the number of a step.
constexpr std::size_t kPadding = 64;

bool readable(const Fd& fd) {
  pollfd watched{fd.get(), POLLIN, 0};
  int n = 0;
  while ((n = ::poll(&watched, 1, kPatienceMs)) < 0 && errno == EINTR) {
  }
  return n == 1;
}

}  // namespace

ShimTemplate::ShimTemplate(std::string shim_path, std::string state_dir, int log)
    : shim_path_(std::move(shim_path)), state_dir_(std::move(state_dir)), log_(log) {}

void ShimTemplate::start() {
  if (shim_path_.empty() || in_vain_ >= kMostInVain) return;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  socket_.reset(ends[0]);
  const Fd theirs(ends[1]);
  auto process = start_process({shim_path_, "template", state_dir_, std::string(kPadding, '.')},
                               theirs.get(), log_);
  if (!process || !process->pidfd) return socket_.reset();
  process_ = std::move(*process);
  ++in_vain_;
}

void ShimTemplate::look() {
  if (!process_.pidfd || !reap_shim(process_)) return;
  process_ = {};
  socket_.reset();
  start();
}

Result<ShimProcess> ShimTemplate::start_shim(const std::string& dir,
                                             const std::vector<std::string>& args) {
  if (!process_.pidfd) {
    auto shim = runtime::start_shim(shim_path_, dir, args, log_);
    start();
    return shim;
  }
  ShimProcess shim;
  {
    ASSIGN(lock, take_lock(dir));
    if (ask(args, *lock, shim)) return shim;
  }
  auto dead = end();
  if (!dead) return dead;
  switch (find_shim(dir, shim)) {
    case ShimState::alive: return shim;
    // The shim was made and has ended already: the dead template's pidfd says so, too.
    case ShimState::gone: return dead;
    case ShimState::never_ran: break;
  }
  auto other = runtime::start_shim(shim_path_, dir, args, log_);
  start();
  return other;
}

bool ShimTemplate::ask(const std::vector<std::string>& args, const Fd& lock, ShimProcess& shim) {
  std::string words;
  for (const auto& arg : args) words += arg + '\0';
  if (!pass(socket_, words, lock.get()) || !readable(socket_)) return false;
  auto answer = take_passed(socket_);
  if (!answer.fd || answer.bytes.size() != sizeof shim.pid) return false;
  std::memcpy(&shim.pid, answer.bytes.data(), sizeof shim.pid);
  shim.pidfd = std::move(answer.fd);
  in_vain_ = 0;
  return true;
}

Result<ShimProcess> ShimTemplate::end() {
  auto process = std::exchange(process_, {});
  socket_.reset();
  signal_shim(process, SIGKILL);
  if (!readable(process.pidfd))
    return fail(ErrorCode::runtime_failed,
                "the shims' template (process " + std::to_string(process.pid) + ") does not end");
  reap_shim(process);
  return process;
}

}  // namespace gantry::runtime
