// A small file of proc, sys or a cgroup that is read again and again: it stays open.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/fd.h"
#include "common/time/time.h"

namespace gantry::sampling {

class KeptFile {
 public:
  KeptFile() = default;
  explicit KeptFile(const std::string& path);
  [[nodiscard]] bool is_there() const { return static_cast<bool>(fd_); }
  // The text is valid until the next read of any file with this buffer; empty if it cannot be read.
  std::string_view read(std::string& buffer) const;
  // The number with which the file begins; 0 if there is none.
  std::uint64_t number(std::string& buffer) const;

 private:
  Fd fd_;
};

// The number behind `name` in "name 12 ..." at the beginning of a line; 0 if it is not there.
std::uint64_t keyed(std::string_view text, std::string_view name);
// The number at the beginning of `text`, which is moved behind it and the spaces that follow.
std::uint64_t take_number(std::string_view& text);
std::string_view take_word(std::string_view& text);
std::string_view take_line(std::string_view& text);
// The total of the line "some" of a pressure file, in microseconds.
std::uint64_t stalled_us(std::string_view text);
constexpr Duration us_of(std::uint64_t n) {
  return microseconds(static_cast<std::int64_t>(n));
}

}  // namespace gantry::sampling
