// The log: one line for each event, whatever text is in it, with levels, limits, and reopening
// after rotation.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "common/types.h"

namespace gantry {
namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

struct TempFile {
  std::string path;
  TempFile() {
    char name[] = "/tmp/gantry-log-XXXXXX";
    const int fd = mkstemp(name);
    REQUIRE(fd >= 0);
    close(fd);
    path = name;
  }
  ~TempFile() {
    std::remove(path.c_str());
    std::remove((path + ".1").c_str());
  }
};

TEST_CASE("an event is one line with time, level, program, message and fields") {
  const TempFile file;
  const auto log = Logger::open({.program = "ctld", .file = file.path});
  REQUIRE(log);
  log->info("node registered", {{"node", "n3"}, {"cpus", 64}, {"job", JobId(7)}, {"first", true}});
  log->warning("bad \"input\"\nfrom outside", {{"text", "two\nlines\x01"}, {"empty", ""}});
  log->debug("not at this level");
  const auto lines = lines_of(file.path);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].size() > 28);
  CHECK(lines[0][26] == 'Z');
  CHECK(lines[0].substr(27) == " info ctld \"node registered\" node=n3 cpus=64 job=7 first=yes");
  CHECK(lines[1].substr(27) ==
        " warning ctld \"bad \\\"input\\\"\\nfrom outside\" text=\"two\\nlines\\x01\" empty=\"\"");
}

TEST_CASE("a repeated line comes once, and later with the number of lines left out") {
  const TempFile file;
  const auto log = Logger::open({.program = "noded", .file = file.path, .level = LogLevel::debug});
  REQUIRE(log);
  LogLimit limit;
  for (int i = 0; i < 100; ++i) log->write(limit, LogLevel::error, "again");
  limit.next_us = 0;  // The interval counts as passed.
  log->write(limit, LogLevel::error, "again");
  const auto lines = lines_of(file.path);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].ends_with("\"again\""));
  CHECK(lines[1].ends_with("\"again\" left_out=99"));
}

TEST_CASE("a log is reopened after rotation, takes levels by name, and reports a bad path") {
  const TempFile file;
  auto log = Logger::open({.program = "x", .file = file.path});
  REQUIRE(log);
  log->info("old");
  REQUIRE(std::rename(file.path.c_str(), (file.path + ".1").c_str()) == 0);
  REQUIRE(log->reopen());
  log->info("new");
  CHECK(lines_of(file.path).size() == 1);
  CHECK(lines_of(file.path + ".1").size() == 1);
  CHECK(*parse_log_level("warning") == LogLevel::warning);
  CHECK(parse_log_level("loud").error().code == ErrorCode::invalid_argument);
  CHECK(Logger::open({.program = "x", .file = "/proc/no/such/log"}).error().code ==
        ErrorCode::io_error);
}

}  // namespace
}  // namespace gantry
