#include "common/text/printable.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "common/text/utf8.h"

namespace gantry {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// A fast check for printable ASCII, which is nearly all there is.
bool plain(char c) {
  return c >= 0x20 && c < 0x7f;
}

char32_t code_point(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  switch (sequence.size()) {
    case 1: return byte(0);
    case 2: return (byte(0) & 0x1fu) << 6 | (byte(1) & 0x3fu);
    case 3: return (byte(0) & 0x0fu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
    default:
      return (byte(0) & 0x07u) << 18 | (byte(1) & 0x3fu) << 12 | (byte(2) & 0x3fu) << 6 |
             (byte(3) & 0x3fu);
  }
}

bool shows(char32_t c, Lines lines) {
  if (c < 0x20) return lines == Lines::many && (c == '\n' || c == '\t');
  if (c >= 0x7f && c < 0xa0) return false;
  if (c < 0x61c) return true;
  if (c == 0x61c || c == 0x200e || c == 0x200f) return false;
  if (c >= 0x2028 && c <= 0x202e) return false;
  return c < 0x2066 || c > 0x2069;
}

}  // namespace

std::size_t find_unprintable(std::string_view text, Lines lines) {
  const auto* first = std::find_if_not(text.begin(), text.end(), plain);
  for (auto at = static_cast<std::size_t>(first - text.begin()); at < text.size();) {
    const std::string_view rest = text.substr(at);
    const std::size_t length = utf8_length(rest);
    if (length == 0 || !shows(code_point(rest.substr(0, length)), lines)) return at;
    at += length;
  }
  return std::string_view::npos;
}

Result<void> check_printable(std::string_view what, std::string_view text, Lines lines) {
  const std::size_t at = find_unprintable(text, lines);
  if (at == std::string_view::npos) return {};
  const bool utf8 = utf8_length(text.substr(at)) > 0;
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} must {}: its byte {} is{}", what,
                          utf8 ? "not contain control characters" : "be UTF-8", at + 1,
                          utf8 ? " one" : " not"));
}

std::string printable(std::string_view text, Lines lines) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    const std::size_t at = find_unprintable(text, lines);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at);
    const std::size_t length = utf8_length(text);
    out += length == 0 ? kReplacement : "?";
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto* stop = std::find_if(text.begin(), text.end(),
                                    [](char c) { return !plain(c) || c == '"' || c == '\\'; });
    out.append(text.begin(), stop);
    text.remove_prefix(static_cast<std::size_t>(stop - text.begin()));
    if (text.empty()) break;
    const std::size_t length = utf8_length(text);
    const std::string_view sequence = text.substr(0, std::max<std::size_t>(1, length));
    text.remove_prefix(sequence.size());
    const char32_t c = length == 0 ? 0 : code_point(sequence);
    if (length == 0)
      out += kReplacement;
    else if (c == '"' || c == '\\')
      (out += '\\') += sequence;
    else if (c == '\n')
      out += "\\n";
    else if (shows(c, Lines::one))
      out += sequence;
    else
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(c));
  }
  out += '"';
}

}  // namespace gantry
