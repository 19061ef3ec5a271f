// --help and man pages, made from the declaration of a command.
#include <fmt/core.h>

#include "cli/command.h"

namespace gantry::cli {
namespace {

constexpr std::size_t kWidth = 80;       // width of help lines, in characters
constexpr std::size_t kHelpColumn = 30;  // column where the explanations of options begin

std::string spelled(const Option& option) {
  std::string text = option.letter != 0 ? fmt::format("-{}", option.letter) : "  ";
  if (!option.name.empty())
    text += fmt::format("{} --{}", option.letter != 0 ? "," : " ", option.name);
  if (option.arg == Arg::required)
    text += (option.name.empty() ? " " : "=") + std::string(option.value);
  if (option.arg == Arg::optional) text += fmt::format("[={}]", option.value);
  return text;
}

// Appends `text`, broken at blanks. The first line continues at `column`; the others are indented.
void wrap(std::string& out, std::string_view text, std::size_t column, std::size_t indent) {
  std::size_t at = column;
  bool first = true;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, length);
    if (!first && at + 1 + word.size() > kWidth) {
      out += '\n';
      out.append(indent, ' ');
      at = indent;
    } else if (!first) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
    first = false;
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  out += '\n';
}

void add_paragraphs(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find("\n\n");
    out += '\n';
    wrap(out, text.substr(0, end), 0, 0);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 2);
  }
}

void add_option(std::string& out, const Command& command, const Option& option) {
  std::string line = "  " + spelled(option);
  if (line.size() + 2 > kHelpColumn) {
    out += line + "\n";
    line.clear();
  }
  line.resize(kHelpColumn, ' ');
  out += line;
  std::string text(option.help);
  if (!option.env.empty() && !command.env_prefixes.empty())
    text += fmt::format(" [{}{}]", command.env_prefixes.back(), option.env);
  wrap(out, text, kHelpColumn, kHelpColumn);
}

// The command line of an example. If it is too long it continues on the next line after a
// backslash, never within quotes.
void add_command(std::string& out, std::string_view command) {
  constexpr std::size_t kIndent = 6;
  std::size_t at = 2;
  out.append(at, ' ');
  while (at + command.size() > kWidth) {
    std::size_t end = 0;  // the last blank that may be replaced
    bool quoted = false;
    for (std::size_t i = 0; i < command.size() && at + i + 2 <= kWidth; ++i) {
      if (command[i] == '\'') quoted = !quoted;
      if (command[i] == ' ' && !quoted) end = i;
    }
    if (end == 0) break;
    out += command.substr(0, end);
    out += " \\\n";
    out.append(at = kIndent, ' ');
    command.remove_prefix(end + 1);
  }
  out += command;
  out += '\n';
}

std::string usage_line(const Command& command, std::string_view program) {
  std::string text = fmt::format("Usage: {}", program);
  if (!command.sub.empty()) text += " COMMAND";
  if (!command.options.empty()) text += " [OPTION...]";
  if (!command.operands.empty()) text += fmt::format(" {}", command.operands);
  std::string out;
  wrap(out, text, 0, 6);
  wrap(out, std::string(command.summary) + ".", 0, 0);
  return out;
}

// ---- roff

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += "\\&";
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

void man_options(std::string& out, const Command& command) {
  for (const Option& option : command.options) {
    if (!option.refused.empty()) continue;
    std::string text(option.help);
    if (!option.env.empty() && !command.env_prefixes.empty())
      text += fmt::format(". Environment: {}{}", command.env_prefixes.back(), option.env);
    std::string name = spelled(option);
    name.erase(0, name.find_first_not_of(' '));
    out += fmt::format(".TP\n\\fB{}\\fR\n{}.\n", escaped(name), escaped(text));
  }
}

void man_paragraphs(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find("\n\n");
    out += escaped(text.substr(0, end)) + "\n";
    if (end == std::string_view::npos) break;
    out += ".PP\n";
    text.remove_prefix(end + 2);
  }
}

std::string all_upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

}  // namespace

std::string help_text(const Command& command, std::string_view program) {
  std::string out = usage_line(command, program);
  add_paragraphs(out, command.description);
  if (!command.sub.empty()) {
    out += "\nCommands:\n";
    for (const Command* sub : command.sub) {
      std::string line = fmt::format("  {} {}", sub->name, sub->operands);
      if (line.size() + 2 > kHelpColumn) {
        out += line + "\n";
        line.clear();
      }
      line.resize(kHelpColumn, ' ');
      out += line;
      wrap(out, sub->summary, kHelpColumn, kHelpColumn);
    }
  }
  out += "\nOptions:\n";
  for (const Option& option : command.options)
    if (option.refused.empty()) add_option(out, command, option);
  for (const Option& option : common_options()) {
    const bool replaced = std::any_of(command.options.begin(), command.options.end(),
                                      [&](const Option& o) { return o.name == option.name; });
    if (!replaced) add_option(out, command, option);
  }
  if (!shown(command.examples).empty()) out += "\nExamples:\n";
  for (const Example& example : shown(command.examples)) {
    add_command(out, example.command);
    out.append(6, ' ');
    wrap(out, example.what, 6, 6);
  }
  if (!shown(command.exits).empty()) out += "\nExit status:\n";
  for (const ExitDoc& exit : shown(command.exits)) {
    std::string line = fmt::format("  {}", exit.code);
    line.resize(std::max<std::size_t>(line.size() + 2, 8), ' ');
    out += line;
    wrap(out, exit.what, line.size(), line.size());
  }
  return out;
}

std::string man_page(const Command& command, std::string_view program) {
  std::string page(program);  // "gctl-why"
  std::replace(page.begin(), page.end(), ' ', '-');
  std::string out = fmt::format(".TH {} 1 \"\" \"gantry {}\" \"Gantry\"\n.SH NAME\n{} \\- {}\n",
                                all_upper(page), kVersion, page, escaped(command.summary));
  out += fmt::format(
      ".SH SYNOPSIS\n\\fB{}\\fR{}{} {}\n", program, command.sub.empty() ? "" : " \\fICOMMAND\\fR",
      command.options.empty() ? "" : " [\\fIOPTION\\fR...]", escaped(command.operands));
  if (!command.description.empty()) out += ".SH DESCRIPTION\n";
  man_paragraphs(out, command.description);
  if (!command.sub.empty()) out += ".SH COMMANDS\n";
  for (const Command* sub : command.sub) {
    out +=
        fmt::format(".SS {} {}\n{}.\n", sub->name, escaped(sub->operands), escaped(sub->summary));
    if (!sub->description.empty()) out += ".PP\n";
    man_paragraphs(out, sub->description);
    man_options(out, *sub);
    for (const Command* part : sub->sub) {
      out += fmt::format(".SS {} {} {}\n{}.\n", sub->name, part->name, escaped(part->operands),
                         escaped(part->summary));
      if (!part->description.empty()) out += ".PP\n";
      man_paragraphs(out, part->description);
      man_options(out, *part);
    }
  }
  if (!command.options.empty()) {
    out += ".SH OPTIONS\n";
    man_options(out, command);
  }
  if (!shown(command.exits).empty()) out += ".SH EXIT STATUS\n";
  for (const ExitDoc& exit : shown(command.exits))
    out += fmt::format(".TP\n\\fB{}\\fR\n{}.\n", escaped(exit.code), escaped(exit.what));
  if (!shown(command.examples).empty()) out += ".SH EXAMPLES\n";
  for (const Example& example : shown(command.examples))
    out += fmt::format(".TP\n\\fB{}\\fR\n{}.\n", escaped(example.command), escaped(example.what));
  out +=
      ".SH ENVIRONMENT\n.TP\n\\fBGANTRY_CONF\\fR\nDirectory with \\fIclient.conf\\fR, or a file: "
      "where the controller is and how to show who one is.\n";
  return out;
}

}  // namespace gantry::cli
