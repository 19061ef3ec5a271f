#include "config/tenancy/read_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "common/text/hostlist.h"
#include "config/nearest.h"
#include "config/tenancy/amounts.h"
#include "config/values.h"

namespace gantry::tenancy {
namespace {

std::optional<Resource> resource_of(std::string_view key) {
  for (const auto& [resource, name] : kResourceKeys)
    if (key == name) return resource;
  if (key == "gpus") return Resource::gpu;
  if (key == "cpus") return Resource::cpu;
  return std::nullopt;
}

constexpr std::array<std::string_view, 7> kQuotaKeys{"gpu", "cpu", "memory", "scratch",
                                                     "io",  "net", "flavors"};
constexpr std::array<std::string_view, 5> kLineKeys{"nominal", "guaranteed", "borrow", "burst",
                                                    "lend"};

Result<Amount> read_part_or_amount(const Value& value, Resource resource) {
  ASSIGN(text, value.text());
  Amount out;
  out.place = value.place();
  out.path = value.path();
  const auto part = parse_part(*text);
  if (!part) return value.wrong(part.error());
  out.part = *part;
  if (out.part && !nodes_have(resource))
    return value.wrong("is not of something that nodes have an amount of; give a rate, such as 2G");
  if (out.part) return out;
  const auto amount = parse_amount(resource, *text);
  if (!amount) return value.wrong(amount.error());
  out.value = *amount;
  return out;
}

// Reads the line of one resource in one flavor.
class LineReader {
 public:
  LineReader(const Value& value, std::string flavor, Resource resource) : value_(value) {
    line_.flavor = std::move(flavor);
    line_.resource = resource;
  }

  Result<void> run(std::vector<QuotaLine>& out, ReadDocument& into) {
    if (auto done = value_.is_map() ? read_map() : set(parts_.nominal, value_); !done) return done;
    if (!parts_.nominal) return value_.wrong("`nominal` (or `guaranteed`) is missing");
    if (parts_.borrow && parts_.burst)
      return value_.wrong("has both `borrow` and `burst`; use one");
    into.places[fmt::format(
        "quota.{}{}", line_.flavor.empty() ? "" : "flavors." + line_.flavor + ".", key_of())] =
        value_.place();
    parts_.line = out.size();
    out.push_back(line_);
    const auto is_part = [](const std::optional<Amount>& a) { return a && a->part; };
    if (is_part(parts_.nominal) || is_part(parts_.borrow) || is_part(parts_.burst) ||
        is_part(parts_.lend)) {
      into.parts.push_back(parts_);
      return {};
    }
    QuotaLine& line = out.back();
    line.nominal = parts_.nominal->value;
    if (parts_.borrow) line.borrow = parts_.borrow->value;
    if (parts_.lend) line.lend = parts_.lend->value;
    if (parts_.burst) {
      if (parts_.burst->value < line.nominal)
        return value_.wrong("`burst` is below what is guaranteed");
      line.borrow = parts_.burst->value - line.nominal;
    }
    return {};
  }

 private:
  std::string_view key_of() const {
    for (const auto& [resource, name] : kResourceKeys)
      if (line_.resource == resource) return name;
    return "";
  }

  Result<void> set(std::optional<Amount>& slot, const Value& value) {
    if (slot) return value.wrong("`nominal` and `guaranteed` are the same; use one");
    ASSIGN(amount, read_part_or_amount(value, line_.resource));
    slot = std::move(*amount);
    return {};
  }

  Result<void> read_map() {
    ASSIGN(entries, value_.entries());
    for (const Value::Entry& entry : *entries) {
      const auto text = entry.value.is_scalar() ? *entry.value.text() : "";
      Result<void> done;
      if (entry.key == "nominal" || entry.key == "guaranteed")
        done = set(parts_.nominal, entry.value);
      else if (entry.key == "borrow")
        done = text == "unlimited" ? Result<void>{} : set(parts_.borrow, entry.value);
      else if (entry.key == "burst")
        done = set(parts_.burst, entry.value);
      else if (entry.key == "lend")
        done = text == "all" ? Result<void>{} : set(parts_.lend, entry.value);
      else
        return entry.wrong(value_.path(),
                           fmt::format("unknown key `{}`; a line of quota has nominal (or "
                                       "guaranteed), borrow (or burst) and lend{}",
                                       entry.key, did_you_mean(entry.key, kLineKeys)));
      if (!done) return done;
    }
    return {};
  }

  const Value& value_;
  QuotaLine line_;
  PartialLine parts_;
};

Result<void> read_flavor_quota(const Value& value, const std::string& flavor,
                               std::vector<QuotaLine>& out, ReadDocument& into) {
  ASSIGN(entries, value.entries());
  std::set<Resource> seen;
  for (const Value::Entry& entry : *entries) {
    if (entry.key == "flavors" && flavor.empty()) {
      ASSIGN(flavors, entry.value.entries());
      for (const Value::Entry& f : *flavors) {
        if (!config::is_word(f.key)) return f.wrong(entry.value.path(), not_a_name(f.key));
        into.places["quota.flavors." + f.key] = f.at;
        if (auto done = read_flavor_quota(f.value, f.key, out, into); !done) return done;
      }
      continue;
    }
    const auto resource = resource_of(entry.key);
    if (!resource)
      return entry.wrong(
          value.path(),
          fmt::format(
              "unknown key `{}`; quota is of gpu, cpu, memory, scratch, io and net{}", entry.key,
              did_you_mean(entry.key, std::span(kQuotaKeys).first(flavor.empty() ? 7 : 6))));
    if (!seen.insert(*resource).second)
      return entry.wrong(value.path(), fmt::format("`{}` is given twice", entry.key));
    if (auto done = LineReader(entry.value, flavor, *resource).run(out, into); !done) return done;
  }
  return {};
}

Result<std::uint32_t> read_shares(const Value& value) {
  ASSIGN(number, read_number(value, 0, kMostShares));
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

std::string not_a_name(std::string_view text) {
  return fmt::format(
      "\"{}\" is not a name; use up to 64 letters, digits, '-', '_' and '.', not beginning with "
      "'-' or '.'",
      text);
}

bool is_account_name(std::string_view text) {
  if (text.ends_with('$')) text.remove_suffix(1);
  return !text.empty() && text.size() <= 64 && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '@';
         });
}

bool is_group_name(std::string_view text) {
  constexpr std::string_view kOfIssuer = "oidc:";
  if (text.starts_with(kOfIssuer)) text.remove_prefix(kOfIssuer.size());
  return is_account_name(text);
}

Result<std::string> read_word(const Value& value) {
  auto text = value.text();
  if (!text) return text;
  if (!config::is_word(*text)) return value.wrong(not_a_name(*text));
  return text;
}

Result<std::vector<std::string>> read_words(const Value& value) {
  ASSIGN(items, value.is_scalar() ? std::vector<Value>{value} : value.items());
  std::vector<std::string> out;
  for (const Value& item : *items) {
    ASSIGN(word, read_word(item));
    if (std::find(out.begin(), out.end(), *word) != out.end())
      return item.wrong(fmt::format("names `{}` twice", *word));
    out.push_back(std::move(*word));
  }
  return out;
}

std::string joined(std::span<const std::string_view> names) {
  std::string all;
  for (const std::string_view name : names) all.append(all.empty() ? "" : ", ").append(name);
  return all;
}

Result<std::size_t> read_choice(const Value& value, std::span<const std::string_view> names) {
  ASSIGN(text, value.text());
  const auto found = std::find(names.begin(), names.end(), *text);
  if (found == names.end())
    return value.wrong(fmt::format("\"{}\" is none of {}", *text, joined(names)));
  return static_cast<std::size_t>(found - names.begin());
}

Result<std::int64_t> read_number(const Value& value, std::int64_t low, std::int64_t high) {
  ASSIGN(text, value.text());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (text->empty() || error != std::errc{} || end != text->data() + text->size())
    return value.wrong(fmt::format("\"{}\" is not a whole number", *text));
  if (number < low || number > high)
    return value.wrong(fmt::format("{} is outside of {} to {}", number, low, high));
  return number;
}

Result<std::int64_t> read_amount(const Value& value, Resource resource) {
  ASSIGN(text, value.text());
  const auto amount = parse_amount(resource, *text);
  if (!amount) return value.wrong(amount.error());
  return *amount;
}

Result<void> read_labels(const Value& value, std::map<std::string, std::string>& out) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    ASSIGN(text, entry.value.is_null() ? Result<std::string>("") : entry.value.text());
    if (entry.key.empty() || entry.key.size() > 317 || text->size() > 256)
      return entry.wrong(value.path(), "a label has a name, and at most 256 letters of text");
    out[entry.key] = std::move(*text);
  }
  return {};
}

Result<void> read_amounts(const Value& value, bool charge, Resources& out) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    const auto resource = resource_of(entry.key);
    if (!resource)
      return entry.wrong(
          value.path(),
          fmt::format("unknown key `{}`; use gpu, cpu, memory, scratch, io and net{}", entry.key,
                      did_you_mean(entry.key, std::span(kQuotaKeys).first(6))));
    if (charge) {
      ASSIGN(text, entry.value.text());
      const auto number = parse_thousandths(*text);
      if (!number) return entry.value.wrong(number.error());
      out.row(*resource) = number->value();
    } else {
      ASSIGN(amount, read_amount(entry.value, *resource));
      if (*amount == 0) return entry.value.wrong("is 0; leave it out for no limit");
      out.row(*resource) = *amount;
    }
  }
  return {};
}

Result<void> read_quota(const Value& value, std::vector<QuotaLine>& out, ReadDocument& into) {
  if (auto done = read_flavor_quota(value, "", out, into); !done) return done;
  return {};
}

Result<void> read_projects(const Value& value, std::vector<Project>& out) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    if (!config::is_word(entry.key)) return entry.wrong(value.path(), not_a_name(entry.key));
    Project& project = out.emplace_back();
    project.name = entry.key;
    ASSIGN(keys, entry.value.entries());
    for (const Value::Entry& key : *keys) {
      if (key.key == "shares") {
        ASSIGN(shares, read_shares(key.value));
        project.shares = *shares;
      } else if (key.key == "users") {
        ASSIGN(users, key.value.entries());
        for (const Value::Entry& user : *users) {
          if (!is_account_name(user.key))
            return user.wrong(key.value.path(),
                              fmt::format("\"{}\" is not the name of a user", user.key));
          ASSIGN(shares, read_shares(user.value));
          project.users.push_back({user.key, *shares});
        }
      } else if (key.key == "description" || key.key == "organization" || key.key == "parent") {
        ASSIGN(text, key.value.text());
        (key.key == "description" ? project.description
         : key.key == "parent"    ? project.parent
                                  : project.organization) = std::move(*text);
      } else {
        return key.wrong(entry.value.path(),
                         fmt::format("unknown key `{}`; a project has shares, users, parent, "
                                     "description and organization",
                                     key.key));
      }
    }
  }
  return {};
}

Result<void> read_classes(const Value& value, std::vector<TenantClass>& out) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    if (!config::is_word(entry.key)) return entry.wrong(value.path(), not_a_name(entry.key));
    ASSIGN(number, read_number(entry.value, -kMostValue, kMostValue));
    out.push_back({entry.key, static_cast<std::int32_t>(*number)});
  }
  return {};
}

Result<void> read_domains(const Value& value, std::vector<TopologyDomain>& out) {
  ASSIGN(levels, value.entries());
  for (const Value::Entry& level : *levels) {
    ASSIGN(domains, level.value.entries());
    for (const Value::Entry& domain : *domains) {
      if (!config::is_word(domain.key))
        return domain.wrong(level.value.path(), not_a_name(domain.key));
      ASSIGN(hosts, domain.value.text());
      if (const auto names = expand_hostlist(*hosts); !names)
        return domain.value.wrong(names.error());
      out.push_back({level.key, domain.key, *hosts});
    }
  }
  return {};
}

}  // namespace gantry::tenancy
