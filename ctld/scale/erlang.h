// How many servers a service needs to meet a limit on waiting times, by Erlang's formula for a
// queue in which arrivals and service times are random (M/M/c; A. K. Erlang 1917, Kleinrock,
// Queueing Systems I, 3.5). Real service times vary less, so the result is on the safe side.
#pragma once

#include <cstdint>

namespace gantry::scale {

// The part of arrivals that find all servers busy, 0..1 (Erlang C). `load` is arrivals per second
// times the mean service time. 1 if the load exceeds the servers.
double erlang_c(std::uint32_t servers, double load);

struct WaitPromise {
  double rate = 0;     // arrivals per second
  double service = 0;  // mean service time, seconds, above 0
  double budget = 0;   // seconds that an arrival may wait; not below 0
  double share = 0;    // part of the arrivals that wait no longer than that, 0..1
};
// The fewest groups of `group` servers that meet the objective; at most `most`, even if more would
// be needed.
std::uint32_t fewest_groups(const WaitPromise& promise, std::uint32_t group, std::uint32_t most);

}  // namespace gantry::scale
