// The log of a daemon: one structured line per event, to standard error or a file.
//
//   2026-01-31T08:05:00.123456Z info ctld "node registered" node=n3 cpus=64
//
// Code that logs is given a Logger; several threads may use it at once. Lines are written at once.
// Text from outside is quoted and escaped, so an event is always exactly one line.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/time/time.h"

namespace gantry {

enum class LogLevel : std::uint8_t { debug, info, warning, error };
Result<LogLevel> parse_log_level(std::string_view name);

// A name and a value; the value may be of any type that can be printed.
struct LogField {
  std::string_view name;
  std::string value;
  LogField(std::string_view n, std::string_view v) : name(n), value(v) {}
  LogField(std::string_view n, const char* v) : name(n), value(v) {}
  LogField(std::string_view n, bool v) : name(n), value(v ? "yes" : "no") {}
  LogField(std::string_view n, std::integral auto v) : name(n), value(std::to_string(v)) {}
  LogField(std::string_view n, double v) : name(n), value(std::to_string(v)) {}
  template <class Id>
  requires requires(Id id) { id.value(); }
  LogField(std::string_view n, Id id) : name(n), value(std::to_string(id.value())) {}
};
using LogFields = std::initializer_list<LogField>;

// Stops one kind of line from flooding the log: at most one line is written in each `interval`, and
// the next written line tells how many were left out. The code that logs owns it.
struct LogLimit {
  Duration interval = seconds(10);
  std::int64_t next_us = 0;  // by the steady clock
  std::uint64_t left_out = 0;
};

struct LogOptions {
  std::string program;  // "ctld"
  std::string file;     // "" = standard error; else appended to, and opened again by reopen()
  LogLevel level = LogLevel::info;
};

class Logger {
 public:
  static Result<Logger> open(const LogOptions& options);
  Logger(Logger&&) noexcept;
  Logger& operator=(Logger&&) noexcept;
  ~Logger();

  void write(LogLevel level, std::string_view message, LogFields fields = {}) const;
  void write(LogLimit& limit, LogLevel level, std::string_view message,
             LogFields fields = {}) const;
  void debug(std::string_view m, LogFields f = {}) const { write(LogLevel::debug, m, f); }
  void info(std::string_view m, LogFields f = {}) const { write(LogLevel::info, m, f); }
  void warning(std::string_view m, LogFields f = {}) const { write(LogLevel::warning, m, f); }
  void error(std::string_view m, LogFields f = {}) const { write(LogLevel::error, m, f); }
  [[nodiscard]] bool enabled(LogLevel level) const;
  Result<void> reopen();  // call it after the file was rotated, from the thread that writes

 private:
  struct Impl;
  explicit Logger(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry
