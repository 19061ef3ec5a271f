// Numbers of events and of their fields are permanent: a change of the golden list shows in review.
// GANTRY_UPDATE_GOLDEN=1 rewrites the list.
#include <doctest/doctest.h>

#include "ctld/core/event/events.h"
#include "tests/golden/golden.h"

using namespace gantry::core;

namespace {

template <class E>
void list(std::string& out) {
  E event;
  out += std::to_string(E::kKind) + " " + std::string(E::kName) + ":";
  E::fields(event, [&](int number, std::string_view name, const auto&) {
    out += " " + std::to_string(number) + " " + std::string(name);
  });
  out += "\n";
}

template <class... E>
std::string list_all(std::variant<E...>*) {
  std::string out;
  (list<E>(out), ...);
  return out;
}

}  // namespace

TEST_CASE("the numbers of all events and fields are as in the golden list") {
  gantry::test::check_golden("tests/golden/events.txt", list_all(static_cast<Event*>(nullptr)));
}
