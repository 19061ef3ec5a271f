// The one program that contains all commands. The name by which it is called selects the command: a
// link `gbatch` to it is gbatch, and so is `gantry gbatch ...`. A link with one of Slurm's names is
// that command.
#include <csignal>
#include <cstdio>

#include "cli/command.h"
#include "cli/slurm/frame.h"

namespace {

using namespace gantry::cli;

int dispatch(const std::string& name, std::vector<std::string> args) {
  if (const Command* of_slurm = find_command(slurm::slurm_commands(), name))
    return slurm::run(*of_slurm, std::move(args));
  const Command* command = find_command(all_commands(), name);
  if (command == nullptr) command = find_command(all_commands(), "gantry");
  // `gantry gbatch ...` is gbatch; gantry's own sub-commands are found by run_command().
  if (command->name == "gantry" && !args.empty()) {
    const Command* of_slurm = find_command(slurm::slurm_commands(), args[0]);
    const Command* other = find_command(all_commands(), args[0]);
    if (of_slurm != nullptr || other != nullptr) args.erase(args.begin());
    if (of_slurm != nullptr) return slurm::run(*of_slurm, std::move(args));
    if (other != nullptr) command = other;
  }
  return run_command(*command, std::string(command->name), std::move(args));
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // so that `gqueue | head` ends without a message
  std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  const std::string path = argc > 0 ? argv[0] : "gantry";
  const std::string name = path.substr(path.rfind('/') + 1);
  const int status = dispatch(name, std::move(args));
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fputs("gantry: error: writing the output failed\n", stderr);
    return status == 0 ? 1 : status;
  }
  return status;
}
