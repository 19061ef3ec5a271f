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

// Values of a line: account_values.cc.
std::string state_with_canceller(const AccountRow& v);
// A step that was killed with its job was cancelled.
std::string_view step_state(const proto::HistoryRow& job, const proto::StepRow& step);
ExitStatus shown_exit(const AccountRow& v);
Duration elapsed_of(const AccountRow& v);
std::uint32_t cpus_of(const AccountRow& v);
std::uint32_t nodes_of(const AccountRow& v);
// "billing=4,cpu=4,mem=1G,node=2", sorted by name as Slurm's database has them.
std::string sorted_tres(const AccountRow& v, std::uint32_t cpus, std::int64_t memory);
void put_alloc_tres(std::string& out, const AccountRow& v);
void put_req_tres(std::string& out, const AccountRow& v);
void put_node_list(std::string& out, const AccountRow& v);  // "None assigned": it has none
void put_group(std::string& out, const AccountRow& v);
void put_gid(std::string& out, const AccountRow& v);  // "" of a group that this machine lacks

}  // namespace gantry::cli::slurm
