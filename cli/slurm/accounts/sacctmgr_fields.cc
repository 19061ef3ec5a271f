// The table of sacctmgr's fields; see the header. A field without a value is one of which Gantry
// has nothing to say, and is empty.
#include "cli/slurm/accounts/sacctmgr_fields.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/slurm/accounts/other_keys.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

using E = const Entry&;
using Out = std::string&;

template <std::string Entry::*Member>
void put(Out o, E v) {
  o += v.*Member;
}
void put_nothing(Out, E) {}

// A limit that only associations of other clusters have.
template <const char* Key>
void put_limit(Out o, E v) {
  if (const auto it = v.limits.find(Key); it != v.limits.end()) o += it->second;
}
// The amount of one resource in a list: a field of Slurm from the time before these lists.
template <std::string Entry::*List, const char* Resource>
void put_amount(Out o, E v) {
  o += tres_amount(v.*List, Resource);
}
template <const char* Key>
void put_cpus_of(Out o, E v) {
  if (const auto it = v.limits.find(Key); it != v.limits.end()) o += tres_amount(it->second, "cpu");
}
constexpr char kCpu[] = "cpu", kMem[] = "mem", kNode[] = "node";
constexpr char kGrpTresMins[] = "GrpTRESMins", kGrpTresRunMins[] = "GrpTRESRunMins";
constexpr char kGrpJobsAccrue[] = "GrpJobsAccrue", kGrpWall[] = "GrpWall";
constexpr char kMaxTresMins[] = "MaxTRESMins", kMaxJobs[] = "MaxJobs";
constexpr char kMaxJobsAccrue[] = "MaxJobsAccrue";
constexpr char kMaxTresPa[] = "MaxTRESPA", kMaxTresPu[] = "MaxTRESPU", kMaxJobsPa[] = "MaxJobsPA";
constexpr char kCount[] = "Count", kAllocated[] = "Allocated", kAllowed[] = "Allowed";
constexpr char kMaxSubmitPa[] = "MaxSubmitPA", kMinTres[] = "MinTRES", kFlags[] = "Flags";

constexpr Field<Entry> kEntryFields[] = {
    {.name = "Account", .put = put<&Entry::account>, .width = 10},
    {.name = "Acct", .header = "Account", .put = put<&Entry::account>, .width = 10},
    {.name = "Action", .put = put<&Entry::action>, .width = 20},
    {.name = "Actor", .put = put<&Entry::actor>, .width = 10},
    {.name = "AdminLevel", .header = "Admin", .put = put<&Entry::admin>, .width = 9},
    {.name = "TRES", .put = put<&Entry::tres>, .width = 20},
    {.name = "ClusterNodes", .header = "Cluster Nodes", .put = put<&Entry::nodes>, .width = 20},
    {.name = "Clusters", .header = "Cluster", .put = put<&Entry::cluster>, .width = 10},
    {.name = "Coordinators",
     .header = "Coord Accounts",
     .put = put<&Entry::coordinated>,
     .width = 20},
    {.name = "ControlHost", .put = put<&Entry::host>, .width = 15},
    {.name = "ControlPort", .put = put<&Entry::port>, .width = 12},
    {.name = "Count", .put = put_limit<kCount>, .width = 6},
    {.name = "DefaultAccount",
     .header = "Def Acct",
     .put = put<&Entry::default_account>,
     .width = 10},
    {.name = "DefaultQOS", .header = "Def QOS", .put = put<&Entry::default_qos>, .width = 9},
    {.name = "DefaultWCKey", .header = "Def WCKey", .put = put_nothing, .width = 10},
    {.name = "Description", .header = "Descr", .put = put<&Entry::description>, .width = 20},
    {.name = "Event", .put = put<&Entry::type>, .width = 7},
    {.name = "Flags", .put = put_limit<kFlags>, .width = 20},
    {.name = "GraceTime", .put = put<&Entry::grace>, .width = 10},
    {.name = "GrpCPUMins", .put = put_cpus_of<kGrpTresMins>, .width = 11},
    {.name = "GrpCPURunMins", .put = put_cpus_of<kGrpTresRunMins>, .width = 13},
    {.name = "GrpCPUs", .put = put_amount<&Entry::grp_tres, kCpu>, .width = 8},
    {.name = "GrpTRES", .put = put<&Entry::grp_tres>, .width = 13},
    {.name = "GrpTRESMins", .put = put_limit<kGrpTresMins>, .width = 13},
    {.name = "GrpTRESRunMins", .put = put_limit<kGrpTresRunMins>, .width = 13},
    {.name = "GrpJobs", .put = put<&Entry::grp_jobs>, .width = 7},
    {.name = "GrpJobsAccrue", .put = put_limit<kGrpJobsAccrue>, .width = 13},
    {.name = "GrpMemory",
     .header = "GrpMem",
     .put = put_amount<&Entry::grp_tres, kMem>,
     .width = 7},
    {.name = "GrpNodes", .put = put_amount<&Entry::grp_tres, kNode>, .width = 8},
    {.name = "GrpSubmitJobs", .header = "GrpSubmit", .put = put<&Entry::grp_submit>, .width = 9},
    {.name = "GrpWall", .put = put_limit<kGrpWall>, .width = 11},
    {.name = "ID", .put = put<&Entry::id>, .width = 6},
    {.name = "Info", .put = put<&Entry::info>, .width = 20},
    {.name = "LFT", .put = put<&Entry::left>, .width = 6},
    {.name = "ServerType", .put = put<&Entry::reason>, .width = 10},
    {.name = "MaxCPUMinsPerJob",
     .header = "MaxCPUMins",
     .put = put_cpus_of<kMaxTresMins>,
     .width = 11},
    {.name = "MaxCPUsPerJob",
     .header = "MaxCPUs",
     .put = put_amount<&Entry::max_tres, kCpu>,
     .width = 8},
    {.name = "MaxTRESPerJob", .header = "MaxTRES", .put = put<&Entry::max_tres>, .width = 13},
    {.name = "MaxTRESPerNode", .put = put<&Entry::max_tres_node>, .width = 14},
    {.name = "MaxTRESMinsPerJob",
     .header = "MaxTRESMins",
     .put = put_limit<kMaxTresMins>,
     .width = 13},
    {.name = "MaxTRESPerAccount", .header = "MaxTRESPA", .put = put_limit<kMaxTresPa>, .width = 13},
    {.name = "MaxTRESPA", .put = put_limit<kMaxTresPa>, .width = 13},
    {.name = "MaxTRESPerUser", .header = "MaxTRESPU", .put = put_limit<kMaxTresPu>, .width = 13},
    {.name = "MaxTRESPU", .put = put_limit<kMaxTresPu>, .width = 13},
    {.name = "MaxJobs", .put = put_limit<kMaxJobs>, .width = 7},
    {.name = "MaxJobsAccrue", .put = put_limit<kMaxJobsAccrue>, .width = 13},
    {.name = "MaxJobsPerAccount", .header = "MaxJobsPA", .put = put_limit<kMaxJobsPa>, .width = 9},
    {.name = "MaxJobsPA", .put = put_limit<kMaxJobsPa>, .width = 9},
    {.name = "MaxJobsPerUser", .header = "MaxJobsPU", .put = put_limit<kMaxJobs>, .width = 9},
    {.name = "MaxJobsPU", .put = put_limit<kMaxJobs>, .width = 9},
    {.name = "MaxNodesPerJob", .header = "MaxNodes", .put = put<&Entry::max_nodes>, .width = 8},
    {.name = "MaxSubmitJobs", .header = "MaxSubmit", .put = put<&Entry::max_submit>, .width = 9},
    {.name = "MaxSubmitJobsPerAccount",
     .header = "MaxSubmitPA",
     .put = put_limit<kMaxSubmitPa>,
     .width = 11},
    {.name = "MaxSubmitPA", .put = put_limit<kMaxSubmitPa>, .width = 11},
    {.name = "MaxSubmitJobsPerUser",
     .header = "MaxSubmitPU",
     .put = put<&Entry::max_submit>,
     .width = 11},
    {.name = "MaxSubmitPU", .put = put<&Entry::max_submit>, .width = 11},
    {.name = "MaxWallDurationPerJob",
     .header = "MaxWall",
     .put = put<&Entry::max_wall>,
     .width = 11},
    {.name = "MinTRESPerJob", .header = "MinTRES", .put = put_limit<kMinTres>, .width = 13},
    {.name = "Name", .put = put<&Entry::name>, .width = 10},
    {.name = "NodeNames", .header = "NodeName", .put = put<&Entry::nodes>, .width = -15},
    {.name = "Organization", .header = "Org", .put = put<&Entry::organization>, .width = 20},
    {.name = "ParentName", .put = put<&Entry::parent>, .width = 10},
    {.name = "Partition", .put = put_nothing, .width = 10},
    {.name = "PreemptMode", .put = put<&Entry::type>, .width = 11},
    {.name = "Preempt", .put = put<&Entry::preempt>, .width = 10},
    {.name = "PreemptExemptTime", .put = put<&Entry::exempt>, .width = 19},
    {.name = "Priority", .put = put<&Entry::priority>, .width = 10},
    {.name = "Problem", .put = put_nothing, .width = 40},
    {.name = "QOSLevel", .header = "QOS", .put = put<&Entry::qos>, .width = 20},
    {.name = "Reason", .put = put<&Entry::reason>, .width = 30},
    {.name = "RGT", .put = put<&Entry::right>, .width = 6},
    {.name = "RPC", .put = put<&Entry::rpc>, .width = 5},
    {.name = "Server", .put = put<&Entry::host>, .width = 10},
    {.name = "Share", .put = put<&Entry::shares>, .width = 9},
    {.name = "FairShare", .header = "Share", .put = put<&Entry::shares>, .width = 9},
    {.name = "State", .put = put<&Entry::state>, .width = 6},
    {.name = "TimeStamp", .header = "Time", .put = put<&Entry::time>, .width = 19},
    {.name = "TimeEnd", .put = put<&Entry::end>, .width = 19},
    {.name = "End", .header = "TimeEnd", .put = put<&Entry::end>, .width = 19},
    {.name = "TimeStart", .put = put<&Entry::start>, .width = 19},
    {.name = "Start", .header = "TimeStart", .put = put<&Entry::start>, .width = 19},
    {.name = "Type", .put = put<&Entry::type>, .width = 8},
    {.name = "UnusedWall", .put = put_nothing, .width = 10},
    {.name = "UsageFactor", .put = put<&Entry::usage_factor>, .width = 11},
    {.name = "UsageThreshold", .header = "UsageThres", .put = put_nothing, .width = 10},
    {.name = "LimitFactor", .put = put_nothing, .width = 11},
    {.name = "Allocated", .header = "% Allocated", .put = put_limit<kAllocated>, .width = 11},
    {.name = "PercentAllowed", .header = "% Allowed", .put = put_limit<kAllowed>, .width = 10},
    {.name = "User", .put = put<&Entry::user>, .width = 10},
    {.name = "WCKeys", .put = put_nothing, .width = 20},
    {.name = "Where", .put = put<&Entry::where>, .width = 20},
};

// Fields for which fewer letters than three are enough, or more are needed, and how many.
constexpr std::pair<std::string_view, std::size_t> kShort[] = {
    {"ClusterNodes", 8}, {"AdminLevel", 2}, {"Clusters", 2}, {"Coordinators", 2}, {"Event", 2},
    {"Flags", 2},        {"ID", 2},         {"Info", 2},     {"LFT", 1},          {"Name", 2},
    {"Organization", 1}, {"Problem", 1},    {"RGT", 1},      {"RPC", 1},          {"Share", 1},
    {"FairShare", 2},    {"State", 1},      {"TRES", 2},     {"Type", 2},         {"User", 1},
    {"UnusedWall", 2},   {"WCKeys", 2},     {"Where", 2},    {"TimeStamp", 2},    {"End", 2}};

std::size_t least_letters(std::string_view name) {
  for (const auto& [field, letters] : kShort)
    if (field == name) return letters;
  return 3;
}

// The whole name of the field; the word itself if there is none.
std::string whole_name(const std::string& word) {
  const std::string wanted = lower_case(word);
  for (const Field<Entry>& field : kEntryFields)
    if (lower_case(field.name) == wanted) return std::string(field.name);
  for (const Field<Entry>& field : kEntryFields)
    if (wanted.size() >= least_letters(field.name) && lower_case(field.name).starts_with(wanted))
      return std::string(field.name);
  return "";
}

}  // namespace

std::span<const Field<Entry>> entry_fields() {
  return kEntryFields;
}

Result<Layout> entry_layout(std::string_view format) {
  std::string whole;
  for (const std::string& item : split_list(format)) {
    const std::size_t end = std::min(item.find('%'), item.size());
    const std::string name = whole_name(item.substr(0, end));
    if (name.empty())
      return fail(ErrorCode::usage, fmt::format(" Unknown field '{}'", item.substr(0, end)));
    whole += (whole.empty() ? "" : ",") + name + item.substr(end);
  }
  std::vector<std::string> unknown;
  return list_layout(whole, names_of<Entry>(kEntryFields), unknown);
}

}  // namespace gantry::cli::slurm
