// Starts programs as a user: for mail about a job, or for a trigger.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/types.h"

namespace gantry::ctld {

// Whether set-uid and set-gid programs may get their rights; sendmail needs them to reach its
// queue.
enum class Privileges { may_be_gained, never };

// The words of a command that first becomes the user completely (ids, groups, no capability, and an
// environment of its own), and then runs `words`. A controller that is not root can only run
// programs for its own user. The error means that this user does not exist here, or is another one.
Result<std::vector<std::string>> words_as_user(Uid uid, Privileges privileges,
                                               std::vector<std::string> words);

// Whether the program leads its own session, so that a signal also reaches the processes that it
// has started.
enum class OwnSession { no, yes };

// Starts `words` in "/", with no signal blocked or ignored. The program reads `input` (not set:
// nothing), and its output goes to `output` (not set: discarded). The error tells why it cannot be
// started.
Result<pid_t> start_words(std::vector<std::string> words, std::optional<int> input,
                          OwnSession session, std::optional<int> output = std::nullopt);

// A status of waitpid() in words: "ended with 3", "was killed by signal 9"; nullopt if it ended
// with 0.
std::optional<std::string> failed_ending(int status);

}  // namespace gantry::ctld
