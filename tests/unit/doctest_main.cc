// The one main function of all doctest executables, and what a test case calls that cannot run.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/skip.h"

namespace gantry::test {

void pass_over(std::string_view reason) {
  const auto* running = doctest::getContextOptions()->currentTest;
  const std::string name = running == nullptr ? "?" : running->m_name;
  const std::string why(reason);
  std::fprintf(stderr, "passed over: %s: %s\n", name.c_str(), why.c_str());
  const char* path = std::getenv("GANTRY_PASSED_OVER");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fputs((name + " | " + why + "\n").c_str(),
             file);  // one write, because tests run in parallel
  std::fclose(file);
}

}  // namespace gantry::test
