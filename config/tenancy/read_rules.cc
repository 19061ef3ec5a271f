#include "config/tenancy/read_rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "common/policy/pattern.h"
#include "common/time/time_zone.h"
#include "config/nearest.h"
#include "config/tenancy/read_parts.h"
#include "config/values.h"

namespace gantry::tenancy {
namespace {

Result<std::vector<std::string>> read_accounts(const Value& value, bool groups) {
  ASSIGN(items, value.is_list() ? value.items() : std::vector<Value>{value});
  std::vector<std::string> out;
  for (const Value& item : *items) {
    ASSIGN(text, item.text());
    if (!(groups ? is_group_name(*text) : is_account_name(*text)))
      return item.wrong(fmt::format(
          "\"{}\" is not the name of a {}; use up to 64 letters, digits, '-', '_', '.' and '@'{}",
          *text, groups ? "group" : "user", groups ? ", after \"oidc:\" if tokens tell it" : ""));
    if (std::find(out.begin(), out.end(), *text) != out.end())
      return item.wrong(fmt::format("names `{}` twice", *text));
    out.push_back(std::move(*text));
  }
  return out;
}

// The ends of grants of one role, by name of the user or group.
Result<void> read_ends(const Value& value, std::span<Grant> grants) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    ASSIGN(end, read_utc(entry.value));
    bool named = false;
    for (Grant& grant : grants) {
      if (grant.user != entry.key && grant.group != entry.key) continue;
      grant.until = *end;
      named = true;
    }
    if (!named)
      return entry.wrong(
          value.path(),
          fmt::format("`{}` is neither one of the users nor one of the groups of this role",
                      entry.key));
  }
  return {};
}

// The grants of one role.
Result<void> read_grants_of(const Value& value, const Grant& of, std::vector<Grant>& out) {
  ASSIGN(keys, value.entries());
  const std::size_t first = out.size();
  for (const Value::Entry& key : *keys) {
    if (key.key == "until") continue;
    if (key.key != "users" && key.key != "groups")
      return key.wrong(
          value.path(),
          fmt::format("unknown key `{}`; a role has users, groups and until", key.key));
    ASSIGN(accounts, read_accounts(key.value, key.key == "groups"));
    for (std::string& name : *accounts) {
      Grant& grant = out.emplace_back(of);
      (key.key == "users" ? grant.user : grant.group) = std::move(name);
    }
  }
  for (const Value::Entry& key : *keys)
    if (key.key == "until")
      if (auto done = read_ends(key.value, std::span(out).subspan(first)); !done) return done;
  return {};
}

}  // namespace

Result<Instant> read_utc(const Value& value) {
  ASSIGN(text, value.text());
  const auto seconds = parse_local_time(*text);
  if (!seconds) return value.wrong(seconds.error());
  return Instant{*seconds * 1'000'000};
}

std::string show_utc(Instant t) {
  const std::int64_t seconds = t.us / 1'000'000, day = 86'400;
  const CivilDay date = civil_of(seconds / day);
  std::string out = fmt::format("{:04}-{:02}-{:02}", date.year, date.month, date.day);
  if (const std::int64_t rest = seconds % day; rest != 0)
    out += fmt::format("T{:02}:{:02}", rest / 3600, rest % 3600 / 60);
  return out;
}

Result<void> read_roles(const Value& value, std::vector<Grant>& out) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    Grant of;
    const auto& names = enum_names(Role{});
    const auto built_in = std::find_if(names.begin(), names.end(),
                                       [&](const auto& row) { return row.second == entry.key; });
    if (built_in != names.end()) {
      of.role = built_in->first;
    } else if (config::is_word(entry.key)) {
      of.custom = entry.key;  // its base comes from the document of the role
      of.role = Role::viewer;
    } else {
      return entry.wrong(value.path(), not_a_name(entry.key));
    }
    if (auto done = read_grants_of(entry.value, of, out); !done) return done;
  }
  return {};
}

Result<void> read_label_rules(const Value& value, std::vector<LabelRule>& out) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    LabelRule& rule = out.emplace_back();
    rule.key = entry.key;
    ASSIGN(keys, entry.value.entries());
    for (const Value::Entry& key : *keys) {
      if (key.key == "values") {
        ASSIGN(values, key.value.texts());
        rule.values = std::move(*values);
      } else if (key.key == "default") {
        ASSIGN(text, key.value.text());
        rule.value = std::move(*text);
      } else {
        return key.wrong(entry.value.path(),
                         fmt::format("unknown key `{}`; a label has values and default", key.key));
      }
    }
  }
  return {};
}

Result<void> read_patterns(const Value& value, std::map<std::string, std::string>& out) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    ASSIGN(text, entry.value.text());
    if (!out.emplace(entry.key, std::move(*text)).second)
      return entry.wrong(value.path(), fmt::format("`{}` is given twice", entry.key));
  }
  return {};
}

Result<void> read_registries(const Value& value, std::vector<std::string>& out) {
  ASSIGN(items, value.is_scalar() ? std::vector<Value>{value} : value.items());
  for (const Value& item : *items) {
    ASSIGN(text, item.text());
    if (std::find(out.begin(), out.end(), *text) != out.end())
      return item.wrong(fmt::format("names `{}` twice", *text));
    out.push_back(std::move(*text));
  }
  return {};
}

Result<void> read_models(const Value& value, std::vector<std::string>& out) {
  ASSIGN(words, read_words(value));
  out = std::move(*words);
  for (std::string& word : out)
    for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return {};
}

}  // namespace gantry::tenancy
