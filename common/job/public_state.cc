// The table of public job states; see the header.
#include "common/job/public_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "common/assert.h"

namespace gantry {

namespace {

struct Row {
  Phase phase;
  std::optional<Outcome> outcome;
  PublicState shown;
};

constexpr std::array<Row, 14> kRows{{
    {Phase::queued, std::nullopt, {"PENDING", "PD"}},
    {Phase::starting, std::nullopt, {"CONFIGURING", "CF"}},
    {Phase::running, std::nullopt, {"RUNNING", "R"}},
    {Phase::suspended, std::nullopt, {"SUSPENDED", "S"}},
    {Phase::finishing, std::nullopt, {"COMPLETING", "CG"}},
    {Phase::ended, Outcome::completed, {"COMPLETED", "CD"}},
    {Phase::ended, Outcome::failed, {"FAILED", "F"}},
    {Phase::ended, Outcome::cancelled, {"CANCELLED", "CA"}},
    {Phase::ended, Outcome::timeout, {"TIMEOUT", "TO"}},
    {Phase::ended, Outcome::out_of_memory, {"OUT_OF_MEMORY", "OOM"}},
    {Phase::ended, Outcome::node_fail, {"NODE_FAIL", "NF"}},
    {Phase::ended, Outcome::launch_failed, {"BOOT_FAIL", "BF"}},
    {Phase::ended, Outcome::deadline, {"DEADLINE", "DL"}},
    {Phase::ended, Outcome::preempted, {"PREEMPTED", "PR"}},
}};
constexpr std::uint32_t kAllBits = (1U << kRows.size()) - 1;

// States of Slurm that no job of Gantry can have, but that scripts use in filters.
constexpr std::array<PublicState, 10> kNeverSeen{{{"REQUEUED", "RQ"},
                                                  {"REQUEUE_HOLD", "RH"},
                                                  {"REQUEUE_FED", "RF"},
                                                  {"RESIZING", "RS"},
                                                  {"RESV_DEL_HOLD", "RD"},
                                                  {"REVOKED", "RV"},
                                                  {"SIGNALING", "SI"},
                                                  {"SPECIAL_EXIT", "SE"},
                                                  {"STAGE_OUT", "SO"},
                                                  {"STOPPED", "ST"}}};

std::size_t row_of(Phase phase, std::optional<Outcome> outcome) {
  if (phase != Phase::ended) outcome.reset();
  auto it = std::find_if(kRows.begin(), kRows.end(), [&](const Row& row) {
    return row.phase == phase && row.outcome == outcome;
  });
  GANTRY_ASSERT(it != kRows.end(), "an ended job has an outcome");
  return static_cast<std::size_t>(it - kRows.begin());
}

bool names(const PublicState& state, std::string_view upper) {
  return upper == state.name || upper == state.code;
}

}  // namespace

PublicState public_state(Phase phase, std::optional<Outcome> outcome) {
  return kRows[row_of(phase, outcome)].shown;
}

Result<StateSet> StateSet::parse(std::span<const std::string> words) {
  StateSet set;
  for (const std::string& word : words) {
    std::string upper = word;
    for (char& c : upper)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    std::uint32_t bits = upper == "ALL" ? kAllBits : 0;
    for (std::size_t i = 0; i < kRows.size(); ++i)
      if (names(kRows[i].shown, upper)) bits |= 1U << i;
    bool known = bits != 0 || std::any_of(kNeverSeen.begin(), kNeverSeen.end(),
                                          [&](const PublicState& s) { return names(s, upper); });
    if (!known)
      return fail(
          ErrorCode::invalid_argument,
          fmt::format(
              "no job state is called \"{}\": use PENDING, CONFIGURING, RUNNING, "
              "SUSPENDED, COMPLETING, COMPLETED, FAILED, CANCELLED, TIMEOUT, OUT_OF_MEMORY, "
              "NODE_FAIL, BOOT_FAIL, DEADLINE, their short forms, or all",
              word));
    set.bits_ |= bits;
  }
  return set;
}

bool StateSet::has(Phase phase, std::optional<Outcome> outcome) const {
  return (bits_ >> row_of(phase, outcome) & 1) != 0;
}

bool StateSet::has_all() const {
  return bits_ == kAllBits;
}

}  // namespace gantry
