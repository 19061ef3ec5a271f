// The table of all commands. `gantry NAME` and a link called NAME do the same. A new command is a
// file cmd_NAME.cc that defines its Command, and a line here.
#include "cli/command.h"

namespace gantry::cli {

#define GANTRY_COMMANDS(X) \
  X(kGbatch)               \
  X(kGqueue)               \
  X(kGcancel)              \
  X(kGacct)                \
  X(kGinfo)                \
  X(kGctl)                 \
  X(kGtenant)              \
  X(kGshare)               \
  X(kGprio)                \
  X(kGreport)              \
  X(kGrun)                 \
  X(kGalloc)               \
  X(kGantry)

#define X(name) extern const Command name;
GANTRY_COMMANDS(X)
#undef X

namespace {
#define X(name) &name,
constexpr const Command* kAll[] = {GANTRY_COMMANDS(X)};
#undef X
}  // namespace

std::span<const Command* const> all_commands() {
  return kAll;
}

}  // namespace gantry::cli
