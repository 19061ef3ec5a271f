// Starts programs in a user's name: the mail about a job, or what a trigger runs.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/types.h"

namespace gantry::ctld {

// Whether a set-uid or set-gid program may get its rights; sendmail needs them to reach its queue.
enum class Privileges { may_be_gained, never };

// The words of a command that first becomes the user completely (ids, groups, no capability, and an
// environment of its own), and then runs `words`. A controller that is not root can only run
// programs for its own user. The error means that this user does not exist here, or is another one.
Result<std::vector<std::string>> words_as_user(Uid uid, Privileges privileges,
                                               std::vector<std::string> words);

// Whether the program leads a session of its own, so that a signal also reaches the processes that
// it has started.
enum class OwnSession { no, yes };

// Starts `words` in "/", with no signal blocked or ignored. The program reads `input` (not set:
// nothing), and its output goes to `output` (not set: it is thrown away). The error says why it
// cannot be started.
Result<pid_t> start_words(std::vector<std::string> words, std::optional<int> input,
                          OwnSession session, std::optional<int> output = std::nullopt);

// The words for a status of waitpid(): "ended with 3", "was killed by signal 9"; nullopt if it
// ended with 0.
std::optional<std::string> failed_ending(int status);

}  // namespace gantry::ctld
