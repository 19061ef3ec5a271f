// Runs every scenario (scenarios/*.txt); each is its own golden file.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tests/golden/golden.h"
#include "tests/places.h"
#include "world.h"

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> scenarios() {
  std::vector<fs::path> out;
  for (const auto& entry :
       fs::directory_iterator(fs::path(gantry::source_dir()) / "tests/core/scenarios"))
    if (entry.path().extension() == ".txt") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

// Returns the scenario with the output that its commands give now. Comments and blank lines stay.
std::string play(const std::string& text) {
  gantry::core::test::World world;
  std::istringstream in(text);
  std::string out, line;
  while (std::getline(in, line)) {
    if (line.starts_with("> "))
      out += line + "\n" + world.run(line.substr(2));
    else if (line.empty() || line.starts_with("#"))
      out += line + "\n";
  }
  const std::string wrong = world.check_recovery();
  if (!wrong.empty()) out += "RECOVERY: " + wrong + "\n";
  return out;
}

}  // namespace

TEST_CASE("every scenario prints what its file says") {
  setenv("TZ", "UTC", 1);
  const auto files = scenarios();
  CHECK(files.size() >= 25);
  for (const fs::path& path : files) {
    CAPTURE(path.filename().string());
    const std::string golden = "tests/core/scenarios/" + path.filename().string();
    const std::string now = play(gantry::test::source_text(golden));
    CHECK(now.find("AUDIT:") == std::string::npos);
    CHECK(now.find("REPLICA:") == std::string::npos);
    CHECK(now.find("RECOVERY:") == std::string::npos);
    gantry::test::check_golden(golden, now);
  }
}
