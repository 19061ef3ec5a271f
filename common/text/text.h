// How people write quantities, and how we write them back: times, memory, signals.
// Commands, configuration and #SBATCH lines all use these and nothing else.
//
// Forms are Slurm's. Parsers take the whole text or fail with invalid_argument and one sentence
// that quotes it and says what is allowed. Dates are in the local time zone (TZ); no clock is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/time/time.h"

namespace gantry {

// ---- numbers

// A decimal integer in [low, high]; `what` is named in the error: "nodes must be 1 to 10, not "x"".
Result<std::int64_t> parse_integer(std::string_view what, std::string_view text, std::int64_t low,
                                   std::int64_t high);

// ---- lengths of time

// Minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S, each with any number of digits. UNLIMITED or INFINITE
// (any case) is std::nullopt. At most kMaxDurationDays. 0 is returned as it is written.
Result<std::optional<Duration>> parse_duration(std::string_view text);

// As squeue writes: "0:05", "1:02:03", "2-01:00:00". Fractions of a second are dropped; a negative
// length is "INVALID".
std::string format_duration(Duration d);
// As sacct and scontrol write: "00:00:05", "2-01:00:00".
std::string format_duration_long(Duration d);
// A time limit: std::nullopt is "UNLIMITED".
std::string format_time_limit(const std::optional<Duration>& limit);

// ---- points of time

// What "10:30" means when it is past that today.
enum class TimeSense : std::uint8_t {
  coming,  // tomorrow (--begin, --deadline)
  latest,  // today (accounting, where the past is asked for)
};

// YYYY-MM-DD[THH:MM[:SS]], MM/DD[/YY], MMDD[YY], HH:MM[:SS] [AM|PM], now, now+N or now-N
// (seconds, minutes, hours, days, weeks; default seconds), today, tomorrow, midnight, noon,
// teatime. `now` is the present, given by the caller.
Result<Instant> parse_time(std::string_view text, Instant now, TimeSense sense = TimeSense::coming);

std::string format_time(Instant t);  // "2026-01-31T08:05:00"

// ---- memory

// A number of MB, or with K, M, G, T (also KB, KiB; any case). In bytes, powers of 1024.
Result<std::int64_t> parse_memory(std::string_view text);
// In the largest unit that is exact: "8G", "1536M", "1000K", "123B".
std::string format_memory(std::int64_t bytes);
// Rounded for people: "7.81G", "64.0M", "512K", "0".
std::string format_memory_rounded(std::int64_t bytes);

// ---- signals

// "TERM", "SIGTERM", "15", "RTMIN+2"; any case; 1 to 64.
Result<std::int32_t> parse_signal(std::string_view text);
std::string signal_name(std::int32_t signal);  // "SIGTERM"; "signal 70" when there is none

}  // namespace gantry
