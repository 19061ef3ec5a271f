// Batch scripts: reading them, and the options in their #SBATCH and #GANTRY lines.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/option.h"
#include "common/result.h"

namespace gantry::cli {

inline constexpr std::size_t kMaxScriptBytes = 16u << 20;  // the controller allows less

// FILE, or standard input for "" and "-".
Result<std::string> read_script(const std::string& path);

// What makes a text a batch script: "#!" first, some command, no zero bytes, Unix line ends.
Result<void> check_script(std::string_view script);

// The options in lines that begin with #SBATCH or #GANTRY and a blank, up to the first command.
// Quotes and backslashes as in a shell; an unquoted # ends the line. `name` is for places:
// "job.sh:3". A word that is no option is an error. Errors begin with the place; those of the
// getopt spelling are sbatch's, without one. A script of several components is refused.
Result<std::vector<Given>> script_options(std::string_view script, std::string_view name,
                                          std::span<const Option> options,
                                          Spelling spelling = Spelling::whole);

// The same for each component of a heterogeneous job: a line "#SBATCH hetjob" begins the next one.
// There is always a first. Errors in a later one begin with its number.
Result<std::vector<std::vector<Given>>> script_components(std::string_view script,
                                                          std::string_view name,
                                                          std::span<const Option> options,
                                                          Spelling spelling);

std::string script_of_wrap(std::string_view command);  // --wrap

}  // namespace gantry::cli
