// Letters: mail about jobs that ask for it (common/job/mail.h). A letter is written when its event
// is recorded, and the shell sends it after the commit. It is not sent again after a crash: a
// second copy of a letter would be worse than none.
#pragma once

#include <vector>

#include "ctld/core/event/event.h"
#include "ctld/core/letter.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

// Adds the letters about an event that has been applied. For an array there is one when its first
// task starts and one when its last has ended, unless letters for each task are asked for.
void write_letters(const State& state, Instant at, EventRef event, std::vector<Letter>& out);

}  // namespace gantry::core
