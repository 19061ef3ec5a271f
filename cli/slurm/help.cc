#include "cli/slurm/help.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

namespace gantry::cli::slurm {
namespace {

constexpr std::size_t kLine = 80;    // width of the texts, in characters
constexpr std::size_t kColumn = 30;  // column where the explanations of options begin

// How a command writes its help. getopt: "-a, --all", with the options that print something else
// under "Help options:". grouped: the same, with headings by subject. listed: "Valid OPTIONs are:".
enum class Style : std::uint8_t { getopt, grouped, listed };

struct Form {
  std::string_view command;
  Style style = Style::getopt;
  std::string_view usage;                         // first line of --help, after the name
  std::string_view valid = {};                    // heading of the options of a listed help
  std::string_view brief = {};                    // --usage, if it is not made from the table
  std::vector<CommandWord> (*words)() = nullptr;  // the words that the command accepts first
};

constexpr std::string_view kValidOption = "Valid <OPTION> values are:";
constexpr Form kForms[] = {
    {"sbatch", Style::grouped, " [OPTIONS(0)...] [ : [OPTIONS(N)...]] script(0) [args(0)...]"},
    {"salloc", Style::grouped, " [OPTIONS(0)...] [ : [OPTIONS(N)...]] [command(0) [args(0)...]]"},
    {"srun", Style::grouped,
     " [OPTIONS(0)... [executable(0) [args(0)...]]] [ : [OPTIONS(N)...]] executable(N) "
     "[args(N)...]"},
    {"squeue", Style::getopt, " [OPTIONS]"},
    {"sinfo", Style::getopt, " [OPTIONS]"},
    {"scancel", Style::getopt, " [OPTIONS] [job_id[_array_id][.step_id]]"},
    {"sprio",
     Style::getopt,
     " [OPTIONS]",
     {},
     "[-j jid[s]] [-u user_name[s]] [-o format] [-p partitions]\n"
     "   [--federation] [--local] [--sibling] [--usage] [-hlnvVw]"},
    {"sdiag", Style::getopt, " [OPTIONS]"},
    {"sattach", Style::getopt, " [options] <jobid.stepid>"},
    {"sbcast", Style::getopt, " [OPTIONS] SOURCE DEST"},
    {"strigger", Style::getopt, " [--set | --get | --clear] [OPTIONS]"},
    {"sshare", Style::listed, " [OPTION]", "Valid OPTIONs are:"},
    {"sacct", Style::listed, " [<OPTION>]", kValidOption},
    {"sstat", Style::listed, " [<OPTION>]", kValidOption, "[options] -j <job(.stepid)>"},
    {"scontrol", Style::listed, " [<OPTION>] [<COMMAND>]", kValidOption, {}, scontrol_words},
    {"sacctmgr", Style::listed, " [<OPTION>] [<COMMAND>]", kValidOption, {}, sacctmgr_words},
    {"sreport", Style::listed, " [<OPTION>] [<COMMAND>]", kValidOption, {}, sreport_words},
};

const Form& form_of(const Command& command) {
  const auto found = std::find_if(std::begin(kForms), std::end(kForms),
                                  [&](const Form& form) { return form.command == command.name; });
  return found == std::end(kForms) ? kForms[3] : *found;
}

// The headings of a grouped help, and the options below each but the first.
struct Group {
  std::string_view heading;
  std::string_view options;  // names, each with a blank before and after it
};
constexpr Group kGroups[] = {
    {"Parallel run options:", ""},
    {"Constraint options:",
     " contiguous constraint nodefile mem mincpus reservation tmp nodelist exclude no-allocate "},
    {"Consumable resources related options:", " exact exclusive mem-per-cpu resv-ports "},
    {"Affinity/Multi-core options:",
     " sockets-per-node cores-per-socket threads-per-core extra-node-info ntasks-per-core "
     "ntasks-per-socket cpu-bind hint mem-bind "},
    {"GPU scheduling options:",
     " cpus-per-gpu gpus gpu-bind gpu-freq gpus-per-node gpus-per-socket gpus-per-task "
     "mem-per-gpu ntasks-per-gpu tres-per-task "},
    {"Help options:", " help usage "},
    {"Other options:", " version "},
};

std::size_t group_of(const Option& option) {
  const std::string word = fmt::format(" {} ", option.name);
  for (std::size_t i = 1; i < std::size(kGroups); ++i)
    if (kGroups[i].options.find(word) != std::string_view::npos) return i;
  return 0;
}

// A second name of an option, which the help leaves out.
bool is_alias(const Option& option) {
  return option.help.starts_with("The same");
}

// The options that work, in Slurm's order: by the letter, or the first one of the name, lower case
// first.
std::vector<const Option*> sorted_options(const Command& command, std::span<const Option> common) {
  std::vector<const Option*> all;
  const auto is_known = [&](const Option& option) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Option* o) { return o->name == option.name; });
  };
  for (const std::span<const Option> table : {command.options, common})
    for (const Option& option : table)
      if (option.refused.empty() && !is_known(option) && !is_alias(option)) all.push_back(&option);
  const auto key = [](const Option* option) {
    const char letter = option->letter != 0 ? option->letter : option->name.front();
    const auto c = static_cast<unsigned char>(letter);
    return std::pair(std::tolower(c), std::isupper(c) != 0);
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Option* a, const Option* b) { return key(a) < key(b); });
  return all;
}

void wrap(std::string& out, std::string_view text, std::size_t column, std::size_t indent) {
  std::size_t at = column;
  for (bool first = true; !text.empty(); first = false) {
    const std::size_t length = std::min(text.find(' '), text.size());
    const bool fits = first || at + 1 + length <= kLine;
    if (!fits) out += "\n" + std::string(indent, ' ');
    if (fits && !first) out += ' ';
    at = fits ? at + (first ? 0 : 1) + length : indent + length;
    out += text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  out += '\n';
}

// Appends `head`, then `text` in its column, or below the head if the head is too long.
void add_item(std::string& out, std::string head, std::string_view text, std::size_t column) {
  if (head.size() + 1 > column) {
    out += head + "\n";
    head.clear();
  }
  head.resize(column, ' ');
  out += head;
  wrap(out, text, column, column);
}

std::string value_of(const Option& option) {
  if (option.arg == Arg::required) return fmt::format("={}", option.value);
  return option.arg == Arg::optional ? fmt::format("[={}]", option.value) : "";
}

std::string text_of(const Command& command, const Option& option) {
  const std::string name(command.name);
  if (option.name == "help") return "show this help message";
  if (option.name == "usage") return fmt::format("display a brief summary of {} options", name);
  if (option.name == "version") return "display tool version number";
  std::string text(option.help);
  if (!option.env.empty() && !command.env_prefixes.empty())
    text += fmt::format(" [{}{}]", command.env_prefixes.back(), option.env);
  return text;
}

void add_getopt(std::string& out, const Command& command, const Option& option) {
  const std::string letter = option.letter != 0 ? fmt::format("-{},", option.letter) : "   ";
  add_item(out, fmt::format("  {} --{}{}", letter, option.name, value_of(option)),
           text_of(command, option), kColumn);
}

void add_groups(std::string& out, const Command& command,
                const std::vector<const Option*>& options) {
  for (std::size_t i = 0; i < std::size(kGroups); ++i) {
    const auto here = [&](const Option* o) { return group_of(*o) == i; };
    if (std::none_of(options.begin(), options.end(), here)) continue;
    out += fmt::format("\n{}\n", kGroups[i].heading);
    for (const Option* option : options)
      if (here(option)) add_getopt(out, command, *option);
  }
}

bool is_help(const Option* option) {
  return option->name == "help" || option->name == "usage";
}

void add_plain(std::string& out, const Command& command,
               const std::vector<const Option*>& options) {
  for (const Option* option : options)
    if (!is_help(option)) add_getopt(out, command, *option);
  out += "\nHelp options:\n";
  for (const Option* option : options)
    if (is_help(option)) add_getopt(out, command, *option);
}

// sshare writes "-a or --all", the others "-a, --all".
void add_list(std::string& out, const Command& command, const Form& form,
              const std::vector<const Option*>& options) {
  out += fmt::format("    {}\n", form.valid);
  const std::string_view between = command.name == "sshare" ? " or " : ", ";
  for (const Option* option : options) {
    const std::string letter =
        option->letter != 0 ? fmt::format("-{}{}", option->letter, between) : "";
    add_item(out, fmt::format("     {}--{}{}", letter, option->name, value_of(*option)),
             text_of(command, *option), kColumn);
  }
  if (form.words == nullptr) return;
  out += "\n    Valid <COMMAND> values are:\n";
  for (const CommandWord& word : form.words())
    add_item(out, fmt::format("     {:<12} ", word.name), word.what, kColumn);
}

// "[-A NAME,...] [--local] [-ahl]": options with values first, then those without letters, then all
// flags together.
std::string short_forms(const Command& command, const std::vector<const Option*>& options) {
  std::vector<std::string> words;
  std::string letters;
  for (const Option* option : options) {
    const bool flag = option->arg == Arg::none || option->name == "version";
    if (flag && option->letter != 0)
      letters += option->letter;
    else if (option->letter != 0 && option->arg == Arg::required)
      words.push_back(fmt::format("[-{} {}]", option->letter, option->value));
    else
      words.push_back(fmt::format("[--{}{}]", option->name, value_of(*option)));
  }
  if (!letters.empty()) words.push_back(fmt::format("[-{}]", letters));
  const std::string_view tail = command.name == "srun"      ? "executable [args...]"
                                : command.name == "sbatch"  ? "script [args...]"
                                : command.name == "salloc"  ? "[command [args...]]"
                                : command.name == "sbcast"  ? "SOURCE DEST"
                                : command.name == "sattach" ? "<jobid.stepid>"
                                : command.name == "scancel" ? "[job_id[_array_id][.step_id]]"
                                                            : "";
  if (!tail.empty()) words.emplace_back(tail);
  std::string out = fmt::format("Usage: {}", command.name);
  const std::size_t indent = out.size() + 1;
  std::size_t at = out.size();
  for (const std::string& word : words) {
    const bool fits = at + 1 + word.size() <= kLine;
    out += fits ? " " : "\n" + std::string(indent, ' ');
    at = (fits ? at + 1 : indent) + word.size();
    out += word;
  }
  return out + "\n";
}

}  // namespace

std::string slurm_help(const Command& command, std::span<const Option> common) {
  const Form& form = form_of(command);
  const auto options = sorted_options(command, common);
  std::string out = fmt::format("Usage: {}{}\n", command.name, form.usage);
  if (form.style == Style::grouped) add_groups(out, command, options);
  if (form.style == Style::getopt) add_plain(out, command, options);
  if (form.style == Style::listed) add_list(out, command, form, options);
  if (!shown(command.examples).empty()) out += "\nExamples:\n";
  for (const Example& example : shown(command.examples)) {
    out += fmt::format("  {}\n      ", example.command);
    wrap(out, example.what, 6, 6);
  }
  return out;
}

std::string slurm_usage(const Command& command, std::span<const Option> common) {
  const Form& form = form_of(command);
  // These commands print the whole help for --usage, as in Slurm.
  if (form.words != nullptr || command.name == "sshare") return slurm_help(command, common);
  std::string out = form.brief.empty() ? short_forms(command, sorted_options(command, common))
                                       : fmt::format("Usage: {} {}\n", command.name, form.brief);
  if (form.style == Style::listed) out += "Use --help for help\n";
  return out;
}

namespace {

// Commands whose tables are checked in tests/slurm/options_test.cc, by a test with the command's
// name.
constexpr std::string_view kTested[] = {"sbatch", "squeue", "scancel", "sacct", "sinfo", "srun"};

std::string table_cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string spelled_option(const Option& option) {
  std::string text = option.letter != 0 ? fmt::format("`-{}` ", option.letter) : "";
  text += fmt::format("`--{}", option.name);
  if (option.arg == Arg::required) text += fmt::format("={}", option.value);
  if (option.arg == Arg::optional) text += fmt::format("[={}]", option.value);
  return table_cell(text) + "`";
}

}  // namespace

std::string options_page() {
  std::string page =
      "# Options under Slurm's names\n\n"
      "Made by `gantry slurm options` from the tables of options in `cli/slurm`; a test compares.\n"
      "An option is honoured, or refused by name with the reason; none is accepted and ignored.\n"
      "Of the six that clients use most each honoured option has a test, which is named: a line "
      "in\n"
      "`tests/slurm/options_test.cc`, which fails when one has none.\n"
      "[slurm.md](slurm.md) says how the commands map and what differs.\n";
  for (const Command* command : slurm_commands()) {
    std::size_t honoured = 0;
    for (const Option& option : command->options) honoured += option.refused.empty() ? 1 : 0;
    page += fmt::format("\n## {}\n\n{} options, {} honoured.\n\n", command->name,
                        command->options.size(), honoured);
    const bool tested =
        std::find(std::begin(kTested), std::end(kTested), command->name) != std::end(kTested);
    const std::string kept =
        tested ? fmt::format("honoured: `options of {}`", command->name) : std::string("honoured");
    page += "| option | | what it does, or why not |\n|---|---|---|\n";
    for (const Option& option : command->options) {
      std::string what(option.refused.empty() ? option.help : option.refused);
      if (!option.env.empty() && !command->env_prefixes.empty())
        what += fmt::format(" ({}{})", command->env_prefixes.back(), option.env);
      page += fmt::format("| {} | {} | {} |\n", spelled_option(option),
                          option.refused.empty() ? kept : "refused", table_cell(what));
    }
  }
  return page;
}

std::string names_directory() {
  std::array<char, 4096> path{};
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (n <= 0) return {};
  const std::string program(path.data(), static_cast<std::size_t>(n));
  const std::string folder = program.substr(0, program.rfind('/'));
  for (const std::string& candidate : {folder + "/slurm", folder + "/../libexec/gantry/slurm"})
    if (::access((candidate + "/sbatch").c_str(), X_OK) == 0) return candidate;
  return {};
}

}  // namespace gantry::cli::slurm
