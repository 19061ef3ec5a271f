// Golden files: the expected output of a program, or a generated page, is in a file of the source
// tree. A test compares the two. With GANTRY_UPDATE_GOLDEN=1 in the environment it rewrites the
// file instead, and the reviewer reads the difference. Paths are relative to the source directory.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/places.h"

namespace gantry::test {

inline std::string source_path(const std::string& path) {
  return source_dir() + "/" + path;
}

inline std::string source_text(const std::string& path) {
  std::ifstream in(source_path(path), std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void check_golden(const std::string& path, const std::string& now) {
  const std::string golden = source_text(path);
  if (now == golden) return;
  if (std::getenv("GANTRY_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(source_path(path), std::ios::binary) << now;
    return;
  }
  std::istringstream left(golden), right(now);
  std::string wanted, found;
  int line = 0;
  do {
    ++line;
    if (!std::getline(left, wanted)) wanted = "(end)";
    if (!std::getline(right, found)) found = "(end)";
  } while (wanted == found && (left || right));
  FAIL_CHECK(path, ":", line, " says '", wanted, "', the program says '", found,
             "'; if that is meant, run with GANTRY_UPDATE_GOLDEN=1");
}

// The same for a page that has other parts as well: `now` is a table that starts at the line
// `first` and ends before a blank line.
inline void check_golden_table(const std::string& path, const std::string& first,
                               const std::string& now) {
  const std::string golden = source_text(path);
  const std::size_t from = golden.find(first);
  CAPTURE(path);
  REQUIRE(from != std::string::npos);
  const std::size_t end = golden.find("\n\n", from);
  check_golden(path, golden.substr(0, from) + now +
                         (end == std::string::npos ? "" : golden.substr(end + 1)));
}

}  // namespace gantry::test
