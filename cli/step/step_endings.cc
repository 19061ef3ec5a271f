#include "cli/step/step_endings.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli {

void StepEndings::add(const std::string& node, std::uint32_t rank, const std::string& what,
                      std::int64_t now_us) {
  if (lines_.empty()) due_us_ = now_us + kMoment;
  auto line = std::find_if(lines_.begin(), lines_.end(),
                           [&](const Line& l) { return l.node == node && l.what == what; });
  if (line == lines_.end()) line = lines_.insert(lines_.end(), {node, what, {}});
  line->ranks.push_back(rank);
}

std::optional<std::int64_t> StepEndings::due_us() const {
  return lines_.empty() ? std::nullopt : std::optional(due_us_);
}

std::vector<std::string> StepEndings::take() {
  std::vector<std::string> out;
  for (Line& line : lines_) {
    std::sort(line.ranks.begin(), line.ranks.end());
    line.ranks.erase(std::unique(line.ranks.begin(), line.ranks.end()), line.ranks.end());
    out.push_back(fmt::format("{}: task{} {}: {}", line.node, line.ranks.size() > 1 ? "s" : "",
                              format_index_ranges(compress_indexes(line.ranks)), line.what));
  }
  lines_.clear();
  return out;
}

}  // namespace gantry::cli
