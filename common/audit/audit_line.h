// A record of the audit log is a line of JSON. The lines are a chain: each has in `prev` the hash
// of the line before it, and in `hash`, its last field, BLAKE2b-256 of all of itself before that
// field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/time/time.h"

namespace gantry::audit {

struct Record {
  std::uint64_t seq = 0;  // 1, 2, ... without a gap
  Instant time{};
  std::string user;  // login name; "" = not authenticated
  std::uint32_t uid = 0;
  std::string how;      // how the user was proved: "munge", "key", "token", "login node", "job 12"
  std::string right;    // the role that decided: "user", "operator", "admin", "none"
  std::string message;  // name of the request
  std::string about;    // what the request names: "job=12 node=n1"
  std::string outcome;  // "done", "unanswered", or the name of an error
  std::string why;      // the error's sentence
  friend bool operator==(const Record&, const Record&) = default;
};

// The value of `prev` in the very first line.
inline constexpr std::string_view kNoLine =
    "0000000000000000000000000000000000000000000000000000000000000000";

struct Line {
  std::string text;  // with its line feed
  std::string hash;
};
Line line_of(const Record& record, std::string_view prev);

struct ReadLine {
  Record record;
  std::string prev, hash;
};
// Reads a line without its line feed. The error tells in a clause what is wrong with it, or that
// its hash does not match its text.
Result<ReadLine> read_line(std::string_view text);

}  // namespace gantry::audit
