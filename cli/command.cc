// Runs a command: finds the sub-command, parses the options, and turns errors into messages and
// exit statuses.
#include "cli/command.h"

#include <fmt/core.h>

#include "common/text/printable.h"
#include "config/nearest.h"

namespace gantry::cli {
namespace {

Result<void> nothing(void*, std::string_view) {
  return {};
}

constexpr Option kCommon[] = {
    flag("help", "Show this help", nothing).not_in_scripts(),
    flag("usage", "Show the first lines of this help", nothing).not_in_scripts(),
    flag("version", 'V', "Show the version", nothing).not_in_scripts(),
};

std::string quoted(const std::string& word) {  // quotes a word for a shell
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

bool has_option(const Command& command, const Option& common) {
  for (const Option& option : command.options)
    if (option.name == common.name || (common.letter != 0 && option.letter == common.letter))
      return true;
  return false;
}

void say(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

int report(const std::string& program, const Error& error) {
  if (error.code == ErrorCode::usage) {
    const std::string_view head(program);
    say(fmt::format("{}: {}\nTry \"{} --help\" for more information\n", program, error.message,
                    head));
  } else {
    say(fmt::format("{}: error: {}\n", program, printable(error.message, Lines::many)));
  }
  return exit_status_of(error.code);
}

}  // namespace

std::span<const Option> common_options() {
  return kCommon;
}

const Command* find_command(std::span<const Command* const> commands, std::string_view name) {
  for (const Command* command : commands)
    if (command->name == name) return command;
  return nullptr;
}

std::string Invocation::line() const {
  std::string line = program_;
  for (const std::string& arg : args_) {
    const bool plain =
        !arg.empty() && arg.find_first_of(" \t\n'\"\\$`;&|<>()*?#~") == std::string::npos;
    line += plain ? " " + arg : " " + quoted(arg);
    if (line.size() > kMaxLine) line.resize(kMaxLine);
  }
  return line;
}

Result<std::optional<Parsed>> Invocation::parse_only() const {
  std::vector<Option> options(command_.options.begin(), command_.options.end());
  for (const Option& option : kCommon)
    if (!has_option(command_, option)) options.push_back(option);
  ASSIGN(parsed, parse_options(options, args_, command_.stop_at_operand));
  std::vector<Given> own;
  for (Given& given : parsed->given) {
    const std::string_view name = given.option->name;
    if (const auto index = static_cast<std::size_t>(given.option - options.data());
        index < command_.options.size()) {
      // `options` ends with this call; the command's table does not
      given.option = &command_.options[index];
      own.push_back(std::move(given));
      continue;
    }
    if (name == "version") {
      fmt::print("gantry {}\n", kVersion);
    } else {
      const std::string text = help_text(command_, program_);
      const std::size_t end = name == "usage" ? text.find("\n\n") + 1 : text.size();
      std::fwrite(text.data(), 1, end, stdout);
    }
    return std::nullopt;
  }
  parsed->given = std::move(own);
  return std::optional<Parsed>(std::move(*parsed));
}

Result<std::optional<std::vector<std::string>>> Invocation::parse(void* target, std::size_t least,
                                                                  std::size_t most) const {
  ASSIGN(parsed, parse_only());
  if (!*parsed) return std::nullopt;
  const auto environment = options_from_environment(command_.options, command_.env_prefixes);
  TRY(apply_options(environment, target));
  TRY(apply_options((*parsed)->given, target));
  auto& operands = (*parsed)->operands;
  if (operands.size() > most)
    return fail(ErrorCode::usage, fmt::format("extra argument '{}'", operands[most]));
  if (operands.size() < least)
    return fail(ErrorCode::usage,
                fmt::format("an argument is missing: {} {}", program_, command_.operands));
  return std::optional(std::move(operands));
}

int run_command(const Command& command, const std::string& program, std::vector<std::string> args) {
  if (!command.sub.empty() && !args.empty() && args[0].front() != '-') {
    if (const Command* sub = find_command(command.sub, args[0])) {
      const std::string name = program + " " + args[0];
      args.erase(args.begin());
      return run_command(*sub, name, std::move(args));
    }
    std::vector<std::string_view> names;
    for (const Command* sub : command.sub) names.push_back(sub->name);
    return report(program, {ErrorCode::usage, fmt::format("unknown command '{}'{}", args[0],
                                                          did_you_mean(args[0], names))});
  }
  const Invocation invocation(program, command, std::move(args));
  if (command.run == nullptr) {
    const auto parsed = invocation.parse_only();
    if (!parsed) return report(program, parsed.error());
    if (!*parsed) return 0;
    say(help_text(command, program));
    return exit_status_of(ErrorCode::usage);
  }
  const auto status = command.run(invocation);
  if (!status) return report(program, status.error());
  return *status;
}

}  // namespace gantry::cli
