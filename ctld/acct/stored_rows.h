// Single rows of the history, for requests that change them.
#pragma once

#include "common/proto/history.h"
#include "ctld/store/store.h"

namespace gantry::acct {

// Puts the newest stored row of each of the jobs that the message names into it; none for a job
// that the history does not have, or that is named with several tasks. The history has to be folded
// up to now. The error means that the store cannot be read, or, as invalid_argument, that more than
// kMaxExamined records would have to be looked at.
Result<void> attach_stored(const store::Store& store, proto::NoteJobs& message);

}  // namespace gantry::acct
