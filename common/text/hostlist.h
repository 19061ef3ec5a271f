// Host lists: "gpu[01-04,07],x1" names gpu01 gpu02 gpu03 gpu04 gpu07 x1.
//
// Syntax and results are Slurm's: a range is padded to the width of its first number, the order
// stays as written, and several bracket groups in one name multiply. Compressing keeps order and
// zeros, and folds only the last number of a name, so that every client can read the result:
//   expand_hostlist(compress_hostlist(names)) == names, for all valid names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace gantry {

// The names of a list: at most kMaxHosts names of at most kMaxHostName bytes, made of letters,
// digits, '-', '_' and '.'. An error names the position (counted from 1). An empty text is an empty
// list.
Result<std::vector<std::string>> expand_hostlist(std::string_view text);

std::string compress_hostlist(std::span<const std::string> names);

// Numbers per node, in node order, in the form of SLURM_TASKS_PER_NODE: 2 2 2 1 -> "2(x3),1".
std::string compress_counts(std::span<const std::uint32_t> counts);

}  // namespace gantry
