// Finds similar words by the optimal string alignment distance.
#include "config/nearest.h"

#include <algorithm>
#include <vector>

namespace gantry {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> d((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return d[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      std::size_t best = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best = std::min(best, at(i - 2, j - 2) + 1);
      at(i, j) = best;
    }
  }
  return at(a.size(), b.size());
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t kMaxWord = 64;  // a longer word is no misspelling
  if (word.empty() || word.size() > kMaxWord) return {};
  std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  std::string_view best;
  for (std::string_view candidate : candidates) {
    if (candidate.size() > kMaxWord) continue;
    const std::size_t d = distance(word, candidate);
    if (d <= limit && (best.empty() || d < limit)) {
      best = candidate;
      limit = d;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view found = nearest(word, candidates);
  return found.empty() ? std::string() : "; did you mean `" + std::string(found) + "`?";
}

}  // namespace gantry
