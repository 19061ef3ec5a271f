// What a shim can still reach once its container runs or its step's tasks do: its job's records and
// cgroup, and nothing else of the machine. A shim that somebody takes over then can change no other
// file.
#pragma once

#include "noded/shim/shim.h"

namespace gantry::runtime {

// Gives up the rest by Landlock, where the kernel has it. A shim that has more to do at the job's
// end keeps everything: with an epilog, which is a program of the operator's, with files to stage
// out, and with a scratch directory, of which it looks for deleted files in all processes of the
// job.
void keep_only_what_a_shim_needs(const Shim& shim);
// The same for the shim of a step, which has none of that to do: tasks and output files are open.
void keep_only_what_a_step_needs(const Shim& shim);

}  // namespace gantry::runtime
