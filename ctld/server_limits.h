// Periods and limits of the controller's shell.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/time/time.h"

namespace gantry::ctld {

inline constexpr Duration kFoldPeriod = seconds(1);
// Under load the records are folded more often, in small pieces: 2,000 events take about 2 ms,
// which hardly delays a submit; the events of a whole second would take 50 ms.
inline constexpr std::size_t kFoldEvents = 2'000;

// First session numbers for connections that are relayed for users, and for jobs.
inline constexpr std::uint64_t kFirstUserChannel = std::uint64_t{1} << 61;
inline constexpr std::uint64_t kFirstChannel = std::uint64_t{1} << 62;
// Limits for connections that have not proved an identity.
inline constexpr std::size_t kMostStrangers = 4'096;
inline constexpr Duration kStrangerTime = seconds(60);
inline constexpr std::uint32_t kMostStrangeMessages = 64;  // messages of each connection
inline constexpr std::uint32_t kMostRefusals = 8;          // refused credentials of each connection
// Limits for one user at a time: queries to the history reader, and to the planner.
inline constexpr std::size_t kMostHistoryQuestions = 32;
inline constexpr std::size_t kMostPlannerQuestions = 2;

}  // namespace gantry::ctld
