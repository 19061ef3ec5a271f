// The keys of Slurm's QOS in the order in which Slurm looks for them, each with its shortest
// abbreviation. The table has which keys set something in a priority class, and why the others do
// not.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/slurm/accounts/account_limits.h"
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

// In Slurm, -1 restores a QOS's initial value.
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
  ASSIGN(list, parse_name_list(word.value, word.sign));
  s.preempt = std::move(*list);
  return {};
}

Result<void> set_usage_factor(QosSettings& s, const QosWord& word) {
  std::string value = word.value == "-1" ? "1" : word.value;
  tenancy::LimitTexts scratch;
  const auto* name = tenancy::limit_named("UsageFactor");
  if (!tenancy::set_limit_text(scratch, *name, value)) return bad_value(word);
  s.limits.emplace_back("UsageFactor", std::move(value));
  return {};
}

Result<void> set_flags(QosSettings& s, const QosWord& word) {
  ASSIGN(list, parse_name_list(word.value, word.sign));
  for (const auto* names : {&list->added, &list->removed})
    for (const std::string& name : *names)
      if (const auto read = tenancy::read_use_limits({{"Flags", name}}); !read)
        return fail(ErrorCode::unsupported, fmt::format(" {}", read.error().message));
  s.flags = std::move(*list);
  return {};
}

Result<void> set_raw_usage(QosSettings& s, const QosWord& word) {
  if (word.value != "0" && word.value != "0.0")
    return fail(ErrorCode::usage, " RawUsage: it can be set to 0 only");
  s.reset_usage = true;
  return {};
}

constexpr std::string_view kWaiting =
    "how waiting counts is age_step of a PriorityClass: gtenant apply";
constexpr std::string_view kFairShare =
    "the fair share orders jobs by what their account has used, and keeps none waiting";
constexpr std::string_view kRunMinutes =
    "minutes that running jobs may still use are limited for a whole QOS: GrpTRESRunMins";
constexpr std::string_view kFactor = "a limit counts the same in every QOS: set it as it shall be";
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
    {"Flags", 2, set_flags},
    {"GraceTime", 3, set_grace},
    {"GrpJobsAccrue", 8, nullptr, kWaiting},
    {"LimitFactor", 6, nullptr, kFactor},
    {"MaxJobsAccruePerAccount", 17, nullptr, kWaiting},
    {"MaxJobsAccruePA", 15, nullptr, kWaiting},
    {"MaxJobsAccruePerUser", 17, nullptr, kWaiting},
    {"MaxJobsAccruePU", 15, nullptr, kWaiting},
    {"MaxTRESRunMinsPerAccount", 16, nullptr, kRunMinutes},
    {"MaxTRESRunMinsPA", 16, nullptr, kRunMinutes},
    {"MaxTRESRunMinsPerUser", 8, nullptr, kRunMinutes},
    {"MaxTRESRunMinsPU", 8, nullptr, kRunMinutes},
    {"MinPrioThresh", 4, nullptr, kWaiting},
    {"PreemptMode", 8, set_preempt_mode},
    {"Preempt", 7, set_preempt_list},
    {"PreemptExemptTime", 8, set_exempt},
    {"Priority", 3, set_priority},
    {"RawUsage", 7, set_raw_usage},
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
  const std::string value(without_quotes(equals == std::string::npos
                                             ? std::string_view()
                                             : std::string_view(word).substr(equals + 1)));
  if (const LimitKey* limit = qos_limit_key(name);
      limit != nullptr && equals != std::string::npos) {
    tenancy::LimitTexts scratch;
    TRY(put_limit(scratch, *limit, value));
    settings.limits.emplace_back(limit->limit, limit_value(*limit, value));
    return {};
  }
  const QosKey* key = equals == std::string::npos ? nullptr : find_qos_key(name);
  if (key == nullptr)
    return fail(ErrorCode::usage,
                fmt::format(" Unknown option: {}\n Use keyword 'where' to modify condition", word));
  if (key->set == nullptr && value == "-1") return {};  // there is no value to remove
  if (key->set == nullptr)
    return fail(ErrorCode::unsupported, fmt::format(" {}: {}", key->name, key->why));
  if (sign != '=' && key->set != set_preempt_list && key->set != set_flags)
    return fail(
        ErrorCode::usage,
        fmt::format(" {}: it is one value, which = sets; {}= is for lists", key->name, sign));
  return key->set(settings, {key->name, sign, value});
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
  for (const auto& [name, value] : s.limits) out += fmt::format("  {:<14} = {}\n", name, value);
  return out;
}

}  // namespace gantry::cli::slurm
