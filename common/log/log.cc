#include "common/log/log.h"

#include <fmt/core.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <chrono>

#include "common/assert.h"
#include "common/text/printable.h"
#include "common/text/utf8.h"

namespace gantry {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

bool is_plain(std::string_view text) {
  for (const char c : text) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!word && std::string_view("-_./:,+@%").find(c) == std::string_view::npos) return false;
  }
  return !text.empty();
}

// Bytes that are not printable are written as escapes, so that the log shows what they were.
void append_quoted(std::string& line, std::string_view text) {
  line += '"';
  while (!text.empty()) {
    const std::string_view shown = text.substr(0, find_unprintable(text));
    for (const char c : shown) {
      if (c == '"' || c == '\\') line += '\\';
      line += c;
    }
    text.remove_prefix(shown.size());
    if (text.empty()) break;
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text));
    for (const char c : text.substr(0, length))
      line +=
          c == '\n' ? std::string("\\n") : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    text.remove_prefix(length);
  }
  line += '"';
}

std::string to_line(std::string_view message, LogFields fields, std::uint64_t left_out) {
  std::string line;
  append_quoted(line, message);
  for (const LogField& field : fields) {
    (line += ' ').append(field.name) += '=';
    is_plain(field.value) ? (void)line.append(field.value) : append_quoted(line, field.value);
  }
  if (left_out > 0) line += fmt::format(" left_out={}", left_out);
  return line;
}

std::int64_t steady_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

Result<spdlog::sink_ptr> make_sink(const std::string& file) {
  if (file.empty()) return std::make_shared<spdlog::sinks::stderr_sink_mt>();
  try {
    return std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
  } catch (const spdlog::spdlog_ex& e) {
    return fail(ErrorCode::io_error, fmt::format("cannot write the log {}: {}", file, e.what()));
  }
}

}  // namespace

struct Logger::Impl {
  LogOptions options;
  spdlog::sink_ptr sink;
  std::unique_ptr<spdlog::logger> logger;

  void use(spdlog::sink_ptr fresh) {
    sink = std::move(fresh);
    logger = std::make_unique<spdlog::logger>(options.program, sink);
    logger->set_level(level_of(options.level));
    logger->flush_on(spdlog::level::trace);  // each line is written before the program continues
    logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%fZ %l %n %v", spdlog::pattern_time_type::utc));
    logger->set_error_handler([](const std::string&) {});  // a full disk must not end the daemon
  }
};

Result<LogLevel> parse_log_level(std::string_view name) {
  if (name == "debug") return LogLevel::debug;
  if (name == "info") return LogLevel::info;
  if (name == "warning") return LogLevel::warning;
  if (name == "error") return LogLevel::error;
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{}\" is no log level: debug, info, warning or error", name));
}

Logger::Logger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Logger::Logger(Logger&&) noexcept = default;
Logger& Logger::operator=(Logger&&) noexcept = default;
Logger::~Logger() = default;

Result<Logger> Logger::open(const LogOptions& options) {
  ASSIGN(sink, make_sink(options.file));
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->use(std::move(*sink));
  return Logger(std::move(impl));
}

Result<void> Logger::reopen() {
  if (impl_->options.file.empty()) return {};
  ASSIGN(sink, make_sink(impl_->options.file));
  impl_->use(std::move(*sink));
  return {};
}

bool Logger::enabled(LogLevel level) const {
  return impl_->logger->should_log(level_of(level));
}

void Logger::write(LogLevel level, std::string_view message, LogFields fields) const {
  if (!enabled(level)) return;
  const std::string line = to_line(message, fields, 0);
  impl_->logger->log(level_of(level), spdlog::string_view_t(line.data(), line.size()));
}

void Logger::write(LogLimit& limit, LogLevel level, std::string_view message,
                   LogFields fields) const {
  if (!enabled(level)) return;
  const std::int64_t now = steady_us();
  if (now < limit.next_us) {
    ++limit.left_out;
    return;
  }
  limit.next_us = now + limit.interval.us;
  const std::string line = to_line(message, fields, std::exchange(limit.left_out, 0));
  impl_->logger->log(level_of(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace gantry
