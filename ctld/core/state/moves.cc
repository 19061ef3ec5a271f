// Lookup in the table of moves; see moves.h.
#include "ctld/core/state/moves.h"

#include <fmt/core.h>

#include "common/assert.h"

namespace gantry::core {

Phase must_move(Trigger trigger, Phase from) {
  const auto next = next_phase(trigger, from);
  if (!next)
    assertion_failed("legal move", __FILE__, __LINE__,
                     fmt::format("{} of a job that is {}",
                                 kMoves[static_cast<std::size_t>(trigger)].name, enum_name(from)));
  return *next;
}

Result<Phase> may_move(Trigger trigger, Phase from, std::string_view job) {
  if (const auto next = next_phase(trigger, from)) return *next;
  return fail(ErrorCode::wrong_state,
              fmt::format("job {} is {}: {} is not possible now", job, enum_name(from),
                          kMoves[static_cast<std::size_t>(trigger)].name));
}

std::string moves_as_markdown() {
  std::string out =
      "| trigger | from | what | queued | starting | running | finishing | ended |\n"
      "|---|---|---|---|---|---|---|---|\n";
  constexpr std::array<std::string_view, 3> sources{"gantry", "node", "client"};
  for (const TriggerRow& row : kMoves) {
    out += fmt::format("| {} | {} | {} |", row.name, sources[static_cast<std::size_t>(row.source)],
                       row.what);
    for (const auto& next : row.next) out += fmt::format(" {} |", next ? enum_name(*next) : "");
    out += "\n";
  }
  return out;
}

}  // namespace gantry::core
