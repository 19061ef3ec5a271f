#include "cli/slurm/accounts/other_keys.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "cli/option.h"
#include "cli/slurm/format.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::slurm {
namespace {

constexpr std::int64_t kMostOfLimit = 1'000'000'000'000;
constexpr std::size_t kMostText = 1024;

enum class Form : std::uint8_t { text, word, count, part, tres, wall, share, qos, default_qos };

struct AssociationKey {
  std::string_view name;
  std::size_t least;  // letters that are enough
  Form form;
  std::string_view list = {}, resource = {};  // of Form::part: the list, and the resource in it
  bool inherited = false;
};
// In the order in which Slurm looks for them.
constexpr AssociationKey kKeys[] = {
    {"AdminLevel", 2, Form::word},
    {"DefaultAccount", 8, Form::text},
    {"DefaultQOS", 8, Form::default_qos, {}, {}, true},
    {"Description", 3, Form::text},
    {"FairShare", 1, Form::share},
    {"Shares", 2, Form::share},
    {"GrpCPUMins", 7, Form::part, "GrpTRESMins", "cpu"},
    {"GrpCPURunMins", 7, Form::part, "GrpTRESRunMins", "cpu"},
    {"GrpCPUs", 7, Form::part, "GrpTRES", "cpu"},
    {"GrpJobs", 4, Form::count},
    {"GrpJobsAccrue", 8, Form::count},
    {"GrpMemory", 4, Form::part, "GrpTRES", "mem"},
    {"GrpNodes", 4, Form::part, "GrpTRES", "node"},
    {"GrpSubmitJobs", 4, Form::count},
    {"GrpTRES", 7, Form::tres},
    {"GrpTRESMins", 8, Form::tres},
    {"GrpTRESRunMins", 8, Form::tres},
    {"GrpWall", 4, Form::wall},
    {"MaxCPUMinsPerJob", 7, Form::part, "MaxTRESMins", "cpu"},
    {"MaxCPUsPerJob", 7, Form::part, "MaxTRES", "cpu"},
    {"MaxJobs", 4, Form::count, {}, {}, true},
    {"MaxJobsAccrue", 8, Form::count, {}, {}, true},
    {"MaxNodesPerJob", 4, Form::part, "MaxTRES", "node"},
    {"MaxSubmitJobs", 4, Form::count, {}, {}, true},
    {"MaxTRES", 7, Form::tres, {}, {}, true},
    {"MaxTRESPerJob", 8, Form::tres, "MaxTRES"},
    {"MaxTRESPerNode", 11, Form::tres, {}, {}, true},
    {"MaxTRESMins", 8, Form::tres, {}, {}, true},
    {"MaxTRESMinsPerJob", 12, Form::tres, "MaxTRESMins"},
    {"MaxWall", 4, Form::wall, {}, {}, true},
    {"MaxWallDurationPerJob", 8, Form::wall, "MaxWall"},
    {"MinPrioThreshold", 4, Form::count, {}, {}, true},
    {"Organization", 1, Form::text},
    {"Parent", 3, Form::word},
    {"Priority", 3, Form::count, {}, {}, true},
    {"QOS", 1, Form::qos, {}, {}, true},
    {"QosLevel", 4, Form::qos, "QOS"},
};

const AssociationKey* find_key(std::string_view word) {
  for (const AssociationKey& key : kKeys)
    if (word.size() >= key.least && lower_case(key.name).starts_with(word)) return &key;
  return nullptr;
}

// A key without the sign of "qos+" and "qos-".
std::pair<std::string, char> without_sign(const std::string& key) {
  if (!key.empty() && (key.back() == '+' || key.back() == '-'))
    return {key.substr(0, key.size() - 1), key.back()};
  return {key, '='};
}

tl::unexpected<Error> bad(const AssociationKey& key, std::string_view value) {
  return fail(ErrorCode::usage, fmt::format(" Invalid value for {} ({})", key.name, value));
}

void put_or_erase(OtherRow& row, std::string_view key, std::string value) {
  if (value.empty())
    row.erase(std::string(key));
  else
    row[std::string(key)] = std::move(value);
}

// Resources in the order of Slurm's numbers; what is not named here follows.
std::size_t rank_of(std::string_view resource) {
  static constexpr std::array<std::string_view, 6> kOrder = {"cpu",  "mem",     "energy",
                                                             "node", "billing", "fs/disk"};
  return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), resource) -
                                  kOrder.begin());
}

using TresItem = std::pair<std::string, std::string>;
std::vector<TresItem> tres_items(std::string_view list) {
  std::vector<TresItem> out;
  for (const std::string& item : split_list(list)) {
    const std::size_t equals = item.rfind('=');
    out.emplace_back(item.substr(0, equals),
                     equals == std::string::npos ? "" : item.substr(equals + 1));
  }
  return out;
}

std::string joined_tres(std::vector<TresItem> items) {
  std::sort(items.begin(), items.end(), [](const TresItem& a, const TresItem& b) {
    return std::pair(rank_of(a.first), a.first) < std::pair(rank_of(b.first), b.first);
  });
  std::string out;
  for (const auto& [name, value] : items)
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, value);
  return out;
}

// The items of `change` replace those of `list`; one of -1 is taken out.
std::string merged_tres(std::string_view list, const std::vector<TresItem>& change) {
  std::vector<TresItem> out = tres_items(list);
  for (const TresItem& item : change) {
    std::erase_if(out, [&](const TresItem& old) { return old.first == item.first; });
    if (item.second != "-1") out.push_back(item);
  }
  return joined_tres(std::move(out));
}

bool known_resource(std::string_view name) {
  return rank_of(name) < 6 || name.starts_with("gres/") || name.starts_with("license/");
}

Result<void> put_tres(OtherRow& row, const AssociationKey& key, const std::string& value) {
  const std::string name(key.list.empty() ? key.name : key.list);
  if (value.empty() || value == "-1") {
    row.erase(name);
    return {};
  }
  std::vector<TresItem> items = tres_items(value);
  for (auto& [resource, amount] : items) {
    if (!known_resource(resource)) return bad(key, value);
    if (resource == "mem" && amount != "-1") {
      const bool plain = amount.find_first_not_of("0123456789") == std::string::npos;
      const auto bytes = parse_memory(plain ? amount + "M" : amount);
      if (!bytes) return bad(key, value);
      amount = fmt::format("{}M", *bytes >> 20);
    } else if (!parse_integer(key.name, amount, -1, kMostOfLimit)) {
      return bad(key, value);
    }
  }
  put_or_erase(row, name, merged_tres(row[name], items));
  return {};
}

Result<void> put_wall(OtherRow& row, const AssociationKey& key, const std::string& value) {
  const std::string name(key.list.empty() ? key.name : key.list);
  if (value.empty() || value == "-1") {
    row.erase(name);
    return {};
  }
  const auto time = parse_duration(value);
  if (!time || !*time)
    return fail(ErrorCode::usage, fmt::format(" Bad {} time format: {}", name, value));
  row[name] = format_duration_long(**time);
  return {};
}

// Whether the names of a list are all marked with + or -: a change of the list above.
bool is_change(std::string_view list) {
  return !list.empty() && (list.front() == '+' || list.front() == '-');
}

std::vector<std::string> applied(const std::string& list, const std::vector<std::string>& above) {
  auto change = parse_name_list(list, '=');
  return change ? change->applied_to(above) : above;
}

// A list of QOS is either whole, or what is added to and taken from the list above. An addition to
// a whole list makes another whole list.
Result<void> put_qos_list(OtherRow& row, const std::string& value, char sign, const QosBook& qos) {
  const auto change = parse_name_list(value, sign);
  if (!change) return tl::unexpected(change.error());
  for (const auto* names : {&change->added, &change->removed})
    if (const auto known = qos.check_known(*names); !known) return known;
  const std::string now = row["QOS"];
  if (change->replaces || (!now.empty() && !is_change(now))) {
    const auto list = change->applied_to(split_list(now));
    put_or_erase(row, "QOS", fmt::format("{}", fmt::join(list, ",")));
    return {};
  }
  std::map<std::string, char> marks;  // by name
  for (const std::string& word : split_list(now)) marks[word.substr(1)] = word.front();
  for (const std::string& name : change->added) marks[name] = '+';
  for (const std::string& name : change->removed) marks[name] = '-';
  std::string out;
  for (const auto& [name, mark] : marks)
    out += fmt::format("{}{}{}", out.empty() ? "" : ",", mark, name);
  put_or_erase(row, "QOS", out);
  return {};
}

Result<void> put_admin_level(OtherRow& row, const AssociationKey& key, const std::string& value) {
  const std::string wanted = lower_case(value);
  for (const std::string_view level : {"None", "Operator", "Administrator"})
    if (!wanted.empty() && lower_case(level).starts_with(wanted)) {
      row["AdminLevel"] = level;
      return {};
    }
  return bad(key, value);
}

Result<void> put_number(OtherRow& row, const AssociationKey& key, const std::string& value) {
  const bool share = key.form == Form::share;
  const std::string name(share ? "FairShare" : key.name);
  if (value.empty() || value == "-1") {
    row.erase(name);
    return {};
  }
  const bool parent = share && lower_case(value) == "parent";
  if (!parent && !parse_integer(key.name, value, 0, kMostOfLimit)) return bad(key, value);
  row[name] = parent ? "parent" : value;
  return {};
}

Result<void> put_text(OtherRow& row, const AssociationKey& key, const std::string& value) {
  if (value.size() > kMostText || value.find_first_of("|\n") != std::string::npos)
    return bad(key, value);
  put_or_erase(row, key.name == "Parent" ? "parent" : key.name, value);
  return {};
}

}  // namespace

std::optional<SettingSubject> subject_of(const RawSetting& setting) {
  const AssociationKey* key = find_key(without_sign(setting.key).first);
  if (key == nullptr) return std::nullopt;
  static constexpr std::array<std::string_view, 4> kItself = {"AdminLevel", "DefaultAccount",
                                                              "Description", "Organization"};
  return std::find(kItself.begin(), kItself.end(), key->name) == kItself.end()
             ? SettingSubject::association
             : SettingSubject::itself;
}

Result<void> put_setting(OtherRow& row, const RawSetting& setting, const QosBook& qos) {
  const auto [word, sign] = without_sign(setting.key);
  const AssociationKey* key = find_key(word);
  const bool is_list = key != nullptr && key->form == Form::qos;
  if (key == nullptr || (sign != '=' && !is_list))
    return fail(ErrorCode::usage,
                fmt::format(" Unknown option: {}={}", setting.key, setting.value));
  switch (key->form) {
    case Form::text: return put_text(row, *key, setting.value);
    case Form::word:
      if (key->name == "AdminLevel") return put_admin_level(row, *key, setting.value);
      return put_text(row, *key, setting.value);
    case Form::count:
    case Form::share: return put_number(row, *key, setting.value);
    case Form::part: {
      const std::string amount = setting.value.empty() ? "-1" : setting.value;
      return put_tres(row, {key->name, 0, Form::tres, key->list},
                      fmt::format("{}={}", key->resource, amount));
    }
    case Form::tres: return put_tres(row, *key, setting.value);
    case Form::wall: return put_wall(row, *key, setting.value);
    case Form::qos: return put_qos_list(row, setting.value, sign, qos);
    case Form::default_qos:
      if (setting.value != "-1" && !setting.value.empty())
        if (const auto known = qos.check_known({setting.value}); !known) return known;
      put_or_erase(row, "DefaultQOS", setting.value == "-1" ? "" : setting.value);
      return {};
  }
  return {};
}

OtherRow inherited(const OtherRow& row, const OtherRow& above, const QosBook& qos) {
  OtherRow out = row;
  const auto value = [](const OtherRow& from, std::string_view key) {
    const auto it = from.find(std::string(key));
    return it == from.end() ? std::string() : it->second;
  };
  for (const AssociationKey& key : kKeys) {
    if (!key.inherited) continue;
    const std::string own = value(row, key.name), higher = value(above, key.name);
    if (key.form == Form::tres)
      put_or_erase(out, key.name, merged_tres(higher, tres_items(own)));
    else if (key.form == Form::qos) {
      std::vector<std::string> list = is_change(own) ? applied(own, split_list(higher))
                                                     : split_list(own.empty() ? higher : own);
      std::erase_if(list, [&](const std::string& name) { return !qos.check_known({name}); });
      put_or_erase(out, key.name, fmt::format("{}", fmt::join(list, ",")));
    } else if (own.empty())
      put_or_erase(out, key.name, higher);
  }
  return out;
}

std::string amount_of(std::string_view tres, std::string_view resource) {
  for (const auto& [name, amount] : tres_items(tres)) {
    if (name != resource) continue;
    if (name != "mem") return amount;
    const auto bytes = parse_memory(amount);
    return bytes ? std::to_string(*bytes >> 20) : amount;
  }
  return "";
}

}  // namespace gantry::cli::slurm
