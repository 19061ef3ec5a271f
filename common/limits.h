// Limits that several subsystems share; each has a unit. Limits of one subsystem (batch sizes,
// message bytes, retries) are next to the code that uses them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gantry {

inline constexpr std::size_t kMaxHosts = 65'536;            // names in one host list
inline constexpr std::size_t kMaxHostName = 253;            // bytes, as in DNS
inline constexpr std::uint32_t kMaxArrayTasks = 1'000'000;  // elements of one job array
inline constexpr std::uint32_t kMaxArrayIndex = 4'000'000;  // greatest index, as in Slurm
inline constexpr std::uint32_t kMaxJobNodes = 65'536;       // nodes of one job
inline constexpr std::int64_t kMaxDurationDays = 36'500;    // a hundred years
inline constexpr std::int64_t kMaxMemoryBytes = std::int64_t{1} << 60;  // one EiB

}  // namespace gantry
