#include "cli/slurm/step/task_script.h"

#include <fmt/core.h>

#include <string_view>

namespace gantry::cli::slurm {
namespace {

std::string shell_word(std::string_view word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// What a debugger would be told, and then the stop in which it would attach itself.
constexpr std::string_view kStop =
    R"(echo "srun: task:$SLURM_PROCID, host:$SLURMD_NODENAME, pid:$$, executable:$1" >&2
kill -STOP $$
)";

// The words of the prolog are read line by line, as data: none is executed.
constexpr std::string_view kProlog =
    R"(said=$(SLURM_SCRIPT_CONTEXT=prolog_task {0} </dev/null) || {{
code=$?; [ $code -le 128 ] || code=$((code - 128))
echo "srun: error: --task-prolog failed status=$code" >&2; exit $code; }}
while IFS= read -r line; do
case "$line" in
'print '*) printf '%s\n' "${{line#print }}";;
'export '[A-Za-z_]*=*) export "${{line#export }}";;
'unset '[A-Za-z_]*) unset "${{line#unset }}";;
esac
done <<GANTRY_END_OF_PROLOG
$said
GANTRY_END_OF_PROLOG
unset said line
)";

// Signals reach the whole process group, so that the shell only has to outlive them. If a signal
// ended the program, the same one ends the shell.
constexpr std::string_view kEpilog =
    R"(trap : HUP INT QUIT TERM USR1 USR2 ALRM
"$@"
status=$?
SLURM_SCRIPT_CONTEXT=epilog_task {0} </dev/null &
epilog=$!
{{ sleep 5; kill -KILL $epilog; }} >/dev/null 2>&1 &
guard=$!
wait $epilog
code=$?
kill $guard 2>/dev/null
[ $code -le 128 ] || code=$((code - 128))
[ $code -eq 0 ] || echo "srun: error: TaskEpilog failed status=$code" >&2
trap - HUP INT QUIT TERM USR1 USR2 ALRM
[ $status -le 128 ] || kill -$((status - 128)) $$ 2>/dev/null
exit $status
)";

}  // namespace

std::vector<std::string> task_command(const AroundTask& around, const std::string& choose,
                                      std::vector<std::string> argv) {
  std::string script = choose;
  if (around.stopped) script += kStop;
  if (!around.prolog.empty())
    script += fmt::format(fmt::runtime(kProlog), shell_word(around.prolog));
  if (!around.epilog.empty())
    script += fmt::format(fmt::runtime(kEpilog), shell_word(around.epilog));
  if (script.empty()) return argv;
  if (around.epilog.empty()) script += "exec \"$@\"\n";
  std::vector<std::string> out{"/bin/sh", "-c", std::move(script), "srun"};
  if (choose.empty()) out.insert(out.end(), argv.begin(), argv.end());
  return out;
}

}  // namespace gantry::cli::slurm
