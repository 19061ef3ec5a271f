// "did you mean": the candidate nearest to a misspelt word.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gantry {

// "" when none is near: at most a third of the word's letters wrong (insert, delete, change, swap).
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// "; did you mean `X`?" or "".
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace gantry
