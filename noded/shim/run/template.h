// The template's side of noded/runtime/shim_template.h: it waits for noded's orders and forks
// shims.
//
// An order is a message with the words of a shim, each ended by NUL, and the locked shim.lock. The
// answer is the process id and, as a descriptor, the pidfd. The template ends when noded's end of
// the socket closes; the shims live on.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gantry::runtime {

// argv: gantry-shim template STATE_DIR PADDING; the socket is descriptor 3. In each process that it
// forks, the call returns the words of a shim, and that process goes on as if it had been started
// with them. In the template itself it returns nothing, when noded is gone.
std::optional<std::vector<std::string>> serve_as_template(int argc, char** argv);

}  // namespace gantry::runtime
