// Commands of Slurm that Gantry has no counterpart for: each says why, and what to do instead.
#include "cli/slurm/frame.h"

namespace gantry::cli::slurm {
namespace {

template <const char* const& Why>
Result<int> run_absent(const Invocation& call) {
  int status = 0;
  const auto operands = parse_into(call, nullptr, status);
  if (!operands) return status;
  complain(call, Why);
  return 1;
}

constexpr const char* kWhyTrigger =
    "not supported: nothing is run on events; gtenant events and gqueue --watch tell them";

constexpr ExitDoc kAbsentExits[] = {{"1", "always: it is refused"}};

}  // namespace

extern const Command kStrigger;
const Command kStrigger{.name = "strigger",
                        .summary = "Refused: run a program on events",
                        .operands = "ARGUMENT...",
                        .description = kWhyTrigger,
                        .exits = kAbsentExits,
                        .run = run_absent<kWhyTrigger>,
                        .stop_at_operand = true};

}  // namespace gantry::cli::slurm
