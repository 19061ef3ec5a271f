#include "cli/slurm/step/multi_prog.h"

#include <fmt/core.h>

#include "common/proto/job_text.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
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

}  // namespace

Result<std::string> multi_prog_script(std::string_view text) {
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
        add_case(script, std::to_string(task), *words, std::to_string(task), offset++);
  }
  if (named == 0 && rest.empty()) return wrong("it names no task");
  if (rest.empty())
    rest = "*) echo \"srun: error: task $SLURM_PROCID has no program\" >&2; exit 1;;\n";
  return script + rest + "esac\n";
}

}  // namespace gantry::cli::slurm
