// Letters: mail about jobs that ask for it (common/job/mail.h), written when the event that they
// tell of is recorded, and sent by the shell after its commit. They are not told again after a
// crash: mail is a courtesy, and one too many is worse than none.
#pragma once

#include <vector>

#include "ctld/core/event/events.h"
#include "ctld/core/letter.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

// What the event, which has been applied, says to those who asked. Of an array one letter when its
// first task starts and one when its last has ended, unless each task's is asked for.
void write_letters(const State& state, Instant at, const Event& event, std::vector<Letter>& out);

}  // namespace gantry::core
