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

// Reads FILE, or standard input if the path is "" or "-".
Result<std::string> read_script(const std::string& path);

// Checks that a text is a batch script: it begins with "#!", has a command, no zero bytes, and Unix
// line ends.
Result<void> check_script(std::string_view script);

// The options in lines that begin with #SBATCH or #GANTRY and a blank, up to the first command.
// Quotes and backslashes work as in a shell; an unquoted # ends the line. A word that is no option
// is an error. Errors begin with the place, for which `name` is used: "job.sh:3". With the getopt
// spelling errors have sbatch's texts, without a place. A script of several components is refused.
Result<std::vector<Given>> script_options(std::string_view script, std::string_view name,
                                          std::span<const Option> options,
                                          Spelling spelling = Spelling::whole);

// The same for each component of a heterogeneous job. A line "#SBATCH hetjob" begins the next
// component, so there is always a first one. Errors in a later component begin with its number.
Result<std::vector<std::vector<Given>>> script_components(std::string_view script,
                                                          std::string_view name,
                                                          std::span<const Option> options,
                                                          Spelling spelling);

std::string script_of_wrap(std::string_view command);  // the script that --wrap makes of a command

}  // namespace gantry::cli
