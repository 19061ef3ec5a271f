// The fields that sacct can show of a job and of its steps: every field of Slurm's --helpformat. A
// field for which Gantry has no data is empty, as in sacct when nothing was measured.
#pragma once

#include <span>
#include <string>

#include "cli/slurm/format.h"
#include "common/proto/history.h"

namespace gantry::cli::slurm {

enum class Units : std::uint8_t { usual, bytes, kilo, mega, giga, tera };

struct AccountRow {
  const proto::HistoryRow* job = nullptr;
  const proto::StepRow* step = nullptr;  // not set: the job's own line
  Instant now{};
  Units units = Units::usual;
  std::string_view cluster;
};

std::span<const Column<AccountRow>> account_fields();

// Values of a line, computed in account_json.cc.
std::string state_with_canceller(const AccountRow& v);
// The state of a step. A step that was killed because its job was ended counts as cancelled.
std::string_view step_state(const proto::HistoryRow& job, const proto::StepRow& step);
ExitStatus shown_exit(const AccountRow& v);
Duration elapsed_of(const AccountRow& v);
std::uint32_t cpus_of(const AccountRow& v);
std::uint32_t nodes_of(const AccountRow& v);
// Resources as "billing=4,cpu=4,mem=1G,node=2", sorted by name as in Slurm's database.
std::string sorted_tres(const AccountRow& v, std::uint32_t cpus, std::int64_t memory);
void put_alloc_tres(std::string& out, const AccountRow& v);
void put_req_tres(std::string& out, const AccountRow& v);
void put_node_list(std::string& out, const AccountRow& v);  // "None assigned" if there are no nodes
void put_group(std::string& out, const AccountRow& v);
void put_gid(std::string& out, const AccountRow& v);  // "" if this machine does not know the group

}  // namespace gantry::cli::slurm
