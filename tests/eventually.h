// How a test waits for what tells nobody when it comes true.
#pragma once

#include <chrono>
#include <functional>

namespace gantry {

// Asks until the condition holds or the patience is at its end, and pauses between two questions.
// Returns whether the condition holds.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds patience = std::chrono::seconds(30),
                std::chrono::milliseconds pause = std::chrono::milliseconds(10));

}  // namespace gantry
