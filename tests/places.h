// Where the sources and the built programs lie. One object knows these paths, so that the others
// are the same in every clone, and ccache shares them.
#pragma once

#include <string>

namespace gantry {

const std::string& source_dir();   // the root of the sources
const std::string& program_dir();  // the folder of our programs

}  // namespace gantry
