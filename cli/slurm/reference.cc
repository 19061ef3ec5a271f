#include "cli/slurm/reference.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

namespace gantry::cli::slurm {
namespace {

// Commands whose table is checked in tests/slurm/options_test.cc, by a test of the command's name.
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
