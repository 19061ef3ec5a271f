#include "common/tenancy/use_limits.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::tenancy {
namespace {

constexpr std::int64_t kMostAmount = 1'000'000'000'000;
constexpr std::int64_t kMostCount = 1'000'000'000;
constexpr double kMostFactor = 1'000'000;

constexpr LimitName kLimitNames[] = {
    {"GrpTRES", LimitForm::tres},
    {"GrpTRESMins", LimitForm::tres},
    {"GrpTRESRunMins", LimitForm::tres},
    {"GrpJobs", LimitForm::count},
    {"GrpSubmitJobs", LimitForm::count},
    {"GrpWall", LimitForm::wall},
    {"MaxTRESPerJob", LimitForm::tres},
    {"MaxTRESPerNode", LimitForm::tres},
    {"MaxTRESMinsPerJob", LimitForm::tres},
    {"MaxWallDurationPerJob", LimitForm::wall},
    {"MaxTRESPerUser", LimitForm::tres, true, false},
    {"MaxTRESPerAccount", LimitForm::tres, true, false},
    {"MaxJobsPerUser", LimitForm::count, true, false},
    {"MaxJobsPerAccount", LimitForm::count, true, false},
    {"MaxSubmitJobsPerUser", LimitForm::count, true, false},
    {"MaxSubmitJobsPerAccount", LimitForm::count, true, false},
    {"MinTRESPerJob", LimitForm::tres, true, false},
    {"MaxJobs", LimitForm::count, false, true},
    {"MaxSubmitJobs", LimitForm::count, false, true},
    {"Priority", LimitForm::count, false, true},
    {"QOS", LimitForm::names, false, true},
    {"DefaultQOS", LimitForm::names, false, true},
    {"Flags", LimitForm::flags, true, false},
    {"UsageFactor", LimitForm::factor, true, false},
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

bool is_tres(std::string_view name) {
  if (name == "cpu" || name == "mem" || name == "node" || name == "billing") return true;
  for (const std::string_view kind : {"gres/", "license/"})
    if (name.starts_with(kind) && name.size() > kind.size()) return true;
  return false;
}

tl::unexpected<Error> unknown_tres(std::string_view name) {
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{}\" is no TRES that a limit can be of: use cpu, mem, node, billing, "
                          "gres/NAME, gres/NAME:TYPE or license/NAME",
                          name));
}

// The place of a TRES in Slurm's order.
int rank_of(std::string_view name) {
  if (name == "cpu") return 0;
  if (name == "mem") return 1;
  if (name == "node") return 2;
  if (name == "billing") return 3;
  return name.starts_with("gres/") ? 4 : 5;
}

Result<std::uint32_t> read_count(std::string_view name, std::string_view text) {
  ASSIGN(n, parse_integer(name, text, 0, kMostCount));
  return static_cast<std::uint32_t>(*n);
}

Result<std::int64_t> read_factor(std::string_view text) {
  char* end = nullptr;
  const std::string whole(text);
  const double factor = std::strtod(whole.c_str(), &end);
  if (whole.empty() || *end != '\0' || !(factor >= 0) || factor > kMostFactor)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("UsageFactor is a number from 0 to {:.0f}, not \"{}\"", kMostFactor, text));
  return static_cast<std::int64_t>(std::llround(factor * kUsageFactorUnit));
}

Result<void> read_flags(std::string_view text, UseLimits& out) {
  for (const std::string& word : split_list(text)) {
    const std::string flag = lower(word);
    if (flag == "denyonlimit")
      out.deny_on_limit = true;
    else if (flag == "overpartqos")
      out.over_partition = true;
    else if (flag == "nodecay")
      out.no_decay = true;
    else
      return fail(ErrorCode::invalid_argument,
                  fmt::format("\"{}\" is no flag of a QOS here: there are DenyOnLimit, "
                              "OverPartQOS and NoDecay",
                              word));
  }
  return {};
}

struct Members {
  TresAmounts* tres = nullptr;
  std::optional<std::uint32_t>* count = nullptr;
  std::optional<Duration>* wall = nullptr;
};
Members members_of(UseLimits& l, std::string_view name) {
  if (name == "GrpTRES") return {&l.group};
  if (name == "GrpTRESMins") return {&l.group_minutes};
  if (name == "GrpTRESRunMins") return {&l.group_running_minutes};
  if (name == "MaxTRESPerJob") return {&l.job};
  if (name == "MaxTRESPerNode") return {&l.node};
  if (name == "MaxTRESMinsPerJob") return {&l.job_minutes};
  if (name == "MaxTRESPerUser") return {&l.user};
  if (name == "MaxTRESPerAccount") return {&l.account};
  if (name == "MinTRESPerJob") return {&l.least};
  if (name == "GrpJobs") return {nullptr, &l.group_jobs};
  if (name == "GrpSubmitJobs") return {nullptr, &l.group_submits};
  if (name == "MaxJobsPerUser" || name == "MaxJobs") return {nullptr, &l.user_jobs};
  if (name == "MaxJobsPerAccount") return {nullptr, &l.account_jobs};
  if (name == "MaxSubmitJobsPerUser" || name == "MaxSubmitJobs") return {nullptr, &l.user_submits};
  if (name == "MaxSubmitJobsPerAccount") return {nullptr, &l.account_submits};
  if (name == "Priority") return {nullptr, &l.priority};
  if (name == "GrpWall") return {nullptr, nullptr, &l.group_wall};
  if (name == "MaxWallDurationPerJob") return {nullptr, nullptr, &l.wall};
  return {};
}

Result<void> read_one(const LimitName& name, const std::string& text, UseLimits& out) {
  if (name.form == LimitForm::flags) return read_flags(text, out);
  if (name.form == LimitForm::factor) {
    ASSIGN(factor, read_factor(text));
    out.usage_factor = *factor;
    return {};
  }
  if (name.form == LimitForm::names) {
    if (name.name == "QOS")
      out.qos = split_list(text);
    else
      out.default_qos = text;
    return {};
  }
  const Members to = members_of(out, name.name);
  if (name.form == LimitForm::tres) {
    ASSIGN(amounts, read_tres(text));
    for (const auto& [tres, amount] : *amounts)
      if (amount < 0)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("{}: leave {} out for no limit", name.name, tres));
    *to.tres = std::move(*amounts);
  } else if (name.form == LimitForm::count) {
    ASSIGN(count, read_count(name.name, text));
    *to.count = *count;
  } else {
    ASSIGN(wall, parse_duration(text));
    *to.wall = *wall;
  }
  return {};
}

std::string format_factor(std::int64_t factor) {
  return fmt::format("{}.{:06}", factor / kUsageFactorUnit, factor % kUsageFactorUnit);
}

constexpr std::string_view kFlagNames[] = {"DenyOnLimit", "NoDecay", "OverPartQOS"};

}  // namespace

const LimitName* limit_named(std::string_view name) {
  for (const LimitName& one : kLimitNames)
    if (one.name == name) return &one;
  return nullptr;
}

Result<UseLimits> read_use_limits(const LimitTexts& texts) {
  UseLimits out;
  for (const auto& [key, text] : texts) {
    const LimitName* name = limit_named(key);
    if (name == nullptr)
      return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is no limit", key));
    if (auto done = read_one(*name, text, out); !done)
      return fail(done.error().code, fmt::format("{}: {}", key, done.error().message));
  }
  return out;
}

Result<TresAmounts> read_tres(std::string_view text) {
  TresAmounts out;
  for (const std::string& item : split_list(text)) {
    const std::size_t equals = item.rfind('=');
    const std::string name = lower(std::string_view(item).substr(0, equals));
    if (!is_tres(name)) return unknown_tres(name);
    if (equals == std::string::npos)
      return fail(ErrorCode::invalid_argument, fmt::format("{}: write {}=AMOUNT", item, name));
    const std::string value = item.substr(equals + 1);
    if (value == "-1") {
      out[name] = -1;
    } else if (name == "mem") {
      ASSIGN(bytes, parse_memory(value));
      out[name] = *bytes >> 20;
    } else {
      ASSIGN(n, parse_integer(name, value, 0, kMostAmount));
      out[name] = *n;
    }
  }
  return out;
}

std::string format_tres(const TresAmounts& amounts) {
  std::vector<std::pair<std::string, std::int64_t>> items(amounts.begin(), amounts.end());
  std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
    return rank_of(a.first) < rank_of(b.first);
  });
  std::string out;
  for (const auto& [name, amount] : items)
    out += fmt::format(
        "{}{}={}", out.empty() ? "" : ",", name,
        name == "mem" && amount > 0 ? format_memory(amount << 20) : std::to_string(amount));
  return out;
}

Result<void> set_limit_text(LimitTexts& texts, const LimitName& name, std::string_view value) {
  const std::string key(name.name);
  if (name.form == LimitForm::tres && value != "-1") {
    ASSIGN(changes, read_tres(value));
    TresAmounts now;
    if (const auto it = texts.find(key); it != texts.end())
      now = read_tres(it->second).value_or(TresAmounts{});
    for (const auto& [tres, amount] : *changes)
      if (amount < 0)
        now.erase(tres);
      else
        now[tres] = amount;
    texts.erase(key);
    if (!now.empty()) texts[key] = format_tres(now);
    return {};
  }
  if (value == "-1" || value.empty()) {
    texts.erase(key);
    return {};
  }
  UseLimits read;
  if (auto done = read_one(name, std::string(value), read); !done) return done;
  texts.erase(key);
  if (name.form == LimitForm::wall) {
    if (const auto wall = *members_of(read, key).wall) texts[key] = format_duration_long(*wall);
  } else if (name.form == LimitForm::factor) {
    if (read.usage_factor != kUsageFactorUnit) texts[key] = format_factor(read.usage_factor);
  } else if (name.form == LimitForm::flags) {
    const bool set[] = {read.deny_on_limit, read.no_decay, read.over_partition};
    std::string flags;
    for (std::size_t i = 0; i < std::size(set); ++i)
      if (set[i]) flags += fmt::format("{}{}", flags.empty() ? "" : ",", kFlagNames[i]);
    texts[key] = flags;
  } else {
    texts[key] = std::string(value);
  }
  return {};
}

LimitTexts read_limit_row(std::string_view row) {
  LimitTexts out;
  while (!row.empty()) {
    const std::size_t end = std::min(row.find('|'), row.size());
    const std::string_view item = row.substr(0, end);
    if (const std::size_t equals = item.find('='); equals != std::string_view::npos)
      out[std::string(item.substr(0, equals))] = item.substr(equals + 1);
    row.remove_prefix(std::min(end + 1, row.size()));
  }
  return out;
}

std::string format_limit_row(const LimitTexts& texts) {
  std::string out;
  for (const auto& [key, value] : texts)
    out += fmt::format("{}{}={}", out.empty() ? "" : "|", key, value);
  return out;
}

Result<std::map<std::string, double>> read_billing_weights(std::string_view text) {
  std::map<std::string, double> out;
  for (const std::string& item : split_list(text)) {
    const std::size_t equals = item.rfind('=');
    const std::string name = lower(std::string_view(item).substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    // Energy is a TRES of Slurm that nothing measures here, so it adds nothing to a bill.
    if (name != "energy" && (!is_tres(name) || name == "billing")) return unknown_tres(name);
    char* end = nullptr;
    double weight = std::strtod(value.c_str(), &end);
    const std::string_view unit(end);
    if (value.empty() || end == value.c_str() || !std::isfinite(weight) || unit.size() > 1 ||
        (!unit.empty() && name != "mem"))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("\"{}\" is no weight: write {}=NUMBER{}", item, name,
                              name == "mem" ? " with K, M, G or T" : ""));
    if (!unit.empty()) {
      const std::size_t step = std::string_view("kmgt").find(lower(unit));
      if (step == std::string_view::npos)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("\"{}\": the unit of a weight of memory is K, M, G or T", item));
      weight *= std::pow(1024.0, 1.0 - static_cast<double>(step));  // the weight is for each MB
    }
    out[name] = weight;
  }
  return out;
}

std::int64_t billing_of(const TresAmounts& held, const std::string& weights) {
  const auto amount = [&](const std::string& name) {
    const auto it = held.find(name);
    return it == held.end() ? 0.0 : static_cast<double>(it->second);
  };
  const auto read = read_billing_weights(weights);
  if (!read || read->empty()) return static_cast<std::int64_t>(amount("cpu"));
  double sum = 0;
  for (const auto& [name, weight] : *read) sum += weight * amount(name);
  return static_cast<std::int64_t>(std::max(0.0, sum));
}

}  // namespace gantry::tenancy
