// Each message that messages.def gives to the core has one handler.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "ctld/core/subject.h"

namespace gantry::core {
namespace {

TEST_CASE("each message to the core has exactly one handler") {
  CHECK(sound(subjects()));

  std::vector<const Subject*> all(subjects().begin(), subjects().end());
  const auto holds = [](const Subject* one) {
    return one->name == "hold" && !one->handlers.empty();
  };
  const auto hold = std::find_if(all.begin(), all.end(), holds);
  REQUIRE(hold != all.end());

  const Subject* twice = *hold;
  all.push_back(twice);
  CHECK(sound(all).error().message ==
        "the message HoldJobs has 2 handlers in the core and must have 1");
  std::erase(all, twice);
  CHECK(sound(all).error().message ==
        "the message HoldJobs has 0 handlers in the core and must have 1");

  // A handler of what is not sent to the core.
  static constexpr Handler kStray[]{{proto::MessageType::Launch}};
  const Subject stray{.name = "stray", .handlers = kStray};
  std::vector<const Subject*> more(subjects().begin(), subjects().end());
  more.push_back(&stray);
  CHECK(sound(more).error().message ==
        "the message Launch has 1 handlers in the core and must have 0");
}

}  // namespace
}  // namespace gantry::core
