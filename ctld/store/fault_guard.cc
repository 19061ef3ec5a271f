// Uses only what a signal handler may do: open, read, write, _exit. It reads /proc/self/maps to
// find the file of an address, so that it shares nothing with the threads that the signal
// interrupts.
#include "ctld/store/fault_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace gantry::store {
namespace {

constexpr std::string_view kDataFile = "/data.mdb";
const char* g_program = "gantry-ctld";  // a signal handler has no other way to know

void put(std::string_view text) {
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
}

void put_number(std::uint64_t number) {
  char digits[24];
  std::size_t at = sizeof digits;
  do digits[--at] = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  put({digits + at, sizeof digits - at});
}

// Reads hexadecimal digits; `text` then begins after them and one more character.
std::uint64_t take_hex(std::string_view& text) {
  std::uint64_t value = 0;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c >= '0' && c <= '9')
      value = value << 4 | static_cast<std::uint64_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value << 4 | static_cast<std::uint64_t>(c - 'a' + 10);
    else
      break;
  }
  return value;
}

// Looks at a line "FROM-TO rw-p OFFSET DEVICE INODE   PATH". If it is the store's and contains
// `fault`, reports the fault and ends the process.
void judge_line(std::string_view line, std::uint64_t fault) {
  if (!line.ends_with(kDataFile)) return;
  const std::uint64_t from = take_hex(line);
  const std::uint64_t to = take_hex(line);
  if (fault < from || fault >= to || line.size() < 5) return;
  line.remove_prefix(5);
  const std::uint64_t offset = take_hex(line) + (fault - from);
  put(g_program);
  put(": ");
  put(line.substr(line.find('/')));
  put(" cannot be read at octet ");
  put_number(offset);
  put(": the file was cut off, or its disk fails; check both, then restore the file from a copy "
      "(docs/store.md)\n");
  ::_exit(kDamagedExit);
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  const auto fault = reinterpret_cast<std::uint64_t>(info->si_addr);
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  char buffer[8192];
  std::size_t filled = 0;
  while (maps >= 0) {
    const ssize_t n = ::read(maps, buffer + filled, sizeof buffer - filled);
    if (n <= 0) break;
    filled += static_cast<std::size_t>(n);
    std::size_t start = 0;
    for (std::size_t i = 0; i < filled; ++i) {
      if (buffer[i] != '\n') continue;
      judge_line({buffer + start, i - start}, fault);
      start = i + 1;
    }
    if (start == 0) break;  // a line longer than the buffer is not the store's
    filled -= start;
    std::memmove(buffer, buffer + start, filled);
  }
  // The address is not the store's: the fault happens again, and ends the process as usual.
  ::signal(signal, SIG_DFL);
}

}  // namespace

void say_store_faults(const char* program) {
  g_program = program;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

void end_damaged(const char* path, const char* what) {
  put(g_program);
  put(": ");
  put(path);
  put(" is damaged: LMDB found what cannot be (");
  put(what);
  put("); check the disk, then start again, which looks at the whole file (docs/store.md)\n");
  ::_exit(kDamagedExit);
}

}  // namespace gantry::store
