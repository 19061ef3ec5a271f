// gantry-init: PID 1 of every container. It is tiny and has no C library, so it starts in a
// fraction of a millisecond and needs no file of the image.
//
//   gantry-init [in DIR] run  PROGRAM [ARG...]   starts the program at once; PROGRAM is a path
//   gantry-init [in DIR] hold PROGRAM [ARG...]   starts it when the shim says go
//   gantry-init pause                            starts nothing: steps enter its namespaces
//
// "hard" before all that: the program is one of a hardened job (noded/machine/hardened_rules.h).
// "alone" before all that: the container has its own kernel, so there is no socket to the shim, and
// the standard files are 0 to 2 already.
//
// It forwards signals to the program's process group, reaps orphans, and ends with the program's
// status; the kernel then ends whatever is left in the PID namespace. Descriptor 3 is a socket to
// the shim (noded/shim/process/init_protocol.h), 4 to 6 are the program's standard files. When the
// socket closes, the shim is gone, and gantry-init ends the job by leaving.
#include <asm/errno.h>
#include <asm/poll.h>
#include <asm/signal.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/signalfd.h>
#include <linux/time_types.h>

#include "noded/machine/hardened_rules.h"
#include "noded/shim/process/init_protocol.h"
#include "noded/shim/process/init_syscalls.h"

namespace {

using namespace gantry::init;
using gantry::runtime::InitNote;
using gantry::runtime::InitWord;
using gantry::runtime::kInitFileCount;
using gantry::runtime::kInitFiles;
using gantry::runtime::kInitOpenFiles;
using gantry::runtime::kInitSocket;

constexpr int kSignals = 64;
constexpr long kMaskBytes = 8;
constexpr long kNoSignal = 0x4000;  // MSG_NOSIGNAL
constexpr long kDontWait = 0x40;    // MSG_DONTWAIT
constexpr long kNoHang = 1;         // WNOHANG
constexpr long kFilesLimit = 7;     // RLIMIT_NOFILE

[[noreturn]] void leave(int status) {
  for (;;) call(SYS_exit_group, status);
}

bool same(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

bool has_shim = true;  // false: "alone"
bool hardened = false;

constexpr auto kCall = [](long number, long a, long b, long c, long d = 0) {
  return call(number, a, b, c, d);
};

// This process opens no files any more, so it gives up all access. Programs that it starts later
// would inherit that, so this comes last.
void give_up_files() {
  const long has = gantry::landlock::version(kCall);
  if (has < 1) return;
  const long ruleset = gantry::landlock::make(kCall, gantry::landlock::rights_of(has));
  if (ruleset < 0) return;
  gantry::landlock::restrict_self(kCall, ruleset);
  call(SYS_close, ruleset);
}

void tell(InitWord word, int value) {
  if (!has_shim) return;
  const InitNote note{word, value};
  while (call(SYS_sendto, kInitSocket, address(&note), sizeof note, kNoSignal) == -EINTR) {
  }
}

void default_signals() {
  const unsigned long action[4] = {0, 0, 0, 0};  // the kernel's struct sigaction: SIG_DFL
  for (int s = 1; s <= kSignals; ++s) call(SYS_rt_sigaction, s, address(action), 0, kMaskBytes);
  const unsigned long none = 0;
  call(SYS_rt_sigprocmask, SIG_SETMASK, address(&none), 0, kMaskBytes);
}

// Writes this process's id into SLURM_TASK_PID and GANTRY_TASK_PID, which have ten digits.
void set_task_pid(char** env) {
  constexpr char kName[] = "_TASK_PID=";
  for (; *env != nullptr; ++env) {
    char* at = *env;
    while (*at >= 'A' && *at <= 'Z') ++at;
    if (at != *env + 5 && at != *env + 6) continue;  // prefix SLURM or GANTRY
    int i = 0;
    while (kName[i] != '\0' && at[i] == kName[i]) ++i;
    if (kName[i] != '\0') continue;
    char* out = at + i;
    int room = 0;
    while (out[room] != '\0') ++room;
    char digits[12];
    int count = 0;
    for (long pid = call(SYS_getpid); pid > 0 && count < 11; pid /= 10)
      digits[count++] = static_cast<char>('0' + pid % 10);
    if (count > room) continue;
    for (int d = 0; d < count; ++d) out[d] = digits[count - 1 - d];
    out[count] = '\0';
  }
}

[[noreturn]] void become(const char* dir, char** program, char** env, int count) {
  call(SYS_setsid);
  default_signals();
  set_task_pid(env);
  tell(InitWord::child, 0);  // the kernel adds this process's id, as the shim sees it
  long error = dir != nullptr ? call(SYS_chdir, address(dir)) : 0;
  if (error == 0 && hardened &&
      !gantry::landlock::harden(kCall, {SYS_openat, SYS_getdents64, SYS_close}))
    error = -EACCES;
  if (error == 0) error = call(SYS_execve, address(program[0]), address(program), address(env));
  if (error == -ENOEXEC) {  // the file is a script without a "#!" line
    static char shell[] = "/bin/sh";
    char* words[256];
    words[0] = shell;
    for (int i = 0; i <= count && i < 255; ++i) words[i + 1] = program[i];
    if (count < 255) error = call(SYS_execve, address(shell), address(words), address(env));
  }
  tell(InitWord::exec_failed, static_cast<int>(-error));
  leave(error == -ENOENT ? 127 : 126);
}

int start(const char* dir, char** program, char** env, int count) {
  const long pid = call(SYS_clone, SIGCHLD);
  if (pid == 0) become(dir, program, env, count);
  if (pid < 0) {
    tell(InitWord::exec_failed, static_cast<int>(-pid));
    leave(126);
  }
  return static_cast<int>(pid);
}

int exit_code(int status) {
  const int number = status & 0x7f;
  return number != 0 ? 128 + number : (status >> 8) & 0xff;
}

// Reaps all children that ended; returns true if `child` was among them.
bool reap(int child, int& status) {
  bool ended = false;
  for (;;) {
    int s = 0;
    const long pid = call(SYS_wait4, -1, address(&s), kNoHang, 0);
    if (pid <= 0) return ended;
    if (pid == child) {
      status = s;
      ended = true;
    }
  }
}

constexpr long kSoon = 50'000'000;  // pause in nanoseconds
constexpr int kMostRounds = 20;     // rounds of kSoon: a second in total

struct Init {
  const char* dir;  // nullptr = stay where it was started
  char** program;   // nullptr = pause
  char** env;
  int count;  // number of words in `program`
  bool hold;
  int signals;  // signalfd
  int child = 0;
  bool ending = false;  // pause or hold: it was told to end
  bool ended = false;   // the child has ended, with `status`
  int status = 0;
  int rounds = 0;  // how many kSoon have passed since then

  void hear() {
    InitNote note{};
    const long n = call(SYS_recvfrom, kInitSocket, address(&note), sizeof note, kDontWait);
    if (n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR)) leave(137);  // the shim is gone
    if (n == sizeof note && note.word == InitWord::go && hold && child == 0) {
      child = start(dir, program, env, count);
      give_up_files();
    }
  }

  void forward() {
    signalfd_siginfo info;
    while (call(SYS_read, signals, address(&info), sizeof info) == sizeof info) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) continue;
      if (child > 0) call(SYS_kill, -child, number);
      if (child == 0 && (number == SIGTERM || number == SIGINT)) ending = true;
    }
  }

  // Whether no other process is left in the namespace.
  static bool alone() { return call(SYS_kill, -1, 0) == -ESRCH; }

  // When a job is told to end, all its processes get the signal, and a shell ends at once. Its
  // other processes get a moment too, so that grun can report how its step ended.
  [[nodiscard]] bool may_leave() {
    return (status & 0x7f) != SIGTERM || alone() || rounds++ >= kMostRounds;
  }

  [[noreturn]] void loop() {
    for (;;) {
      pollfd watched[2] = {{signals, POLLIN, 0}, {kInitSocket, POLLIN, 0}};
      const __kernel_timespec soon{0, kSoon};
      call(SYS_ppoll, address(watched), has_shim ? 2 : 1, ending || ended ? address(&soon) : 0, 0,
           kMaskBytes);
      if (watched[1].revents != 0) hear();
      forward();
      if (reap(child, status) && child > 0) ended = true;
      if (ended && may_leave()) {
        tell(InitWord::exited, status);
        leave(exit_code(status));
      }
      // A container that was told to end has ended.
      if (ending && child == 0 && alone()) leave(143);
    }
  }
};

// A Go runtime raises its soft limit of open files to the hard limit, and children inherit that.
void lower_files() {
  unsigned long limit[2] = {0, 0};  // soft, hard
  if (call(SYS_prlimit64, 0, kFilesLimit, 0, address(limit)) != 0 || limit[0] <= kInitOpenFiles)
    return;
  limit[0] = kInitOpenFiles;
  call(SYS_prlimit64, 0, kFilesLimit, address(limit), 0);
}

void take_files() {
  call(SYS_fcntl, kInitSocket, F_SETFD, FD_CLOEXEC);
  for (int i = 0; i < kInitFileCount; ++i) {
    if (call(SYS_dup3, kInitFiles + i, i, 0) != i) leave(3);
    call(SYS_close, kInitFiles + i);
  }
}

}  // namespace

extern "C" [[noreturn]] __attribute__((used)) void init_main(long* stack) {
  int argc = static_cast<int>(stack[0]);
  char** argv = reinterpret_cast<char**>(stack + 1);
  char** env = argv + argc + 1;
  const char* dir = nullptr;
  for (; argc > 1; ++argv, --argc) {
    if (same(argv[1], "hard"))
      hardened = true;
    else if (same(argv[1], "alone"))
      has_shim = false;
    else
      break;
  }
  // Older shims do not send the directory: then the runtime enters it.
  if (argc > 3 && same(argv[1], "in")) {
    dir = argv[2];
    argv += 2;
    argc -= 2;
  }
  const bool pause = argc > 1 && same(argv[1], "pause");
  const bool hold = argc > 1 && same(argv[1], "hold");
  if (!pause && argc < 3) leave(2);
  // This process runs with the job's ids, and the shim trusts its messages. So the job must not be
  // able to trace it, write to its memory or take its socket. Programs that it executes are not
  // affected.
  if (call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0) != 0) leave(4);
  if (has_shim) take_files();
  lower_files();
  const unsigned long all = ~0ul;
  call(SYS_rt_sigprocmask, SIG_SETMASK, address(&all), 0, kMaskBytes);
  const long signals = call(SYS_signalfd4, -1, address(&all), kMaskBytes, O_CLOEXEC | O_NONBLOCK);
  Init init{dir, pause ? nullptr : argv + 2, env, argc - 2, hold, static_cast<int>(signals)};
  tell(InitWord::up, 0);
  if (!pause && !hold) init.child = start(dir, init.program, env, init.count);
  if (!hold) give_up_files();
  init.loop();
}
