#include "common/job/output_pattern.h"

#include <algorithm>

namespace gantry {
namespace {

constexpr std::uint64_t kNoArrayTask = 4294967294;
constexpr std::size_t kMaxPad = 10;

std::string padded(std::uint64_t value, std::size_t width) {
  std::string text = std::to_string(value);
  return text.size() < width ? std::string(width - text.size(), '0') + text : text;
}

std::string flat(std::string text) {
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

std::optional<std::string> value_of(char letter, std::size_t width, const PatternValues& v) {
  switch (letter) {
    case '%': return "%";
    case 'j': return padded(v.job.value(), width);
    case 'J':
      return v.step ? padded(v.job.value(), width) + "." + std::to_string(v.step->value())
                    : padded(v.job.value(), width);
    case 'A': return padded(v.array_job.value() != 0 ? v.array_job.value() : v.job.value(), width);
    case 'a': return padded(v.array_task ? *v.array_task : kNoArrayTask, width);
    case 'x': return flat(v.name);
    case 'u': return flat(v.user);
    case 'N': return flat(v.node);
    case 'n': return padded(v.node_index, width);
    case 't': return padded(v.task, width);
    case 's': return v.step ? padded(v.step->value(), width) : "batch";
    default: return std::nullopt;
  }
}

}  // namespace

Result<std::string> expand_pattern(std::string_view pattern, const PatternValues& values) {
  std::string out;
  if (pattern.find('\\') != std::string_view::npos) {
    for (const char c : pattern)
      if (c != '\\') out += c;
    return out;
  }
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    std::size_t width = 0;
    for (++i; i < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9'; ++i)
      width = std::min(kMaxPad, width * 10 + static_cast<std::size_t>(pattern[i] - '0'));
    const auto value = i < pattern.size() ? value_of(pattern[i], width, values) : std::nullopt;
    if (!value)
      return fail(ErrorCode::invalid_argument,
                  "file name pattern '" + std::string(pattern) +
                      "': allowed are %j %J %A %a %x %u %N %n %t %s %%");
    out += *value;
  }
  return out;
}

}  // namespace gantry
