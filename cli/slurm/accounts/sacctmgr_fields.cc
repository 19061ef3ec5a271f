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

constexpr Column<Entry> kEntryFields[] = {
    sized("Account", 10, put<&Entry::account>),
    sized("Acct", "Account", 10, put<&Entry::account>),
    sized("Action", 20, put<&Entry::action>),
    sized("Actor", 10, put<&Entry::actor>),
    sized("AdminLevel", "Admin", 9, put<&Entry::admin>),
    sized("TRES", 20, put<&Entry::tres>),
    sized("ClusterNodes", "Cluster Nodes", 20, put<&Entry::nodes>),
    sized("Clusters", "Cluster", 10, put<&Entry::cluster>),
    sized("Coordinators", "Coord Accounts", 20, put<&Entry::coordinated>),
    sized("ControlHost", 15, put<&Entry::host>),
    sized("ControlPort", 12, put<&Entry::port>),
    sized("Count", 6, put_limit<kCount>),
    sized("DefaultAccount", "Def Acct", 10, put<&Entry::default_account>),
    sized("DefaultQOS", "Def QOS", 9, put<&Entry::default_qos>),
    sized("DefaultWCKey", "Def WCKey", 10, put_nothing),
    sized("Description", "Descr", 20, put<&Entry::description>),
    sized("Event", 7, put<&Entry::type>),
    sized("Flags", 20, put_limit<kFlags>),
    sized("GraceTime", 10, put<&Entry::grace>),
    sized("GrpCPUMins", 11, put_cpus_of<kGrpTresMins>),
    sized("GrpCPURunMins", 13, put_cpus_of<kGrpTresRunMins>),
    sized("GrpCPUs", 8, put_amount<&Entry::grp_tres, kCpu>),
    sized("GrpTRES", 13, put<&Entry::grp_tres>),
    sized("GrpTRESMins", 13, put_limit<kGrpTresMins>),
    sized("GrpTRESRunMins", 13, put_limit<kGrpTresRunMins>),
    sized("GrpJobs", 7, put<&Entry::grp_jobs>),
    sized("GrpJobsAccrue", 13, put_limit<kGrpJobsAccrue>),
    sized("GrpMemory", "GrpMem", 7, put_amount<&Entry::grp_tres, kMem>),
    sized("GrpNodes", 8, put_amount<&Entry::grp_tres, kNode>),
    sized("GrpSubmitJobs", "GrpSubmit", 9, put<&Entry::grp_submit>),
    sized("GrpWall", 11, put_limit<kGrpWall>),
    sized("ID", 6, put<&Entry::id>),
    sized("Info", 20, put<&Entry::info>),
    sized("LFT", 6, put<&Entry::left>),
    sized("ServerType", 10, put<&Entry::reason>),
    sized("MaxCPUMinsPerJob", "MaxCPUMins", 11, put_cpus_of<kMaxTresMins>),
    sized("MaxCPUsPerJob", "MaxCPUs", 8, put_amount<&Entry::max_tres, kCpu>),
    sized("MaxTRESPerJob", "MaxTRES", 13, put<&Entry::max_tres>),
    sized("MaxTRESPerNode", 14, put<&Entry::max_tres_node>),
    sized("MaxTRESMinsPerJob", "MaxTRESMins", 13, put_limit<kMaxTresMins>),
    sized("MaxTRESPerAccount", "MaxTRESPA", 13, put_limit<kMaxTresPa>),
    sized("MaxTRESPA", 13, put_limit<kMaxTresPa>),
    sized("MaxTRESPerUser", "MaxTRESPU", 13, put_limit<kMaxTresPu>),
    sized("MaxTRESPU", 13, put_limit<kMaxTresPu>),
    sized("MaxJobs", 7, put_limit<kMaxJobs>),
    sized("MaxJobsAccrue", 13, put_limit<kMaxJobsAccrue>),
    sized("MaxJobsPerAccount", "MaxJobsPA", 9, put_limit<kMaxJobsPa>),
    sized("MaxJobsPA", 9, put_limit<kMaxJobsPa>),
    sized("MaxJobsPerUser", "MaxJobsPU", 9, put_limit<kMaxJobs>),
    sized("MaxJobsPU", 9, put_limit<kMaxJobs>),
    sized("MaxNodesPerJob", "MaxNodes", 8, put<&Entry::max_nodes>),
    sized("MaxSubmitJobs", "MaxSubmit", 9, put<&Entry::max_submit>),
    sized("MaxSubmitJobsPerAccount", "MaxSubmitPA", 11, put_limit<kMaxSubmitPa>),
    sized("MaxSubmitPA", 11, put_limit<kMaxSubmitPa>),
    sized("MaxSubmitJobsPerUser", "MaxSubmitPU", 11, put<&Entry::max_submit>),
    sized("MaxSubmitPU", 11, put<&Entry::max_submit>),
    sized("MaxWallDurationPerJob", "MaxWall", 11, put<&Entry::max_wall>),
    sized("MinTRESPerJob", "MinTRES", 13, put_limit<kMinTres>),
    sized("Name", 10, put<&Entry::name>),
    sized("NodeNames", "NodeName", -15, put<&Entry::nodes>),
    sized("Organization", "Org", 20, put<&Entry::organization>),
    sized("ParentName", 10, put<&Entry::parent>),
    sized("Partition", 10, put_nothing),
    sized("PreemptMode", 11, put<&Entry::type>),
    sized("Preempt", 10, put<&Entry::preempt>),
    sized("PreemptExemptTime", 19, put<&Entry::exempt>),
    sized("Priority", 10, put<&Entry::priority>),
    sized("Problem", 40, put_nothing),
    sized("QOSLevel", "QOS", 20, put<&Entry::qos>),
    sized("Reason", 30, put<&Entry::reason>),
    sized("RGT", 6, put<&Entry::right>),
    sized("RPC", 5, put<&Entry::rpc>),
    sized("Server", 10, put<&Entry::host>),
    sized("Share", 9, put<&Entry::shares>),
    sized("FairShare", "Share", 9, put<&Entry::shares>),
    sized("State", 6, put<&Entry::state>),
    sized("TimeStamp", "Time", 19, put<&Entry::time>),
    sized("TimeEnd", 19, put<&Entry::end>),
    sized("End", "TimeEnd", 19, put<&Entry::end>),
    sized("TimeStart", 19, put<&Entry::start>),
    sized("Start", "TimeStart", 19, put<&Entry::start>),
    sized("Type", 8, put<&Entry::type>),
    sized("UnusedWall", 10, put_nothing),
    sized("UsageFactor", 11, put<&Entry::usage_factor>),
    sized("UsageThreshold", "UsageThres", 10, put_nothing),
    sized("LimitFactor", 11, put_nothing),
    sized("Allocated", "% Allocated", 11, put_limit<kAllocated>),
    sized("PercentAllowed", "% Allowed", 10, put_limit<kAllowed>),
    sized("User", 10, put<&Entry::user>),
    sized("WCKeys", 20, put_nothing),
    sized("Where", 20, put<&Entry::where>),
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
  for (const Column<Entry>& field : kEntryFields)
    if (lower_case(field.name) == wanted) return std::string(field.name);
  for (const Column<Entry>& field : kEntryFields)
    if (wanted.size() >= least_letters(field.name) && lower_case(field.name).starts_with(wanted))
      return std::string(field.name);
  return "";
}

}  // namespace

std::span<const Column<Entry>> entry_fields() {
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
  return list_layout(whole, infos<Entry>(kEntryFields), unknown);
}

}  // namespace gantry::cli::slurm
