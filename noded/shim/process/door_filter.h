// The system calls that a door makes once it serves. Everything else ends it.
#pragma once

namespace gantry::runtime {

// False: the kernel would not take the filter. The process must have no way to gain privileges.
bool keep_only_calls_of_a_door();

}  // namespace gantry::runtime
