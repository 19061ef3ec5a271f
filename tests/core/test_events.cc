// Event kinds and field numbers are permanent: the golden list shows every change in review.
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

TEST_CASE("events are what the golden list says") {
  gantry::test::check_golden("tests/golden/events.txt", list_all(static_cast<Event*>(nullptr)));
}
