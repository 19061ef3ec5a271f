// Replays every tests/noded/scenarios/*.txt; each is its own golden file.
#include <doctest/doctest.h>

#include <filesystem>

#include "noded/core/state.h"
#include "tests/golden/golden.h"
#include "tests/noded/scenario.h"
#include "tests/places.h"

namespace gantry {
namespace {

TEST_CASE("every scenario of the node core gives the answers in its file") {
  const std::filesystem::path folder = source_dir() + "/tests/noded/scenarios";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".txt") continue;
    ++files;
    const std::string golden = "tests/noded/scenarios/" + entry.path().filename().string();
    test::check_golden(golden, test::replay(test::source_text(golden)));
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
