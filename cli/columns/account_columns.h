// Columns of gacct: jobs and their steps.
#pragma once

#include <span>

#include "cli/table.h"
#include "common/proto/history.h"

namespace gantry::cli {

struct AccountView {
  const proto::HistoryRow* job = nullptr;
  const proto::StepRow* step = nullptr;  // not set: the line of the job itself
  Instant now{};
  bool bytes = false;  // --noconvert: sizes in bytes
};

std::span<const Column<AccountView>> account_columns();

inline constexpr std::string_view kAccountFields =
    "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
inline constexpr std::string_view kAccountBriefFields = "JobID,State,ExitCode";
inline constexpr std::string_view kAccountLongFields =
    "JobID,JobName,User,Partition,NNodes,AllocCPUS,ReqMem,State,ExitCode,Submit,Start,End,"
    "Elapsed,Timelimit,TotalCPU,MaxRSS,MaxDiskRead,MaxDiskWrite,NodeList%-20";
// The first is what fits 80 columns, the second has all that is measured.
inline constexpr std::string_view kAccountEfficiencyFields =
    "JobID,State,Elapsed,CPUEff,MemEff,AllocGPUS,GPUEff,GPUMemEff";
inline constexpr std::string_view kAccountAllEfficiencyFields =
    "JobID,JobName,State,Elapsed,CPUEff,MemEff,AllocGPUS,GPUEff,GPUMem,GPUMemEff,GPUPower,"
    "GPUEnergy,"
    "GPUIdle";

}  // namespace gantry::cli
