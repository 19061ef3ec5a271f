// gantry replay: replaces this program by gantry-replay, which contains the scheduler.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/cluster/daemons.h"
#include "cli/command.h"

namespace gantry::cli::gantry_replay {
namespace {

Result<int> run_replay(const Invocation& in) {
  ASSIGN(program, find_program("gantry-replay"));
  std::vector<std::string> words{*program};
  words.insert(words.end(), in.args().begin(), in.args().end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(program->c_str(), argv.data());
  return fail(ErrorCode::io_error, *program + ": " + std::strerror(errno));
}

}  // namespace

extern const Command kReplay;
const Command kReplay{
    {"replay", "Run a trace, or recorded history, through the scheduler in virtual time",
     "--trace FILE --cluster FILE [--policy POLICY [--policy2 POLICY]]"},
    {.description =
         "Reports utilisation, waits, slowdown, fairness, quota and what preemption cost, in all "
         "and by tenant, as a table, JSON or SVG. `gantry replay --help` lists all options.",
     .examples = {{"gantry replay --trace log.swf --cluster gantry.yaml --policy tenants/",
                   "What would these tenants have had of that log?"},
                  {"gacct -a -S 2026-01-01 --json | gantry replay --history --cluster gantry.yaml "
                   "--policy old/ "
                   "--policy2 new/ --svg change.svg",
                   "Two policies side by side on this cluster's own history"}},
     .exits = {{"0", "done"}, {"1", "the input is wrong"}, {"2", "the command line is wrong"}},
     .run = run_replay}};

}  // namespace gantry::cli::gantry_replay
