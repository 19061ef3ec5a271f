// Programs that the controller starts in a user's name: mail about a job, what a trigger runs.
#pragma once

#include <sys/types.h>

#include <optional>
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

// Whether the program leads a session of its own, so that a signal reaches what it has started too.
enum class OwnSession { no, yes };

// Starts `words` in "/" with no signal blocked or ignored. It reads from `input` (unset: from
// nothing), and what it writes is thrown away. An error: it cannot be started, and why.
Result<pid_t> start_words(std::vector<std::string> words, std::optional<int> input,
                          OwnSession session);

// "ended with 3", "was killed by signal 9": of waitpid()'s status, unless it ended with 0.
std::optional<std::string> failed_ending(int status);

}  // namespace gantry::ctld
