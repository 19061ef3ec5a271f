// A line for each thing that happened in a run. All lines are hashed, the last ones are kept, and
// all are printed if requested. A broken property prints the last lines and how to see the history
// again, and ends the process.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "common/time/time.h"

namespace gantry::sim {

class Trace {
 public:
  static constexpr std::size_t kKept = 50;  // number of lines

  Trace(std::uint64_t seed, std::string repeat, bool print);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void line(Instant now, std::string_view text);
  void octets(std::string_view bytes);  // adds bytes to the hash only
  [[noreturn]] void broken(Instant now, std::string_view promise);
  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] std::uint64_t lines() const { return lines_; }
  void print_tail() const;  // to stderr

 private:
  std::uint64_t seed_;
  std::string repeat_;
  bool print_;
  std::uint64_t hash_ = 0xcbf29ce484222325;
  std::uint64_t lines_ = 0;
  std::deque<std::string> tail_;
};

}  // namespace gantry::sim
