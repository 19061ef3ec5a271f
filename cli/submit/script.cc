// Reads directives by Slurm's rules, as sbatch of 22.05 has them.
#include "cli/submit/script.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>

#include "common/text/split.h"

namespace gantry::cli {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// The text after "#SBATCH " or "#GANTRY ", if the line is a directive.
std::optional<std::string_view> directive_of(std::string_view line) {
  for (std::string_view mark : {"#SBATCH", "#GANTRY"})
    if (line.starts_with(mark) && line.size() > mark.size() && is_blank(line[mark.size()]))
      return line.substr(mark.size());
  return std::nullopt;
}

Result<void> parse_line(std::string_view text, const std::string& place,
                        std::span<const Option> options, Spelling spelling,
                        std::vector<std::vector<Given>>& out) {
  const auto words = split_words(text, Backslash::escapes);
  if (!words)
    return fail(ErrorCode::usage, fmt::format("a {} quote is not closed",
                                              words.error() == '"' ? "double" : "single"));
  ASSIGN(parsed, parse_options(options, *words, false, spelling));
  if (words->size() == 1 && (words->front() == "hetjob" || words->front() == "packjob")) {
    out.emplace_back();
    return {};
  }
  if (!parsed->operands.empty() && spelling == Spelling::getopt)
    return fail(ErrorCode::invalid_argument,
                fmt::format("Invalid directive found in batch script: {}", parsed->operands[0]));
  if (!parsed->operands.empty())
    return fail(ErrorCode::usage, fmt::format("\"{}\" is not an option", parsed->operands[0]));
  for (Given& given : parsed->given) {
    if (!given.option->directive)
      return fail(ErrorCode::usage,
                  fmt::format("{} cannot stand in a script", shown_name(*given.option)));
    given.place = place;
    out.back().push_back(std::move(given));
  }
  return {};
}

}  // namespace

Result<std::string> read_script(const std::string& path) {
  const bool from_stdin = path.empty() || path == "-";
  const std::string shown = from_stdin ? "standard input" : path;
  std::FILE* file = from_stdin ? stdin : std::fopen(path.c_str(), "re");
  if (file == nullptr)
    return fail(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io_error,
                fmt::format("Unable to open file {}: {}", path, std::strerror(errno)));
  std::string text;
  std::array<char, 65536> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), file)) {
    text.append(buffer.data(), n);
    if (text.size() > kMaxScriptBytes) break;
  }
  const bool failed = std::ferror(file) != 0;
  const int error = errno;
  if (!from_stdin) std::fclose(file);
  if (failed)
    return fail(ErrorCode::io_error,
                fmt::format("cannot read {}: {}", shown, std::strerror(error)));
  if (text.size() > kMaxScriptBytes)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("{} has more than {} bytes", shown, kMaxScriptBytes));
  return text;
}

Result<void> check_script(std::string_view script) {
  const auto refuse = [](const char* text) { return fail(ErrorCode::invalid_argument, text); };
  if (script.empty()) return refuse("Batch script is empty!");
  if (script.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return refuse("Batch script contains only whitespace!");
  if (!script.starts_with("#!"))
    return refuse(
        "This does not look like a batch script.  The first line must start with #! followed by "
        "the "
        "path to an interpreter.  For instance: #!/bin/sh");
  if (script.find('\0') != std::string_view::npos)
    return refuse("The batch script contains a zero byte; it is not a text file");
  if (script.find("\r\n") != std::string_view::npos)
    return refuse(
        "Batch script contains DOS line breaks (\\r\\n) instead of expected UNIX line breaks "
        "(\\n); this changes them: sed -i 's/\\r$//' FILE");
  return {};
}

Result<std::vector<Given>> script_options(std::string_view script, std::string_view name,
                                          std::span<const Option> options, Spelling spelling) {
  ASSIGN(parts, script_components(script, name, options, spelling));
  if (parts->size() > 1)
    return fail(
        ErrorCode::unsupported,
        fmt::format("{}: hetjob is not supported here: sbatch submits heterogeneous jobs", name));
  return std::move(parts->front());
}

Result<std::vector<std::vector<Given>>> script_components(std::string_view script,
                                                          std::string_view name,
                                                          std::span<const Option> options,
                                                          Spelling spelling) {
  std::vector<std::vector<Given>> given(1);
  int number = 0;
  while (!script.empty()) {
    const std::size_t end = std::min(script.find('\n'), script.size());
    const std::string_view line = script.substr(0, end);
    script.remove_prefix(std::min(end + 1, script.size()));
    ++number;
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) continue;
    if (line[first] != '#') break;
    const auto directive = directive_of(line);
    if (!directive) continue;
    const std::string place = fmt::format("{}:{}", name, number);
    auto done = parse_line(*directive, place, options, spelling, given);
    if (!done && given.size() > 1)
      done = fail(done.error().code,
                  fmt::format("component {}: {}", given.size() - 1, done.error().message));
    if (!done && spelling == Spelling::getopt) return tl::unexpected(done.error());
    if (!done) return fail(done.error().code, fmt::format("{}: {}", place, done.error().message));
  }
  return given;
}

std::string script_of_wrap(std::string_view command) {
  return fmt::format("#!/bin/sh\n# This script was created by gbatch --wrap.\n\n{}\n", command);
}

}  // namespace gantry::cli
