// Public names of job states: one table with Slurm's words. Internal states (job_state.h) are ours;
// every listing, filter and report uses this table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/job/job_state.h"
#include "common/result.h"

namespace gantry {

struct PublicState {
  std::string_view name;  // "OUT_OF_MEMORY"
  std::string_view code;  // "OOM"
};

// `outcome` is used only for ended jobs, and must be set for them.
PublicState public_state(Phase phase, std::optional<Outcome> outcome);

// A set of states as a filter names them.
class StateSet {
 public:
  // Reads words, long or short and in any case; "all" means every state. Slurm's words for states
  // that no job of ours can have (REQUEUED, RESIZING, ...) are accepted and match nothing. Any
  // other word is invalid_argument. An empty list gives an empty set.
  static Result<StateSet> parse(std::span<const std::string> words);

  [[nodiscard]] bool has(Phase phase, std::optional<Outcome> outcome = std::nullopt) const;
  [[nodiscard]] bool has_all() const;

 private:
  std::uint32_t bits_ = 0;  // one bit for each row of the table
};

}  // namespace gantry
