#include "common/text/split.h"

#include <utility>

namespace gantry {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items = split(text, ',');
  std::erase(items, std::string());
  return items;
}

tl::expected<std::vector<std::string>, char> split_words(std::string_view line,
                                                         Backslash backslash) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    const bool is_blank = quote == 0 && (c == ' ' || c == '\t');
    if (is_blank) {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
      continue;
    }
    if (!in_word && c == '#') break;
    in_word = true;
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (backslash == Backslash::escapes && c == '\\' && quote != '\'' &&
               at + 1 < line.size()) {
      word += line[++at];
    } else {
      word += c;
    }
  }
  if (quote != 0) return tl::unexpected(quote);
  if (in_word) words.push_back(std::move(word));
  return words;
}

}  // namespace gantry
