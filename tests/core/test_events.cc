// Numbers of events and of their fields are permanent: a change of the golden list shows in review.
// GANTRY_UPDATE_GOLDEN=1 rewrites the list.
#include <doctest/doctest.h>

#include "ctld/core/event/events.h"
#include "ctld/core/event/journal.h"
#include "tests/golden/golden.h"

using namespace gantry;
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

template <class E>
void check_default() {
  const Instant at{1'700'000'000'000'000};
  const auto read = decode_event(encode_event(at, E{}));
  REQUIRE_MESSAGE(read, E::kName);
  CHECK(read->at == at);
  CHECK(EventRef(read->event).get_if<E>() != nullptr);
  const std::string begin = "{\"at\":1700000000000000,\"event\":{\"kind\":\"";
  CHECK(event_json(at, read->event).starts_with(begin + std::string(E::kName) + "\""));
}

std::string error_of(std::string_view bytes) {
  const auto read = decode_event(bytes);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ErrorCode::malformed);
  return read.error().message;
}

}  // namespace

TEST_CASE("the numbers of all events and fields are as in the golden list") {
  std::string out;
#define X(Name) list<event::Name>(out);
#include "ctld/core/event/events.def"
#undef X
  gantry::test::check_golden("tests/golden/events.txt", out);
}

TEST_CASE("every event is read from the journal as the kind that was written") {
#define X(Name) check_default<event::Name>();
#include "ctld/core/event/events.def"
#undef X
}

TEST_CASE("an entry of the journal is {1: at, 2: [kind, {fields}]}") {
  const event::JobHeld held{JobId(7), Hold::admin, "why"};
  const Bytes bytes = encode_event(Instant{5}, held);
  CHECK(bytes == std::string_view("\x82\x01\x05\x02\x92\x15\x83\x01\x07\x02\x02\x03\xa3why"));
  CHECK(event_json(Instant{5}, held) ==
        R"({"at":5,"event":{"kind":"job_held","job":7,"hold":"admin","cause":"why"}})");
  // The time 0 is left out, and so are fields with their defaults.
  CHECK(encode_event(Instant{}, event::JobReleased{}) == std::string_view("\x81\x02\x92\x16\x80"));
  const auto read = decode_event(bytes);
  REQUIRE(read);
  CHECK(read->at == Instant{5});
  const auto* same = EventRef(read->event).get_if<event::JobHeld>();
  REQUIRE(same != nullptr);
  CHECK(same->job == JobId(7));
  CHECK(same->hold == Hold::admin);
  CHECK(same->cause == "why");
  CHECK(EventRef(read->event).get_if<event::JobReleased>() == nullptr);
}

TEST_CASE("an entry of the journal that cannot be read names the field") {
  using namespace std::string_view_literals;
  CHECK(error_of("\x81\x02\x92\x16\x81\x01\xa1x"sv) ==
        "field event.job_released.job: expected an unsigned integer");
  CHECK(error_of("\x81\x02\x92\x70\x80"sv) == "field event: unknown kind 112");
  CHECK(error_of("\x81\x02\x92\xcd\x10\x00\x80"sv) == "field event: unknown kind 4096");
  CHECK(error_of("\x81\x02\x93\x16\x80\x80"sv) == "field event: expected [kind, fields]");
  CHECK(error_of("\x81\x01\x05"sv) == "field event: it is missing");
  CHECK(error_of("\x81\x02\x92\x16\x80\x00"sv) == "bytes behind the end of the message");
  // A field that a newer release may have added is skipped.
  CHECK(decode_event("\x82\x02\x92\x16\x80\x09\xa1x"sv));
}
