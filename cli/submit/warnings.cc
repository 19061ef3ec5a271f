#include "cli/submit/warnings.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace gantry::cli {
namespace {

constexpr std::string_view kMarks[] = {"#SBATCH", "#GANTRY"};

bool is_directive(std::string_view line) {
  return std::any_of(std::begin(kMarks), std::end(kMarks), [&](std::string_view mark) {
    return line.starts_with(mark) && line.size() > mark.size() &&
           (line[mark.size()] == ' ' || line[mark.size()] == '\t');
  });
}

// "# SBATCH --mem=1G" and "#SBATCH--mem=1G": the mark with a blank inside, or without one behind.
bool is_nearly_directive(std::string_view line) {
  std::string_view rest = line.substr(1);
  const std::size_t word = rest.find_first_not_of(" \t");
  if (word == std::string_view::npos) return false;
  rest.remove_prefix(word);
  for (std::string_view mark : kMarks) {
    const std::string_view name = mark.substr(1);
    if (!rest.starts_with(name) || rest.size() == name.size()) continue;
    const std::size_t option = rest.find_first_not_of(" \t", name.size());
    if (option == std::string_view::npos || rest[option] != '-') continue;  // a comment about it
    if (word > 0 || option == name.size()) return true;
  }
  return false;
}

// The word that ends the here-document which this line begins; "" = it begins none.
std::string here_document(std::string_view line) {
  std::size_t at = line.find("<<");
  if (at == std::string_view::npos || line.substr(at).starts_with("<<<")) return {};
  at = line.find_first_not_of("-\"'\\ \t", at + 2);
  if (at == std::string_view::npos) return {};
  return std::string(line.substr(at, line.find_first_of("\"' \t|>&;)", at) - at));
}

std::string_view trimmed(std::string_view line) {
  const std::size_t from = line.find_first_not_of(" \t\r");
  return from == std::string_view::npos ? std::string_view() : line.substr(from);
}

bool is_missing(const std::string& folder) {
  struct stat found {};
  return ::stat(folder.c_str(), &found) != 0 ? errno == ENOENT || errno == ENOTDIR
                                             : !S_ISDIR(found.st_mode);
}

// The folder of an output file; "" if the pattern decides it later.
std::string folder_of(const std::string& pattern, const std::string& work_dir) {
  const std::size_t slash = pattern.rfind('/');
  if (slash == std::string::npos) return {};
  std::string folder = pattern.substr(0, std::max<std::size_t>(slash, 1));
  if (folder.find_first_of("%\\") != std::string::npos) return {};
  return folder.front() == '/' ? folder : work_dir + "/" + folder;
}

}  // namespace

std::vector<std::string> script_warnings(std::string_view script, std::string_view name) {
  std::vector<std::string> out;
  std::string document;  // the word at the end of the here-document that we are in
  bool commands = false;
  std::size_t late = 0;
  int number = 0, first_late = 0;
  while (!script.empty()) {
    const std::size_t end = std::min(script.find('\n'), script.size());
    const std::string_view line = script.substr(0, end);
    script.remove_prefix(std::min(end + 1, script.size()));
    ++number;
    const std::string_view text = trimmed(line);
    if (!document.empty()) {
      if (text == document) document.clear();
      continue;
    }
    if (text.empty()) continue;
    if (text.front() != '#') {
      commands = true;
      document = here_document(text);
    } else if (commands && is_directive(text)) {
      if (late++ == 0) first_late = number;
    } else if (!commands && is_nearly_directive(text)) {
      out.push_back(fmt::format(
          "{}:{} is ignored: a directive is written \"{} ...\", with a blank behind it and none "
          "inside",
          name, number, text.find("SBATCH") != std::string_view::npos ? kMarks[0] : kMarks[1]));
    }
  }
  if (late > 0)
    out.push_back(
        fmt::format("{}:{} is ignored{}: directives end at the first command of the script", name,
                    first_late, late > 1 ? fmt::format(", with {} more behind it", late - 1) : ""));
  return out;
}

std::vector<std::string> folder_warnings(const JobSpec& spec) {
  std::vector<std::string> out;
  constexpr std::string_view kFails = "does not exist here; the job fails unless its node has it";
  if (is_missing(spec.work_dir)) {
    out.push_back(fmt::format("the working directory {} {}", spec.work_dir, kFails));
    return out;
  }
  std::string told;
  for (const auto& [option, pattern] :
       {std::pair<std::string_view, const std::string&>{"--output", spec.std_out},
        {"--error", spec.std_err}}) {
    const std::string folder = folder_of(pattern, spec.work_dir);
    if (folder.empty() || folder == told || !is_missing(folder)) continue;
    out.push_back(fmt::format("the folder {} of {} {}", folder, option, kFails));
    told = folder;
  }
  return out;
}

void print_warnings(std::string_view program, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    fmt::print(stderr, "{}: warning: {}\n", program, warning);
}

}  // namespace gantry::cli
