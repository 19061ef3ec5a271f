// The shims' template (noded/runtime/shim_template.h), this side: waits for noded's orders and
// forks.
//
// An order is a message with the words of a shim, each ended by NUL, and the locked shim.lock; the
// answer is the process id and, as a descriptor, the pidfd. The template ends with noded's end of
// the socket; the shims live on.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gantry::runtime {

// argv: gantry-shim template STATE_DIR PADDING; the socket is descriptor 3. Returns the words of a
// shim in each process that it forks, which is then as if it had been started with them; nothing in
// the template itself, when noded is gone.
std::optional<std::vector<std::string>> serve_as_template(int argc, char** argv);

}  // namespace gantry::runtime
