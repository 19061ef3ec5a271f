// The keys of Slurm's QOS in the order in which Slurm looks for them, each with its shortest
// abbreviation. The table says which keys set something in a priority class, and why the others do
// not.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/slurm/accounts/sacctmgr_qos.h"
#include "cli/slurm/format.h"
#include "common/limits.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::int64_t kMostPriority = 1'000'000'000;  // the limit in documents of classes
constexpr std::int64_t kMostGrace = kMaxDurationDays * 86'400;

struct QosWord {
  std::string_view name;  // name as Slurm writes it
  char sign = '=';
  std::string value;
};
using SetQos = Result<void> (*)(QosSettings&, const QosWord&);

tl::unexpected<Error> bad_value(const QosWord& word) {
  return fail(ErrorCode::usage, fmt::format(" Invalid value for {} ({})", word.name, word.value));
}

Result<void> set_description(QosSettings& s, const QosWord& word) {
  s.description = word.value;
  return {};
}

// In Slurm, -1 restores the value that a QOS has before anybody sets it.
Result<void> set_priority(QosSettings& s, const QosWord& word) {
  const auto n = parse_integer(word.name, word.value, -1, kMostPriority);
  if (!n) return bad_value(word);
  s.priority = *n < 0 ? tenancy::PriorityClass{}.value : static_cast<std::int32_t>(*n);
  return {};
}

Result<void> set_grace(QosSettings& s, const QosWord& word) {
  const auto n = parse_integer(word.name, word.value, -1, kMostGrace);
  if (!n) return bad_value(word);
  s.grace = *n < 0 ? tenancy::PriorityClass{}.grace : seconds(*n);
  return {};
}

Result<void> set_exempt(QosSettings& s, const QosWord& word) {
  if (word.value == "-1") {
    s.exempt = Duration{};
    return {};
  }
  const auto time = parse_duration(word.value);
  if (!time)
    return fail(ErrorCode::usage,
                fmt::format(" Bad PreemptExemptTime format: {}={}", word.name, word.value));
  if (!*time)
    return fail(ErrorCode::unsupported,
                " PreemptExemptTime: jobs that are never to be taken from have PreemptMode=off");
  s.exempt = **time;
  return {};
}

Result<void> set_preempt_mode(QosSettings& s, const QosWord& word) {
  const std::string mode = lower_case(word.value);
  if (mode == "off") {
    s.preemptible = false;
    return {};
  }
  if (mode == "suspend" || mode == "gang" || mode == "within")
    return fail(ErrorCode::unsupported,
                fmt::format(" PreemptMode={}: a job that is taken from is requeued or cancelled: "
                            "use requeue, cancel or off",
                            word.value));
  const bool requeue = mode == "requeue" || mode == "cluster" || mode == "-1" || mode.empty();
  if (!requeue && mode != "cancel")
    return fail(ErrorCode::usage,
                fmt::format(" Bad Preempt Mode given: {}={}", word.name, word.value));
  s.preemptible = true;
  s.victim_mode = requeue ? tenancy::VictimMode::requeue : tenancy::VictimMode::cancel;
  return {};
}

Result<void> set_preempt_list(QosSettings& s, const QosWord& word) {
  auto list = parse_name_list(word.value, word.sign);
  if (!list) return tl::unexpected(list.error());
  s.preempt = std::move(*list);
  return {};
}

// Only 1 is accepted, because that is always the factor.
Result<void> set_usage_factor(QosSettings&, const QosWord& word) {
  if (word.value == "1" || word.value == "1.0" || word.value == "1.000000") return {};
  return fail(ErrorCode::unsupported,
              " UsageFactor: usage counts as much in every QOS; what a kind of node counts is the "
              "charge of its Flavor, see gtenant apply");
}

// Refusals of limits of a QOS; each says where Gantry has that limit.
constexpr std::string_view kGroup =
    "a QOS has no limits; an account has them, for all its users together: modify account NAME set "
    "GrpTRES=...";
constexpr std::string_view kJob =
    "a QOS has no limits; an account has them: modify account NAME set MaxTRES=...";
constexpr std::string_view kRunning =
    "a QOS has no limits; an account has them, for all its users together: modify account NAME set "
    "GrpJobs=...";
constexpr std::string_view kQueued =
    "a QOS has no limits; an account has them, for all its users together: modify account NAME set "
    "GrpSubmitJobs=...";
constexpr std::string_view kQueuedOfUser =
    "a QOS has no limits; an account has them: modify account NAME set MaxSubmitJobs=...";
constexpr std::string_view kWall =
    "a QOS has no limits; an account has them: modify account NAME set MaxWall=...";
constexpr std::string_view kGroupNodes =
    "nodes are no quota; cores are, of an account: modify account NAME set GrpTRES=cpu=...";
constexpr std::string_view kNodes = "a QOS has no limits; a tenant has limits.nodes: gtenant apply";
constexpr std::string_view kPerNode =
    "a QOS has no limits; a tenant has limits.per_node: gtenant apply";
constexpr std::string_view kSpent =
    "what may be used up over time is a budget: gtenant apply with a Budget";
constexpr std::string_view kWaiting =
    "how waiting counts is age_step of a PriorityClass: gtenant apply";
constexpr std::string_view kSmall = "no job is refused for being small; use a partition of its own";
constexpr std::string_view kFairShare =
    "usage is an account's and orders its jobs in the fair share: see sshare";
constexpr std::string_view kFlags =
    "a QOS has no flags: jobs that could never run within an account's limits are always refused, "
    "as with DenyOnLimit, and limits.* of a tenant say the rest: gtenant apply";
constexpr std::string_view kRename =
    "a QOS keeps its name; add one of the new name and delete this one";

struct QosKey {
  std::string_view name;
  std::size_t least;
  SetQos set;  // not set: the key is refused
  std::string_view why = {};
};
constexpr QosKey kQosKeys[] = {
    {"Name", 1, nullptr, kRename},
    {"Description", 1, set_description},
    {"Flags", 2, nullptr, kFlags},
    {"GraceTime", 3, set_grace},
    {"GrpCPUMins", 7, nullptr, kSpent},
    {"GrpCPURunMins", 7, nullptr, kSpent},
    {"GrpCPUs", 7, nullptr, kGroup},
    {"GrpJobs", 4, nullptr, kRunning},
    {"GrpJobsAccrue", 8, nullptr, kWaiting},
    {"GrpMemory", 4, nullptr, kGroup},
    {"GrpNodes", 4, nullptr, kGroupNodes},
    {"GrpSubmitJobs", 4, nullptr, kQueued},
    {"GrpTRES", 7, nullptr, kGroup},
    {"GrpTRESMins", 8, nullptr, kSpent},
    {"GrpTRESRunMins", 8, nullptr, kSpent},
    {"GrpWall", 4, nullptr, kSpent},
    {"LimitFactor", 6, nullptr, kGroup},
    {"MaxCPUMinsPerJob", 7, nullptr, kWall},
    {"MaxCPUsPerJob", 7, nullptr, kJob},
    {"MaxCPUsPerUser", 11, nullptr, kGroup},
    {"MaxCPUsPU", 9, nullptr, kGroup},
    {"MaxJobsAccruePerAccount", 17, nullptr, kWaiting},
    {"MaxJobsAccruePA", 15, nullptr, kWaiting},
    {"MaxJobsAccruePerUser", 17, nullptr, kWaiting},
    {"MaxJobsAccruePU", 15, nullptr, kWaiting},
    {"MaxJobsPerAccount", 11, nullptr, kRunning},
    {"MaxJobsPA", 9, nullptr, kRunning},
    {"MaxJobsPerUser", 4, nullptr, kRunning},
    {"MaxJobsPU", 4, nullptr, kRunning},
    {"MaxNodesPerJob", 4, nullptr, kNodes},
    {"MaxNodesPerUser", 8, nullptr, kGroupNodes},
    {"MaxNodesPU", 8, nullptr, kGroupNodes},
    {"MaxSubmitJobsPerAccount", 17, nullptr, kQueued},
    {"MaxSubmitJobsPA", 15, nullptr, kQueued},
    {"MaxSubmitJobsPerUser", 4, nullptr, kQueuedOfUser},
    {"MaxSubmitJobsPU", 4, nullptr, kQueuedOfUser},
    {"MaxTRESPerAccount", 11, nullptr, kGroup},
    {"MaxTRESPA", 9, nullptr, kGroup},
    {"MaxTRESPerJob", 7, nullptr, kJob},
    {"MaxTRESPerNode", 11, nullptr, kPerNode},
    {"MaxTRESPerUser", 11, nullptr, kGroup},
    {"MaxTRESPU", 9, nullptr, kGroup},
    {"MaxTRESMinsPerJob", 8, nullptr, kWall},
    {"MaxTRESRunMinsPerAccount", 16, nullptr, kSpent},
    {"MaxTRESRunMinsPA", 16, nullptr, kSpent},
    {"MaxTRESRunMinsPerUser", 8, nullptr, kSpent},
    {"MaxTRESRunMinsPU", 8, nullptr, kSpent},
    {"MaxWallDurationPerJob", 4, nullptr, kWall},
    {"MinCPUsPerJob", 7, nullptr, kSmall},
    {"MinPrioThresh", 4, nullptr, kWaiting},
    {"MinTRESPerJob", 7, nullptr, kSmall},
    {"PreemptMode", 8, set_preempt_mode},
    {"Preempt", 7, set_preempt_list},
    {"PreemptExemptTime", 8, set_exempt},
    {"Priority", 3, set_priority},
    {"RawUsage", 7, nullptr, kFairShare},
    {"UsageFactor", 6, set_usage_factor},
    {"UsageThreshold", 6, nullptr, kFairShare},
};

const QosKey* find_qos_key(const std::string& word) {
  for (const QosKey& key : kQosKeys)
    if (word.size() >= key.least && lower_case(key.name).starts_with(word)) return &key;
  return nullptr;
}

std::string_view without_quotes(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

Result<void> read_qos_setting(const std::string& word, QosSettings& settings) {
  const std::size_t equals = word.find('=');
  std::string name = lower_case(std::string_view(word).substr(0, equals));
  char sign = '=';
  if (equals != std::string::npos && (name.ends_with('+') || name.ends_with('-'))) {
    sign = name.back();
    name.pop_back();
  }
  const QosKey* key = equals == std::string::npos ? nullptr : find_qos_key(name);
  if (key == nullptr)
    return fail(ErrorCode::usage,
                fmt::format(" Unknown option: {}\n Use keyword 'where' to modify condition", word));
  if (key->set == nullptr)
    return fail(ErrorCode::unsupported, fmt::format(" {}: {}", key->name, key->why));
  if (sign != '=' && key->set != set_preempt_list)
    return fail(
        ErrorCode::usage,
        fmt::format(" {}: it is one value, which = sets; {}= is for lists", key->name, sign));
  return key->set(settings,
                  {key->name, sign, std::string(without_quotes(word.substr(equals + 1)))});
}

std::string shown_settings(const QosSettings& s) {
  std::string out;
  if (s.grace) out += fmt::format("  GraceTime      = {}\n", s.grace->seconds());
  if (s.preempt) {
    std::vector<std::string> names = s.preempt->added;
    for (const std::string& name : s.preempt->removed) names.push_back("-" + name);
    out += fmt::format("  Preempt          = {}\n", fmt::join(names, ","));
  }
  if (s.preemptible)
    out += fmt::format("  PreemptMode      = {}\n",
                       *s.preemptible ? upper_case(enum_name(*s.victim_mode)) : "OFF");
  if (s.exempt) out += fmt::format("  PreemptExemptTime  = {}\n", format_duration_long(*s.exempt));
  if (s.priority) out += fmt::format("  Priority       = {}\n", *s.priority);
  return out;
}

}  // namespace gantry::cli::slurm
