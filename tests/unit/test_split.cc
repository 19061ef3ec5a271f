// The functions that split texts into parts and words.
#include <doctest/doctest.h>

#include "common/text/split.h"

using namespace gantry;

namespace {
using Words = std::vector<std::string>;

Words words(std::string_view line, Backslash backslash = Backslash::escapes) {
  const auto out = split_words(line, backslash);
  REQUIRE(out.has_value());
  return *out;
}
}  // namespace

TEST_CASE("split() cuts at a character and keeps empty parts") {
  CHECK(split("a:b::c", ':') == Words{"a", "b", "", "c"});
  CHECK(split("a:", ':') == Words{"a", ""});
  CHECK(split("", ':') == Words{""});
  CHECK(split(std::string_view("a\0b", 3), '\0') == Words{"a", "b"});
}

TEST_CASE("split_list() drops empty parts") {
  CHECK(split_list(",a,,b,") == Words{"a", "b"});
  CHECK(split_list("").empty());
  CHECK(split_list(",,").empty());
}

TEST_CASE("words are split as a shell does") {
  CHECK(words("  a\tb  ") == Words{"a", "b"});
  CHECK(words("a'b c'd \"e  f\"") == Words{"ab cd", "e  f"});
  CHECK(words("'' x") == Words{"", "x"});
  CHECK(words("a #b c") == Words{"a"});
  CHECK(words("a#b '#c'") == Words{"a#b", "#c"});
  CHECK(words("").empty());
}

TEST_CASE("a backslash escapes outside of single quotes, or counts as text if the caller says so") {
  CHECK(words("a\\ b \"c\\\"d\" 'e\\f'") == Words{"a b", "c\"d", "e\\f"});
  CHECK(words("\\# x\\") == Words{"#", "x\\"});
  CHECK(words("a\\ b", Backslash::is_text) == Words{"a\\", "b"});
}

TEST_CASE("a quote that is not closed is reported") {
  CHECK(split_words("a \"b", Backslash::escapes).error() == '"');
  CHECK(split_words("a 'b", Backslash::is_text).error() == '\'');
}
