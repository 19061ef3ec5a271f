// Commands that change the stand-in's GPUs from outside: gantry-fake-gpu runs them, and tests call
// them with the same words.
#pragma once

#include <span>
#include <string>

#include "common/result.h"
#include "tests/nvml/state.h"

namespace gantry::fake {

// Takes the lock, runs one command with its arguments, such as "xid 0 79", and returns its output.
Result<std::string> control(State& state, std::span<const std::string> words);
// Runs one command given as a line.
Result<std::string> control(State& state, const std::string& line);

std::string control_usage();  // a line for each command

// Draws every GPU and its slices, one GPU a line.
std::string show(const State& state);

}  // namespace gantry::fake
