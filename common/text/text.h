// Reads and writes quantities in the form for people: times, memory, signals. Commands,
// configuration and #SBATCH lines all use these functions and nothing else.
//
// The forms are Slurm's. A parser accepts the whole text, or fails with invalid_argument and one
// sentence that quotes the text and tells what is allowed. Dates are in the local time zone (TZ);
// no clock is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/time/time.h"

namespace gantry {

// ---- numbers

// Reads a decimal integer in [low, high]. The error begins with `what`: "nodes must be 1 to 10, not
// "x"".
Result<std::int64_t> parse_integer(std::string_view what, std::string_view text, std::int64_t low,
                                   std::int64_t high);

// ---- lengths of time

// Reads minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S, each with any number of digits. UNLIMITED or
// INFINITE (in any case) gives std::nullopt. The most is kMaxDurationDays; 0 stays 0.
Result<std::optional<Duration>> parse_duration(std::string_view text);

// Writes a length as squeue does: "0:05", "1:02:03", "2-01:00:00". Fractions of a second are
// dropped; a negative length is "INVALID".
std::string format_duration(Duration d);
// Writes a length as sacct and scontrol do: "00:00:05", "2-01:00:00".
std::string format_duration_long(Duration d);
// Writes a time limit; std::nullopt is "UNLIMITED".
std::string format_time_limit(const std::optional<Duration>& limit);

// ---- points of time

// What "10:30" means if it is already past that time today.
enum class TimeSense : std::uint8_t {
  coming,  // tomorrow (--begin, --deadline)
  latest,  // today (accounting, where the past is asked for)
};

// Reads YYYY-MM-DD[THH:MM[:SS]], MM/DD[/YY], MMDD[YY], HH:MM[:SS] [AM|PM], now, now+N or now-N
// (seconds, minutes, hours, days, weeks; default seconds), today, tomorrow, midnight, noon,
// teatime. The caller gives the present time as `now`.
Result<Instant> parse_time(std::string_view text, Instant now, TimeSense sense = TimeSense::coming);

std::string format_time(Instant t);  // "2026-01-31T08:05:00"

// ---- memory

// Reads a number of MB, or a number with K, M, G, T (also KB, KiB; in any case). Returns bytes;
// units are powers of 1024.
Result<std::int64_t> parse_memory(std::string_view text);
// Writes bytes in the largest unit that is exact: "8G", "1536M", "1000K", "123B".
std::string format_memory(std::int64_t bytes);
// Writes bytes rounded for people: "7.81G", "64.0M", "512K", "0".
std::string format_memory_rounded(std::int64_t bytes);

// ---- signals

// Reads "TERM", "SIGTERM", "15" or "RTMIN+2", in any case; the result is 1 to 64.
Result<std::int32_t> parse_signal(std::string_view text);
std::string signal_name(std::int32_t signal);  // "SIGTERM"; "signal 70" if it has no name

}  // namespace gantry
