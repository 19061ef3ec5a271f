// Reports that a test case cannot run here.
#pragma once

#include <string_view>

namespace gantry::test {

// Prints that the running test case is skipped, and why, and adds a line `NAME | REASON` to the
// file that `./dev test` counts (the environment's GANTRY_PASSED_OVER). In CI a skipped case
// without a line in tests/passed_over.txt is a failure.
void pass_over(std::string_view reason);

}  // namespace gantry::test

// Ends a test case that cannot run.
#define SKIP_CASE(reason) return ::gantry::test::pass_over(reason)
