// How tasks of a step have ended, for a person: tasks of one node that end alike within a moment
// are one line, "n1: tasks 0-3,7: Exited with exit code 1".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gantry::cli {

class StepEndings {
 public:
  static constexpr std::int64_t kMoment = 20'000;  // microseconds that a line waits for others

  void add(const std::string& node, std::uint32_t rank, const std::string& what,
           std::int64_t now_us);
  // When the lines are to be said, unless there are none.
  [[nodiscard]] std::optional<std::int64_t> due_us() const;
  // Those that there are, by node as they came.
  std::vector<std::string> take();

 private:
  struct Line {
    std::string node, what;
    std::vector<std::uint32_t> ranks;
  };
  std::vector<Line> lines_;
  std::int64_t due_us_ = 0;
};

}  // namespace gantry::cli
