#include "noded/sampling/kept_file.h"

#include <fcntl.h>

#include <charconv>

namespace gantry::sampling {

KeptFile::KeptFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

std::string_view KeptFile::read(std::string& buffer) const {
  if (!fd_) return {};
  if (buffer.size() < 4096) buffer.resize(4096);
  std::size_t have = 0;
  for (;;) {
    const ssize_t n =
        ::pread(fd_.get(), buffer.data() + have, buffer.size() - have, static_cast<off_t>(have));
    if (n < 0) return {};
    have += static_cast<std::size_t>(n);
    // One read of such a file gives all of it, unless the buffer is full.
    if (have < buffer.size()) return std::string_view(buffer).substr(0, have);
    buffer.resize(buffer.size() * 2);
  }
}

std::uint64_t KeptFile::number(std::string& buffer) const {
  std::string_view text = read(buffer);
  return take_number(text);
}

std::uint64_t take_number(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (text.starts_with(' ')) text.remove_prefix(1);
  return error == std::errc{} ? value : 0;
}

std::string_view take_word(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  while (text.starts_with(' ')) text.remove_prefix(1);
  return word;
}

std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::uint64_t keyed(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') continue;
    line.remove_prefix(name.size() + 1);
    return take_number(line);
  }
  return 0;
}

std::uint64_t stalled_us(std::string_view text) {
  const auto at = text.find("total=");
  if (!text.starts_with("some ") || at == std::string_view::npos) return 0;
  text.remove_prefix(at + 6);
  return take_number(text);
}

}  // namespace gantry::sampling
