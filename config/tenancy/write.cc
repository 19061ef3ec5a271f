#include "config/tenancy/write.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "common/text/printable.h"
#include "config/tenancy/amounts.h"
#include "config/tenancy/member_types.h"
#include "config/values.h"

namespace gantry::tenancy {

using config::Yaml;

Yaml yaml_scalar(std::string text) {
  Yaml out;
  out.kind = Yaml::Kind::scalar;
  out.scalar = std::move(text);
  return out;
}
Yaml yaml_map() {
  Yaml out;
  out.kind = Yaml::Kind::map;
  return out;
}
Yaml yaml_list(std::span<const std::string> items) {
  Yaml out;
  out.kind = Yaml::Kind::list;
  for (const std::string& item : items) out.items.push_back(yaml_scalar(item));
  return out;
}
Yaml& yaml_child(Yaml& parent, std::string_view key) {
  for (Yaml::Entry& entry : parent.entries)
    if (entry.key == key) return entry.value;
  parent.entries.push_back({std::string(key), 0, 0, yaml_map()});
  return parent.entries.back().value;
}
void yaml_add(Yaml& parent, std::string_view key, Yaml value) {
  parent.entries.push_back({std::string(key), 0, 0, std::move(value)});
}

Yaml write_fields(const std::vector<Field>& fields, const std::vector<Field>& otherwise,
                  Style style) {
  Yaml out = yaml_map();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    Yaml value = field.type->write({field, style}, field.member);
    if (value.kind == Yaml::Kind::null) continue;
    const bool is_number = field.type == &type_of_member<std::int32_t>();
    if (style == Style::file && !is_number &&
        config::same(value, field.type->write({field, style}, otherwise[i].member)))
      continue;
    const std::size_t point = field.key.find('.');
    if (point == std::string_view::npos)
      yaml_add(out, field.key, std::move(value));
    else
      yaml_add(yaml_child(out, field.key.substr(0, point)), field.key.substr(point + 1),
               std::move(value));
  }
  return out;
}

namespace {

// ---- text

bool needs_quotes(const std::string& text) {
  static constexpr std::array<std::string_view, 8> kWords{"true", "false", "yes",  "no",
                                                          "on",   "off",   "null", "~"};
  if (text.empty() || text.front() == ' ' || text.back() == ' ') return true;
  if (std::find(kWords.begin(), kWords.end(), text) != kWords.end())
    return text == "null" || text == "~";
  if (std::string_view("-?:,[]{}#&*!|>'\"%@`").find(text.front()) != std::string_view::npos)
    return true;
  if (!is_printable(text)) return true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::string_view(",[]{}\"").find(text[i]) != std::string_view::npos) return true;
    if (text[i] == ':' && (i + 1 == text.size() || text[i + 1] == ' ')) return true;
    if (text[i] == '#' && text[i - 1] == ' ') return true;
  }
  return false;
}

std::string quoted(const std::string& text) {
  if (!needs_quotes(text)) return text;
  std::string out;
  append_json_string(out, text);  // a string of JSON is a string of YAML too
  return out;
}

void put(std::string& out, const Yaml& tree, std::size_t indent) {
  for (const Yaml::Entry& entry : tree.entries) {
    out.append(indent, ' ').append(quoted(entry.key)).append(":");
    const Yaml& value = entry.value;
    if (value.kind == Yaml::Kind::map && !value.entries.empty()) {
      out += '\n';
      put(out, value, indent + 2);
      continue;
    }
    if (value.kind == Yaml::Kind::map) {
      out += " {}";
    } else if (value.kind == Yaml::Kind::list) {
      out += " [";
      for (const Yaml& item : value.items)
        out.append(&item == value.items.data() ? "" : ", ").append(quoted(item.scalar));
      out += ']';
    } else {
      out.append(" ").append(quoted(value.scalar));
    }
    out += '\n';
  }
}

}  // namespace

Yaml to_yaml(const Document& document, Style style) {
  Document copy = document;  // a copy, because the tables point at members that can be changed
  Document defaults = *empty_document(kind_of(document));
  return write_fields(fields_of(copy), fields_of(defaults), style);
}

namespace {

void normalise(Tenant& t) {
  const auto rank = [](Resource resource) {
    std::size_t at = 0;
    while (kResourceKeys[at].resource != resource) ++at;
    return at;
  };
  std::sort(t.quota.begin(), t.quota.end(), [&](const QuotaLine& a, const QuotaLine& b) {
    return std::tuple(a.flavor, rank(a.resource)) < std::tuple(b.flavor, rank(b.resource));
  });
  std::sort(t.grants.begin(), t.grants.end(), [](const Grant& a, const Grant& b) {
    return std::tie(a.role, a.custom, a.group, a.user, a.until) <
           std::tie(b.role, b.custom, b.group, b.user, b.until);
  });
  t.grants.erase(std::unique(t.grants.begin(), t.grants.end()), t.grants.end());
  const auto by_name = [](auto& list) {
    std::sort(list.begin(), list.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
  };
  by_name(t.projects);
  for (Project& project : t.projects)
    std::sort(project.users.begin(), project.users.end(),
              [](const UserShare& a, const UserShare& b) { return a.user < b.user; });
  by_name(t.classes);
  std::sort(t.label_rules.begin(), t.label_rules.end(),
            [](const LabelRule& a, const LabelRule& b) { return a.key < b.key; });
  std::sort(t.allowed_classes.begin(), t.allowed_classes.end());
  std::sort(t.node_pools.begin(), t.node_pools.end());
}

void normalise(PriceBook& book) {
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(book.plans.begin(), book.plans.end(), by_name);
  for (PricePlan& plan : book.plans)
    for (auto* names : {&plan.classes, &plan.projects, &plan.tenants, &plan.tiers, &plan.sandboxes})
      std::sort(names->begin(), names->end());
  std::sort(book.hours.begin(), book.hours.end(), by_name);
  const auto number = [](const std::string& day) {
    return std::find(kWeekdays.begin(), kWeekdays.end(), day);
  };
  for (PriceHours& hours : book.hours)
    std::sort(hours.days.begin(), hours.days.end(),
              [&](const std::string& a, const std::string& b) { return number(a) < number(b); });
}

}  // namespace

void normalise(Document& document) {
  if (auto* tenant = std::get_if<Tenant>(&document)) {
    normalise(*tenant);
  } else if (auto* tier = std::get_if<Tier>(&document)) {
    normalise(tier->defaults);
  } else if (auto* cohort = std::get_if<Cohort>(&document)) {
    Tenant tenant;  // for its quota
    std::swap(tenant.quota, cohort->quota);
    normalise(tenant);
    std::swap(tenant.quota, cohort->quota);
  } else if (auto* flavor = std::get_if<Flavor>(&document)) {
    std::sort(flavor->features.begin(), flavor->features.end());
  } else if (auto* pool = std::get_if<NodePool>(&document)) {
    std::sort(pool->features.begin(), pool->features.end());
    std::sort(pool->taints.begin(), pool->taints.end());
  } else if (auto* book = std::get_if<PriceBook>(&document)) {
    normalise(*book);
  } else if (auto* topology = std::get_if<Topology>(&document)) {
    const auto level = [&](const TopologyDomain& d) {
      return std::find(topology->levels.begin(), topology->levels.end(), d.level);
    };
    std::sort(topology->domains.begin(), topology->domains.end(),
              [&](const TopologyDomain& a, const TopologyDomain& b) {
                return std::pair(level(a), a.name) < std::pair(level(b), b.name);
              });
  }
}

std::string yaml_text(const Yaml& tree) {
  std::string out;
  put(out, tree, 0);
  return out;
}

std::string to_text(const Document& document) {
  return fmt::format("apiVersion: gantry/v1\nkind: {}\n{}", kind_of(document),
                     yaml_text(to_yaml(document, Style::file)));
}

std::string to_text(std::span<const Document> documents) {
  std::string out;
  for (const Document& document : documents) {
    if (!out.empty()) out += "---\n";
    out += to_text(document);
  }
  return out;
}

}  // namespace gantry::tenancy
