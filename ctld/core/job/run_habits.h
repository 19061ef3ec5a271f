// What part of their time limits a user's jobs have used lately. Limits are often far above what
// jobs need, so the start that follows from limits alone is the latest one; with this the
// controller can also say when a job is likely to start. Only texts use it: no decision of the
// scheduler does.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/time/time.h"
#include "common/types.h"

namespace gantry::core {

class RunHabits {
 public:
  static constexpr std::size_t kKept = 15;  // ended jobs of one user and name
  static constexpr std::size_t kLeast = 3;  // with fewer ended jobs, nothing is predicted
  static constexpr std::size_t kMost =
      20'000;  // pairs of user and name; with more, all are forgotten
  static constexpr std::size_t kNameBytes =
      64;  // bytes of a name; longer names count as equal if they begin alike

  void note(Uid user, std::string_view name, Duration ran, Duration limit) {
    if (limit.us <= 0) return;
    const auto permille = static_cast<std::uint16_t>(
        std::clamp<std::int64_t>(ran.us / std::max<std::int64_t>(limit.us / 1000, 1), 0, 1000));
    if (of_.size() >= kMost) of_.clear();
    of_[{user, std::string(name.substr(0, kNameBytes))}].add(permille);
    of_[{user, std::string()}].add(permille);
  }

  // The median of used time, in thousandths of the limit: of jobs of this name, or else of all jobs
  // of the user.
  [[nodiscard]] std::optional<std::uint32_t> typical(Uid user, std::string_view name) const {
    for (const std::string& key : {std::string(name.substr(0, kNameBytes)), std::string()})
      if (const auto it = of_.find({user, key}); it != of_.end() && it->second.count >= kLeast)
        return it->second.median();
    return std::nullopt;
  }

 private:
  struct Last {
    std::array<std::uint16_t, kKept> permille{};
    std::size_t count = 0;  // how many of them are used
    std::size_t next = 0;
    void add(std::uint16_t value) {
      permille[next] = value;
      next = (next + 1) % kKept;
      count = std::min(count + 1, kKept);
    }
    [[nodiscard]] std::uint32_t median() const {
      auto sorted = permille;
      std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count));
      return sorted[count / 2];
    }
  };
  std::map<std::pair<Uid, std::string>, Last> of_;  // by user and name; "" = any name
};

}  // namespace gantry::core
