#include "noded/shim/run/template.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "noded/machine/passing.h"

namespace gantry::runtime {
namespace {

constexpr int kThirdFd = 3;  // the template's socket, or a shim's lock

// The words that /proc/PID/cmdline shows after the program's name. The kernel must be told where
// they end. Every process may tell it so, but only together with the rest of the process's memory
// map.
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

// No zombie stays. No shim is reaped before its pidfd is open, so its process id cannot be reused
// before.
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
  ::close_range(kThirdFd + 1, ~0u, 0);  // what noded was started with must not reach a job
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

}  // namespace gantry::runtime
