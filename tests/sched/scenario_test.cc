// Runs the scenarios tests/sched/*.txt; scenario.h describes their form. GANTRY_UPDATE_GOLDEN=1
// writes the present plans into the files, to be reviewed as a diff.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/golden/golden.h"
#include "tests/places.h"
#include "tests/sched/scenario.h"

namespace gantry::sched {
namespace {

TEST_CASE("every scenario gives the plans in its file") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/tests/sched"))
    if (entry.path().extension() == ".txt" && entry.path().stem() != "CMakeLists")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  CHECK(files.size() >= 8);
  for (const auto& file : files) {
    const std::string golden = "tests/sched/" + file.filename().string();
    test::check_golden(golden, run_scenarios(test::source_text(golden)));
  }
}

}  // namespace
}  // namespace gantry::sched
