// "did you mean": finds the candidate nearest to a misspelt word.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gantry {

// Returns "" if no candidate is near: at most a third of the word's letters may be wrong (inserted,
// deleted, changed, swapped).
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// Returns "; did you mean `X`?" or "".
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace gantry
