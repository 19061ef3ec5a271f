// A controller of canned replies that has a queue, nodes, accounts and a history, for the commands
// under Slurm's names.
#pragma once

#include "tests/cli/fake_controller.h"

namespace gantry::test {

void fill_queue(FakeController& fake);

}  // namespace gantry::test
