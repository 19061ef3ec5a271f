// Programs that the controller starts in a user's name: mail about a job, what a trigger runs.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "common/types.h"

namespace gantry::ctld {

// Whether a set-uid or set-gid program may get its rights, as sendmail must to reach its queue.
enum class Privileges { may_be_gained, never };

// The words of a command that becomes the user altogether (ids, groups, no capability, and an
// environment of its own), then runs `words`. A controller that is not root runs them as itself,
// and only for who it is. An error: there is no such user here.
Result<std::vector<std::string>> words_as_user(Uid uid, Privileges privileges,
                                               std::vector<std::string> words);

}  // namespace gantry::ctld
