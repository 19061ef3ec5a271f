// How many requests the controller has had, by message and by user, as sdiag and sacctmgr show it.
#pragma once

#include <cstdint>
#include <string>

#include "common/proto/control.h"
#include "common/proto/message_table.h"

namespace gantry::cli::slurm {

enum class CallOrder : std::uint8_t { count, name, time, mean };

// The two tables, in Slurm's layout. Times are in microseconds.
void print_calls(const proto::ShowStatsReply& stats, CallOrder order);

// "Fri Nov 27 20:43:04 2026 (1795812184)"
std::string c_time(Instant t);

}  // namespace gantry::cli::slurm
