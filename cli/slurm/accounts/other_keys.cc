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

enum class KeyForm : std::uint8_t { text, word, count, part, tres, wall, share, qos, default_qos };

struct AssociationKey {
  std::string_view name;
  std::size_t least;  // shortest abbreviation, in letters
  KeyForm form;
  std::string_view list = {}, resource = {};  // of KeyForm::part: the list, and the resource in it
  bool inherited = false;
};
// In the order in which Slurm searches them.
constexpr AssociationKey kAssociationKeys[] = {
    {"AdminLevel", 2, KeyForm::word},
    {"DefaultAccount", 8, KeyForm::text},
    {"DefaultQOS", 8, KeyForm::default_qos, {}, {}, true},
    {"Description", 3, KeyForm::text},
    {"FairShare", 1, KeyForm::share},
    {"Shares", 2, KeyForm::share},
    {"GrpCPUMins", 7, KeyForm::part, "GrpTRESMins", "cpu"},
    {"GrpCPURunMins", 7, KeyForm::part, "GrpTRESRunMins", "cpu"},
    {"GrpCPUs", 7, KeyForm::part, "GrpTRES", "cpu"},
    {"GrpJobs", 4, KeyForm::count},
    {"GrpJobsAccrue", 8, KeyForm::count},
    {"GrpMemory", 4, KeyForm::part, "GrpTRES", "mem"},
    {"GrpNodes", 4, KeyForm::part, "GrpTRES", "node"},
    {"GrpSubmitJobs", 4, KeyForm::count},
    {"GrpTRES", 7, KeyForm::tres},
    {"GrpTRESMins", 8, KeyForm::tres},
    {"GrpTRESRunMins", 8, KeyForm::tres},
    {"GrpWall", 4, KeyForm::wall},
    {"MaxCPUMinsPerJob", 7, KeyForm::part, "MaxTRESMins", "cpu"},
    {"MaxCPUsPerJob", 7, KeyForm::part, "MaxTRES", "cpu"},
    {"MaxJobs", 4, KeyForm::count, {}, {}, true},
    {"MaxJobsAccrue", 8, KeyForm::count, {}, {}, true},
    {"MaxNodesPerJob", 4, KeyForm::part, "MaxTRES", "node"},
    {"MaxSubmitJobs", 4, KeyForm::count, {}, {}, true},
    {"MaxTRES", 7, KeyForm::tres, {}, {}, true},
    {"MaxTRESPerJob", 8, KeyForm::tres, "MaxTRES"},
    {"MaxTRESPerNode", 11, KeyForm::tres, {}, {}, true},
    {"MaxTRESMins", 8, KeyForm::tres, {}, {}, true},
    {"MaxTRESMinsPerJob", 12, KeyForm::tres, "MaxTRESMins"},
    {"MaxWall", 4, KeyForm::wall, {}, {}, true},
    {"MaxWallDurationPerJob", 8, KeyForm::wall, "MaxWall"},
    {"MinPrioThreshold", 4, KeyForm::count, {}, {}, true},
    {"Organization", 1, KeyForm::text},
    {"Parent", 3, KeyForm::word},
    {"Priority", 3, KeyForm::count, {}, {}, true},
    {"QOS", 1, KeyForm::qos, {}, {}, true},
    {"QosLevel", 4, KeyForm::qos, "QOS"},
};

const AssociationKey* find_key(std::string_view word) {
  for (const AssociationKey& key : kAssociationKeys)
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

using TresAmount = std::pair<std::string, std::string>;
std::vector<TresAmount> tres_items(std::string_view list) {
  std::vector<TresAmount> out;
  for (const std::string& item : split_list(list)) {
    const std::size_t equals = item.rfind('=');
    out.emplace_back(item.substr(0, equals),
                     equals == std::string::npos ? "" : item.substr(equals + 1));
  }
  return out;
}

std::string joined_tres(std::vector<TresAmount> items) {
  std::sort(items.begin(), items.end(), [](const TresAmount& a, const TresAmount& b) {
    return std::pair(rank_of(a.first), a.first) < std::pair(rank_of(b.first), b.first);
  });
  std::string out;
  for (const auto& [name, value] : items)
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, value);
  return out;
}

// The items of `change` replace those of `list`; an item of -1 is removed.
std::string merged_tres(std::string_view list, const std::vector<TresAmount>& change) {
  std::vector<TresAmount> out = tres_items(list);
  for (const TresAmount& item : change) {
    std::erase_if(out, [&](const TresAmount& old) { return old.first == item.first; });
    if (item.second != "-1") out.push_back(item);
  }
  return joined_tres(std::move(out));
}

bool known_resource(std::string_view name) {
  return rank_of(name) < 6 || name.starts_with("gres/") || name.starts_with("license/");
}

Result<void> put_tres_list(OtherRow& row, const AssociationKey& key, const std::string& value) {
  const std::string name(key.list.empty() ? key.name : key.list);
  if (value.empty() || value == "-1") {
    row.erase(name);
    return {};
  }
  std::vector<TresAmount> items = tres_items(value);
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

// Whether all names of a list are marked with + or -, so that they change the list above.
bool is_change(std::string_view list) {
  return !list.empty() && (list.front() == '+' || list.front() == '-');
}

std::vector<std::string> applied(const std::string& list, const std::vector<std::string>& above) {
  auto change = parse_name_list(list, '=');
  return change ? change->applied_to(above) : above;
}

// A list of QOS is either complete, or a change of the list above. A change of a complete list
// makes another complete list.
Result<void> put_qos_list(OtherRow& row, const std::string& value, char sign, const QosBook& qos) {
  ASSIGN(change, parse_name_list(value, sign));
  for (const auto* names : {&change->added, &change->removed}) TRY(qos.check_known(*names));
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
  const bool share = key.form == KeyForm::share;
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

Result<void> put_free_text(OtherRow& row, const AssociationKey& key, const std::string& value) {
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
  const bool is_list = key != nullptr && key->form == KeyForm::qos;
  if (key == nullptr || (sign != '=' && !is_list))
    return fail(ErrorCode::usage,
                fmt::format(" Unknown option: {}={}", setting.key, setting.value));
  switch (key->form) {
    case KeyForm::text: return put_free_text(row, *key, setting.value);
    case KeyForm::word:
      if (key->name == "AdminLevel") return put_admin_level(row, *key, setting.value);
      return put_free_text(row, *key, setting.value);
    case KeyForm::count:
    case KeyForm::share: return put_number(row, *key, setting.value);
    case KeyForm::part: {
      const std::string amount = setting.value.empty() ? "-1" : setting.value;
      return put_tres_list(row, {key->name, 0, KeyForm::tres, key->list},
                           fmt::format("{}={}", key->resource, amount));
    }
    case KeyForm::tres: return put_tres_list(row, *key, setting.value);
    case KeyForm::wall: return put_wall(row, *key, setting.value);
    case KeyForm::qos: return put_qos_list(row, setting.value, sign, qos);
    case KeyForm::default_qos:
      if (setting.value != "-1" && !setting.value.empty()) TRY(qos.check_known({setting.value}));
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
  for (const AssociationKey& key : kAssociationKeys) {
    if (!key.inherited) continue;
    const std::string own = value(row, key.name), higher = value(above, key.name);
    if (key.form == KeyForm::tres)
      put_or_erase(out, key.name, merged_tres(higher, tres_items(own)));
    else if (key.form == KeyForm::qos) {
      std::vector<std::string> list = is_change(own) ? applied(own, split_list(higher))
                                                     : split_list(own.empty() ? higher : own);
      std::erase_if(list, [&](const std::string& name) { return !qos.check_known({name}); });
      put_or_erase(out, key.name, fmt::format("{}", fmt::join(list, ",")));
    } else if (own.empty())
      put_or_erase(out, key.name, higher);
  }
  return out;
}

std::string tres_amount(std::string_view tres, std::string_view resource) {
  for (const auto& [name, amount] : tres_items(tres)) {
    if (name != resource) continue;
    if (name != "mem") return amount;
    const auto bytes = parse_memory(amount);
    return bytes ? std::to_string(*bytes >> 20) : amount;
  }
  return "";
}

}  // namespace gantry::cli::slurm
