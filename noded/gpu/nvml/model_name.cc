// Makes the names of GPU models that people use in requests.
#include <algorithm>
#include <array>

#include "noded/gpu/nvml/discover.h"

namespace gantry::gpu {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : std::string(name) + " ") {
    const bool letter = (c >= 'a' && c <= 'z') || is_digit(c) || c == '+';
    const bool capital = c >= 'A' && c <= 'Z';
    if (letter || capital) {
      word += capital ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

// Is the word up to three letters and two digits or more, with at most one letter behind: h100,
// b200, gb200, t4, l40s, a10g, v100s? A size ("80gb"), a module ("sxm4") or a memory ("hbm3") is no
// chip.
bool is_chip(const std::string& word) {
  static constexpr std::array<std::string_view, 5> kOther{"sxm", "hbm", "pcie", "nvl", "gddr"};
  for (const std::string_view prefix : kOther)
    if (word.starts_with(prefix)) return false;
  std::size_t at = 0;
  while (at < word.size() && !is_digit(word[at])) ++at;
  const std::size_t letters = at;
  while (at < word.size() && is_digit(word[at])) ++at;
  return letters >= 1 && letters <= 3 && at > letters && word.size() - at <= 1;
}

// Is the word no part of what people call the model?
bool is_noise(const std::string& word) {
  static constexpr std::array<std::string_view, 8> kNoise{
      "nvidia", "tesla", "quadro", "geforce", "graphics", "gpu", "device", "generation"};
  const bool size = is_digit(word.front()) && word.ends_with("gb");
  return size || std::find(kNoise.begin(), kNoise.end(), word) != kNoise.end();
}

}  // namespace

std::string model_of(std::string_view name) {
  const auto words = words_of(name);
  // "RTX 6000 Ada" and "RTX A6000" are no data-centre chips: their family is a part of the name.
  const bool has_family = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "rtx" || word == "gtx" || word == "titan";
  });
  if (!has_family)
    for (const std::string& word : words)
      if (is_chip(word)) return word;
  std::string model;
  for (const std::string& word : words)
    if (!is_noise(word)) model += (model.empty() ? "" : "-") + word;
  return model.empty() ? "gpu" : model;
}

}  // namespace gantry::gpu
