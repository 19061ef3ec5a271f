// What one can do to the stand-in's GPUs from outside, as commands: gantry-fake-gpu runs them,
// tests call them with the same words.
#pragma once

#include <span>
#include <string>

#include "common/result.h"
#include "tests/nvml/state.h"

namespace gantry::fake {

// One command and its arguments, "xid 0 79"; takes the lock. What it prints is returned.
Result<std::string> control(State& state, std::span<const std::string> words);
// The same, of one line.
Result<std::string> control(State& state, const std::string& line);

std::string control_usage();  // a line for each command

// Every GPU and what it is cut into, one line each.
std::string show(const State& state);

}  // namespace gantry::fake
