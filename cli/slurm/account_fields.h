// What sacct can show of a job and of its steps: every field of Slurm's --helpformat. Of what
// Gantry has nothing for, the value is empty, as sacct's is when nothing was measured.
#pragma once

#include <span>
#include <string>

#include "cli/slurm/format.h"
#include "common/proto/history.h"

namespace gantry::cli::slurm {

enum class Units : std::uint8_t { usual, bytes, kilo, mega, giga, tera };

struct AccountRow {
  const proto::HistoryRow* job = nullptr;
  const proto::StepRow* step = nullptr;  // unset: the job's own line
  Instant now{};
  Units units = Units::usual;
  std::string_view cluster;
};

std::span<const Field<AccountRow>> account_fields();

std::string state_with_canceller(const AccountRow& v);
Duration elapsed_of(const AccountRow& v);
std::uint32_t cpus_of(const AccountRow& v);

}  // namespace gantry::cli::slurm
