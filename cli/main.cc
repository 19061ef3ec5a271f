// The one program. Its name says which command it is: a link `gbatch` to it is gbatch, and
// `gantry gbatch ...` is the same.
#include <csignal>
#include <cstdio>

#include "cli/command.h"

int main(int argc, char** argv) {
  using namespace gantry::cli;
  std::signal(SIGPIPE, SIG_DFL);  // `gqueue | head` ends quietly
  std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  const std::string path = argc > 0 ? argv[0] : "gantry";
  const std::string name = path.substr(path.rfind('/') + 1);
  const Command* command = find_command(all_commands(), name);
  if (command == nullptr) command = find_command(all_commands(), "gantry");
  // `gantry gbatch ...` is gbatch; gantry's own sub-commands are found by run_command().
  if (command->name == "gantry" && !args.empty()) {
    if (const Command* other = find_command(all_commands(), args[0])) {
      command = other;
      args.erase(args.begin());
    }
  }
  const int status = run_command(*command, std::string(command->name), std::move(args));
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fputs("gantry: error: writing the output failed\n", stderr);
    return status == 0 ? 1 : status;
  }
  return status;
}
