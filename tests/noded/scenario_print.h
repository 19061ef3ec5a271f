// How scenarios write keys, times, actions and messages; used by scenario.cc.
#pragma once

#include <string>

#include "noded/core/core.h"

namespace gantry::test {

inline constexpr Instant kScenarioStart{3'600'000'000};

node::AttemptKey parse_key(const std::string& text);  // parses "5.1"
Duration parse_length(const std::string& text);       // parses "500ms", "5s", "2m"
std::string show(const node::AttemptKey& key);
std::string format_at(Instant t);  // time since the start: "1.250s"
std::string show(const node::Action& action);
std::string show(const node::Report& message);

}  // namespace gantry::test
