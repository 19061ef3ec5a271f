// Collects how the tasks of a step have ended and tells it to a person. Tasks of one node that end
// in the same way within a moment share one line: "n1: tasks 0-3,7: Exited with exit code 1".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gantry::cli {

class StepEndings {
 public:
  static constexpr std::int64_t kMoment = 20'000;  // microseconds that a line waits for more tasks

  void add(const std::string& node, std::uint32_t rank, const std::string& what,
           std::int64_t now_us);
  // The time when the collected lines are due; nullopt if there are none.
  [[nodiscard]] std::optional<std::int64_t> due_us() const;
  // Removes and returns the collected lines, in the order in which their nodes reported.
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
