// A command as data: everything that --help, the man page, completion and the dispatcher need to
// know about it. The table of all commands is in commands.cc; the declaration and the code of each
// command are in its cmd_*.cc.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/option.h"
#include "common/result.h"
#include "common/version.h"

namespace gantry::cli {

struct Example {
  std::string_view command;
  std::string_view what;
};

struct ExitDoc {
  std::string_view code;
  std::string_view what;
};

class Invocation;
struct Command;

// The name of a command and its one line of help, which every listing of commands shows.
struct CommandHead {
  std::string_view name;           // "gbatch", or "drain" for a sub-command
  std::string_view summary;        // one line
  std::string_view operands = {};  // "[SCRIPT [ARG...]]"
};

inline constexpr std::size_t kMostExamples = 10;
inline constexpr std::size_t kMostExits = 10;

struct CommandBody {
  std::string_view description = {};  // paragraphs, separated by blank lines
  std::span<const Option> options = {};
  Example examples[kMostExamples] = {};             // see shown()
  ExitDoc exits[kMostExits] = {};                   // see shown()
  Result<int> (*run)(const Invocation&) = nullptr;  // not set if there are sub-commands
  std::span<const Command* const> sub = {};
  bool stop_at_operand = false;  // options end at the first operand
  std::span<const std::string_view> env_prefixes =
      {};  // prefixes of environment variables: SBATCH_, GBATCH_
};

struct Command : CommandHead, CommandBody {};

// The rows of `examples` or `exits` that the command has.
template <class Row, std::size_t N>
constexpr std::span<const Row> shown(const Row (&rows)[N]) {
  std::size_t count = 0;
  while (count < N && !rows[count].what.empty()) ++count;
  return {rows, count};
}

// COMMANDS(space, kOne, kTwo): declares commands that a file of a namespace of its own defines.
#define COMMANDS(space, ...)        \
  namespace space {                 \
  extern const Command __VA_ARGS__; \
  }

// One call of a command, as typed.
class Invocation {
 public:
  Invocation(std::string program, const Command& command, std::vector<std::string> args)
      : program_(std::move(program)), command_(command), args_(std::move(args)) {}

  [[nodiscard]] const std::string& program() const { return program_; }  // "gctl drain"
  [[nodiscard]] const Command& command() const { return command_; }
  [[nodiscard]] const std::vector<std::string>& args() const { return args_; }
  // The whole command line, quoted for a shell: gacct shows it as SubmitLine. It is cut off after
  // kMaxLine octets.
  [[nodiscard]] std::string line() const;

  // Parses and applies options from the environment, then from the command line. Returns nullopt if
  // --help or --version was asked for; the answer is then printed already. More than `most`
  // operands are a usage error.
  Result<std::optional<std::vector<std::string>>> parse(void* target, std::size_t least,
                                                        std::size_t most) const;
  // Parses the options without applying them, for commands that have more sources of options.
  Result<std::optional<Parsed>> parse_only() const;

 private:
  std::string program_;
  const Command& command_;
  std::vector<std::string> args_;
};

// OPERANDS(name, call, target, least, most): declares `name` as call.parse(target, least, most),
// with the operands as **name, and returns from the function around it if there is nothing to do.
#define OPERANDS(name, call, ...)          \
  ASSIGN(name, (call).parse(__VA_ARGS__)); \
  if (!*name) return 0

inline constexpr std::size_t kMaxLine = 4096;  // octets
inline constexpr std::size_t kAnyOperands = static_cast<std::size_t>(-1);

// The options that every command has.
std::span<const Option> common_options();

std::span<const Command* const> all_commands();
const Command* find_command(std::span<const Command* const> commands, std::string_view name);

// Runs `args` as `command`, descending into sub-commands. Prints errors and returns the exit
// status.
int run_command(const Command& command, const std::string& program, std::vector<std::string> args);

std::string help_text(const Command& command, std::string_view program);
// `program` is the typed name: "gctl", or "gctl why" for the page of a sub-command alone.
std::string man_page(const Command& command, std::string_view program);
std::string completion_script(std::span<const Command* const> commands);

}  // namespace gantry::cli
