// Replays every tests/noded/scenarios/*.txt and compares the text; GANTRY_UPDATE_GOLDEN=1 rewrites
// the files.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "noded/core/stage.h"
#include "tests/noded/scenario.h"

namespace gantry {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("every scenario of the node core gives the answers in its file") {
  const std::filesystem::path folder = GANTRY_SOURCE_DIR "/tests/noded/scenarios";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".txt") continue;
    ++files;
    CAPTURE(entry.path().filename().string());
    const std::string expected = read(entry.path());
    const std::string got = test::replay(expected);
    if (std::getenv("GANTRY_UPDATE_GOLDEN") != nullptr)
      std::ofstream(entry.path(), std::ios::binary) << got;
    else
      CHECK(got == expected);
  }
  CHECK(files >= 8);
}

TEST_CASE("every stage of an attempt can end, and an ended attempt stays ended") {
  using enum node::Stage;
  for (const auto stage : {preparing, held, starting, running, ending})
    CHECK(node::next_stage(stage, node::Trigger::ended) == ended);
  for (const auto& move : node::kMoves) CHECK(move.from != ended);
  int seen = 0;
  for (const auto& a : node::kMoves)
    for (const auto& b : node::kMoves) seen += a.from == b.from && a.trigger == b.trigger;
  CHECK(seen == static_cast<int>(node::kMoves.size()));  // no row twice
}

}  // namespace
}  // namespace gantry
