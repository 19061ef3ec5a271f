// Reads and writes numbers, memory and signals as people write them; see text.h.
#include "common/text/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "common/limits.h"

namespace gantry {
namespace {

char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

std::string to_upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = upper(c);
  return out;
}

struct SignalRow {
  std::int32_t number;
  std::string_view name;  // without SIG
};

constexpr std::array<SignalRow, 31> kSignals{{
    {SIGHUP, "HUP"},     {SIGINT, "INT"},   {SIGQUIT, "QUIT"}, {SIGILL, "ILL"},
    {SIGTRAP, "TRAP"},   {SIGABRT, "ABRT"}, {SIGBUS, "BUS"},   {SIGFPE, "FPE"},
    {SIGKILL, "KILL"},   {SIGUSR1, "USR1"}, {SIGSEGV, "SEGV"}, {SIGUSR2, "USR2"},
    {SIGPIPE, "PIPE"},   {SIGALRM, "ALRM"}, {SIGTERM, "TERM"}, {SIGSTKFLT, "STKFLT"},
    {SIGCHLD, "CHLD"},   {SIGCONT, "CONT"}, {SIGSTOP, "STOP"}, {SIGTSTP, "TSTP"},
    {SIGTTIN, "TTIN"},   {SIGTTOU, "TTOU"}, {SIGURG, "URG"},   {SIGXCPU, "XCPU"},
    {SIGXFSZ, "XFSZ"},   {SIGPROF, "PROF"}, {SIGIO, "IO"},     {SIGVTALRM, "VTALRM"},
    {SIGWINCH, "WINCH"}, {SIGPWR, "PWR"},   {SIGSYS, "SYS"},
}};

// The C library reserves signals 32 and 33, so SIGRTMIN is 34 for programs.
constexpr std::int32_t kFirstRealTime = 34;
constexpr std::int32_t kLastSignal = 64;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || text.empty()) return std::nullopt;
  return value;
}

struct Unit {
  char letter;
  std::int64_t bytes;
};
constexpr std::array<Unit, 4> kUnits{{{'T', std::int64_t{1} << 40},
                                      {'G', std::int64_t{1} << 30},
                                      {'M', std::int64_t{1} << 20},
                                      {'K', std::int64_t{1} << 10}}};

// Bytes in a unit that follows a number: "", "g", "GB", "GiB".
std::optional<std::int64_t> unit_bytes(std::string_view written) {
  if (written.empty()) return std::int64_t{1} << 20;
  const std::string unit = to_upper(written);
  const std::string_view rest = std::string_view(unit).substr(1);
  if (!rest.empty() && rest != "B" && rest != "IB") return std::nullopt;
  for (const Unit& row : kUnits)
    if (row.letter == unit[0]) return row.bytes;
  return std::nullopt;
}

}  // namespace

Result<std::int64_t> parse_integer(std::string_view what, std::string_view text, std::int64_t low,
                                   std::int64_t high) {
  const std::optional<std::int64_t> value = whole_number(text);
  if (value && *value >= low && *value <= high) return *value;
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("{} must be a whole number from {} to {}, not \"{}\"", what, low, high, text));
}

// ---- memory

Result<std::int64_t> parse_memory(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<std::int64_t> amount = whole_number(text.substr(0, digits));
  const std::optional<std::int64_t> unit = unit_bytes(text.substr(digits));
  if (!amount || !unit)
    return fail(ErrorCode::invalid_argument,
                fmt::format("memory \"{}\" is not a whole number of MB, or of K, M, G or T", text));
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(*amount, *unit, &bytes) || bytes > kMaxMemoryBytes)
    return fail(ErrorCode::invalid_argument,
                fmt::format("memory \"{}\" is more than {}", text, format_memory(kMaxMemoryBytes)));
  return bytes;
}

std::string format_memory(std::int64_t bytes) {
  if (bytes == 0) return "0";
  for (const Unit& unit : kUnits)
    if (bytes % unit.bytes == 0) return fmt::format("{}{}", bytes / unit.bytes, unit.letter);
  return fmt::format("{}B", bytes);
}

std::string format_memory_rounded(std::int64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes < unit.bytes) continue;
    const std::int64_t hundredths = bytes / (unit.bytes / 128) * 100 / 128;
    const std::int64_t whole = hundredths / 100;
    if (whole >= 100) return fmt::format("{}{}", whole, unit.letter);
    if (whole >= 10) return fmt::format("{}.{}{}", whole, hundredths % 100 / 10, unit.letter);
    return fmt::format("{}.{:02}{}", whole, hundredths % 100, unit.letter);
  }
  return bytes == 0 ? "0" : fmt::format("{}B", bytes);
}

// ---- signals

Result<std::int32_t> parse_signal(std::string_view text) {
  if (const std::optional<std::int64_t> number = whole_number(text)) {
    if (*number >= 1 && *number <= kLastSignal) return static_cast<std::int32_t>(*number);
  } else {
    std::string name = to_upper(text);
    if (name.starts_with("SIG")) name.erase(0, 3);
    for (const SignalRow& row : kSignals)
      if (row.name == name) return row.number;
    if (name.starts_with("RTMIN")) {
      const bool alone = name.size() == 5;
      const std::optional<std::int64_t> more =
          alone
              ? 0
              : whole_number(std::string_view(name).substr(std::min<std::size_t>(6, name.size())));
      if (more && (alone || name[5] == '+') && *more >= 0 && *more <= kLastSignal - kFirstRealTime)
        return static_cast<std::int32_t>(kFirstRealTime + *more);
    }
  }
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("\"{}\" is not a signal: write a name such as TERM or a number from 1 to {}",
                  text, kLastSignal));
}

std::string signal_name(std::int32_t signal) {
  for (const SignalRow& row : kSignals)
    if (row.number == signal) return fmt::format("SIG{}", row.name);
  if (signal == kFirstRealTime) return "SIGRTMIN";
  if (signal > kFirstRealTime && signal <= kLastSignal)
    return fmt::format("SIGRTMIN+{}", signal - kFirstRealTime);
  return fmt::format("signal {}", signal);
}

}  // namespace gantry
