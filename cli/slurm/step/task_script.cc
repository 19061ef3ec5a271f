#include "cli/slurm/step/task_script.h"

#include <fmt/core.h>

#include <set>
#include <string_view>

#include "common/proto/job_text.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

std::string shell_word(std::string_view word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Imitates a process under a debugger: stops, so that a debugger can attach.
constexpr std::string_view kStop =
    R"(echo "srun: task:$SLURM_PROCID, host:$SLURMD_NODENAME, pid:$$, executable:$1" >&2
kill -STOP $$
)";

// The output of the prolog is read line by line, as data: none of it is executed.
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

// Signals reach the whole process group, so the shell only has to survive them. If a signal ended
// the program, the same one ends the shell.
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

namespace {

constexpr std::uint64_t kMaxTasksNamed = 100'000;

std::string for_shell(const std::string& word, const std::string& task, std::uint64_t offset) {
  std::string out = "'";
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char next = word[i] == '%' && i + 1 < word.size() ? word[i + 1] : 0;
    if (next == 't' || next == 'o') {
      out += next == 't' ? task : std::to_string(offset);
      ++i;
    } else {
      out += word[i] == '\'' ? std::string("'\\''") : std::string(1, word[i]);
    }
  }
  return out + "'";
}

void add_case(std::string& script, std::string_view pattern, const std::vector<std::string>& words,
              const std::string& task, std::uint64_t offset) {
  script += fmt::format("{}) set --", pattern);
  for (std::size_t i = 1; i < words.size(); ++i) script += " " + for_shell(words[i], task, offset);
  script += ";;\n";
}

// A backslash at the end of a line joins it with the next one.
std::string without_continuations(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool joins = text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '\n';
    if (joins)
      ++i;
    else
      out += text[i];
  }
  return out;
}

}  // namespace

Result<std::string> multi_prog_script(std::string_view whole, std::uint32_t tasks_in_all,
                                      std::string_view file) {
  const std::string text_of_lines = without_continuations(whole);
  std::string_view text = text_of_lines;
  std::set<std::uint64_t> with_program;
  std::string script = "case \"$SLURM_PROCID\" in\n";
  std::string rest;
  int number = 0;
  std::uint64_t named = 0;
  const auto wrong = [&](const std::string& why) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("Line {} of configuration file invalid: {}", number, why));
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto words = split_words(text.substr(0, end), Backslash::is_text);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!words) return wrong("a quote is not closed");
    if (words->empty()) continue;
    if (words->size() < 2) return wrong("no program is named");
    if (words->front() == "*") {
      add_case(rest, "*", *words, "'\"$SLURM_PROCID\"'", 0);
      continue;
    }
    const auto tasks = parse_index_ranges(words->front());
    if (!tasks) return wrong(tasks.error().message);
    named += count_indexes(tasks->ranges);
    if (named > kMaxTasksNamed) return wrong("more than 100000 tasks are named");
    std::uint64_t offset = 0;
    for (const IndexRange& range : tasks->ranges)
      for (std::uint64_t task = range.first; task <= range.last; task += range.step)
        if (with_program.insert(task).second)
          add_case(script, std::to_string(task), *words, std::to_string(task), offset++);
  }
  if (named == 0 && rest.empty()) return wrong("it names no task");
  for (std::uint32_t task = 0; rest.empty() && task < tasks_in_all; ++task)
    if (!with_program.contains(task))
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("Configuration file {} invalid, no record for task id {}", file, task));
  if (rest.empty())
    rest = "*) echo \"srun: error: task $SLURM_PROCID has no program\" >&2; exit 1;;\n";
  return script + rest + "esac\n";
}

}  // namespace gantry::cli::slurm
