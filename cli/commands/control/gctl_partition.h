// gctl partition: administrators make, change and delete partitions.
#pragma once

#include "cli/command.h"

namespace gantry::cli {

extern const Command kGctlPartition;

}  // namespace gantry::cli
