// The table of all commands. `gantry NAME` and a link called NAME do the same. A new command is a
// file cmd_NAME.cc that defines its Command, and a line here. The declarations of each file are in
// a namespace with the command's name.
#include "cli/command.h"

namespace gantry::cli {

#define GANTRY_COMMANDS(X) \
  X(gbatch, kGbatch)       \
  X(gqueue, kGqueue)       \
  X(gcancel, kGcancel)     \
  X(gacct, kGacct)         \
  X(ginfo, kGinfo)         \
  X(gctl, kGctl)           \
  X(gtenant, kGtenant)     \
  X(gshare, kGshare)       \
  X(gprio, kGprio)         \
  X(greport, kGreport)     \
  X(grun, kGrun)           \
  X(galloc, kGalloc)       \
  X(gantry, kGantry)

#define X(space, name)       \
  namespace space {          \
  extern const Command name; \
  }
GANTRY_COMMANDS(X)
#undef X

namespace {
#define X(space, name) &space::name,
constexpr const Command* kAll[] = {GANTRY_COMMANDS(X)};
#undef X
}  // namespace

std::span<const Command* const> all_commands() {
  return kAll;
}

}  // namespace gantry::cli
