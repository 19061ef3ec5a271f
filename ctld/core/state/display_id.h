// How people name a job.
#pragma once

#include <string>

namespace gantry::core {

struct State;
struct Job;

// "12", or "12_3" for an element.
std::string display_id(const State& state, const Job& job);

}  // namespace gantry::core
