#include "config/tenancy/write.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "common/text/printable.h"
#include "config/tenancy/amounts.h"
#include "config/tenancy/read_rules.h"
#include "config/values.h"

namespace gantry::tenancy {
namespace {

using config::Yaml;

Yaml scalar(std::string text) {
  Yaml out;
  out.kind = Yaml::Kind::scalar;
  out.scalar = std::move(text);
  return out;
}
Yaml map() {
  Yaml out;
  out.kind = Yaml::Kind::map;
  return out;
}
Yaml list(std::span<const std::string> items) {
  Yaml out;
  out.kind = Yaml::Kind::list;
  for (const std::string& item : items) out.items.push_back(scalar(item));
  return out;
}
Yaml& child(Yaml& parent, std::string_view key) {
  for (Yaml::Entry& entry : parent.entries)
    if (entry.key == key) return entry.value;
  parent.entries.push_back({std::string(key), 0, 0, map()});
  return parent.entries.back().value;
}
void add(Yaml& parent, std::string_view key, Yaml value) {
  parent.entries.push_back({std::string(key), 0, 0, std::move(value)});
}

// Turns a member into YAML; null = nothing to write.
struct Write {
  const Field& field;
  Style style;

  Yaml operator()(const std::string* v) const { return v->empty() ? Yaml{} : scalar(*v); }
  Yaml operator()(const bool* v) const { return scalar(*v ? "true" : "false"); }
  Yaml operator()(const std::optional<bool>* v) const { return *v ? (*this)(&**v) : Yaml{}; }
  Yaml operator()(const std::int32_t* v) const { return scalar(std::to_string(*v)); }
  Yaml operator()(const std::optional<std::uint32_t>* v) const {
    if (!*v) return {};
    return scalar(field.form == Form::weight ? show_thousandths(**v) : std::to_string(**v));
  }
  Yaml operator()(const std::optional<std::int64_t>* v) const {
    if (!*v) return {};
    return scalar(field.form == Form::bytes  ? show_amount(Resource::memory, **v)
                  : field.form == Form::rate ? format_rate(**v)
                                             : std::to_string(**v));
  }
  Yaml operator()(const Duration* v) const { return scalar(config::show_length(*v)); }
  Yaml operator()(const std::optional<Duration>* v) const {
    return *v ? scalar(config::show_length(**v)) : Yaml{};
  }
  Yaml operator()(const std::vector<std::string>* v) const {
    return v->empty() ? Yaml{} : list(*v);
  }
  Yaml operator()(const std::map<std::string, std::string>* v) const {
    if (v->empty()) return {};
    Yaml out = map();
    for (const auto& [key, value] : *v) add(out, key, scalar(value));
    return out;
  }
  Yaml operator()(const Resources* v) const { return amounts(*v); }
  Yaml operator()(const std::optional<Resources>* v) const { return *v ? amounts(**v) : Yaml{}; }
  template <codec::NamedEnum E>
  Yaml operator()(const E* v) const {
    return scalar(std::string(enum_name(*v)));
  }
  Yaml operator()(const std::optional<Reclaim>* v) const {
    return *v ? scalar(std::string(enum_name(**v))) : Yaml{};
  }
  Yaml operator()(const std::optional<SecurityProfile>* v) const {
    return *v ? scalar(std::string(enum_name(**v))) : Yaml{};
  }
  Yaml operator()(const std::optional<Sandbox>* v) const {
    return *v ? scalar(std::string(enum_name(**v))) : Yaml{};
  }
  Yaml operator()(const std::vector<QuotaLine>* v) const;
  Yaml operator()(const std::vector<Project>* v) const;
  Yaml operator()(const std::vector<Grant>* v) const;
  Yaml operator()(const std::vector<LabelRule>* v) const;
  Yaml operator()(const std::vector<TenantClass>* v) const {
    if (v->empty()) return {};
    Yaml out = map();
    for (const TenantClass& c : *v) add(out, c.name, scalar(std::to_string(c.value)));
    return out;
  }
  Yaml operator()(const std::vector<TopologyDomain>* v) const {
    if (v->empty()) return {};
    Yaml out = map();
    for (const TopologyDomain& d : *v) add(child(out, d.level), d.name, scalar(d.nodes));
    return out;
  }
  Yaml operator()(const Money* v) const {
    return v->micros == 0 ? Yaml{} : scalar(format_money(*v));
  }
  Yaml operator()(const std::map<std::string, Money>* v) const {
    if (v->empty()) return {};
    Yaml out = map();
    for (const auto& [key, price] : *v) add(out, key, scalar(format_money(price)));
    return out;
  }
  Yaml operator()(const ZoneName* v) const { return v->name.empty() ? Yaml{} : scalar(v->name); }
  Yaml operator()(const std::map<std::string, ZoneName>* v) const {
    if (v->empty()) return {};
    Yaml out = map();
    for (const auto& [key, zone] : *v) add(out, key, scalar(zone.name));
    return out;
  }
  Yaml operator()(const std::uint32_t* v) const { return scalar(std::to_string(*v)); }
  Yaml operator()(const std::optional<Money>* v) const {
    return *v ? scalar(format_money(**v)) : Yaml{};
  }
  Yaml operator()(const std::vector<ServiceVersion>* v) const { return named(*v); }
  Yaml operator()(const std::vector<ServiceShape>* v) const { return named(*v); }
  Yaml operator()(const std::vector<ScaleHours>* v) const { return named(*v); }
  Yaml operator()(const std::vector<PricePlan>* v) const;
  Yaml operator()(const std::vector<PriceHours>* v) const;
  Yaml operator()(const std::vector<std::uint32_t>* v) const {
    std::vector<std::string> texts;
    for (const std::uint32_t n : *v) texts.push_back(std::to_string(n));
    return texts.empty() ? Yaml{} : list(texts);
  }

 private:
  template <class Item>
  [[nodiscard]] Yaml named(const std::vector<Item>& items) const;  // by the items' names
  [[nodiscard]] Yaml amounts(const Resources& r) const {
    if (r.is_zero()) return {};
    Yaml out = map();
    for (const auto& [resource, key] : kResourceKeys) {
      if (r[resource] == 0) continue;
      add(out, key,
          scalar(field.form == Form::charge ? show_thousandths(r[resource])
                                            : show_amount(resource, r[resource])));
    }
    return out;
  }
};

Yaml Write::operator()(const std::vector<QuotaLine>* v) const {
  if (v->empty()) return {};
  Yaml out = map();
  Yaml flavors = map();
  for (const auto& [resource, key] : kResourceKeys) {
    for (const QuotaLine& line : *v) {
      if (line.resource != resource) continue;
      Yaml& section = line.flavor.empty() ? out : child(flavors, line.flavor);
      const auto amount = [&](std::int64_t n) { return scalar(show_amount(line.resource, n)); };
      if (!line.borrow && !line.lend && style == Style::file) {
        add(section, key, amount(line.nominal));
        continue;
      }
      Yaml& cell = child(section, key);
      add(cell, "nominal", amount(line.nominal));
      if (line.borrow) add(cell, "borrow", amount(*line.borrow));
      if (line.lend) add(cell, "lend", amount(*line.lend));
    }
  }
  if (!flavors.entries.empty()) add(out, "flavors", std::move(flavors));
  return out;
}

Yaml Write::operator()(const std::vector<Project>* v) const {
  if (v->empty()) return {};
  Yaml out = map();
  for (const Project& project : *v) {
    Yaml& section = child(out, project.name);
    add(section, "shares", scalar(std::to_string(project.shares)));
    if (!project.parent.empty()) add(section, "parent", scalar(project.parent));
    if (!project.description.empty()) add(section, "description", scalar(project.description));
    if (!project.organization.empty()) add(section, "organization", scalar(project.organization));
    if (project.users.empty()) continue;
    Yaml users = map();
    for (const UserShare& u : project.users) add(users, u.user, scalar(std::to_string(u.shares)));
    add(section, "users", std::move(users));
  }
  return out;
}

// The names of roles in the order in which they are written: built-in ones, then those of the site.
std::vector<std::string> role_names(const std::vector<Grant>& grants) {
  std::vector<std::string> out;
  for (const auto& [role, name] : enum_names(Role{})) out.emplace_back(name);
  std::set<std::string> own;
  for (const Grant& grant : grants)
    if (!grant.custom.empty()) own.insert(grant.custom);
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

Yaml Write::operator()(const std::vector<Grant>* v) const {
  if (v->empty()) return {};
  Yaml out = map();
  for (const std::string& name : role_names(*v)) {
    std::vector<std::string> users;
    std::vector<std::string> groups;
    std::map<std::string, std::string> ends;
    for (const Grant& grant : *v) {
      if ((grant.custom.empty() ? enum_name(grant.role) : grant.custom) != name) continue;
      if (!grant.user.empty()) users.push_back(grant.user);
      if (!grant.group.empty()) groups.push_back(grant.group);
      if (grant.until) ends[grant.user.empty() ? grant.group : grant.user] = show_utc(*grant.until);
    }
    if (!users.empty()) add(child(out, name), "users", list(users));
    if (!groups.empty()) add(child(out, name), "groups", list(groups));
    for (const auto& [who, end] : ends) add(child(child(out, name), "until"), who, scalar(end));
  }
  return out;
}

Yaml Write::operator()(const std::vector<LabelRule>* v) const {
  if (v->empty()) return {};
  Yaml out = map();
  for (const LabelRule& rule : *v) {
    Yaml& section = child(out, rule.key);
    if (!rule.values.empty()) add(section, "values", list(rule.values));
    if (!rule.value.empty()) add(section, "default", scalar(rule.value));
  }
  return out;
}

Yaml Write::operator()(const std::vector<PricePlan>* v) const {
  if (v->empty()) return {};
  Yaml out = map();
  for (const PricePlan& plan : *v) {
    Yaml& section = child(out, plan.name);
    add(section, "factor", scalar(show_thousandths(plan.factor)));
    if (!plan.classes.empty()) add(section, "classes", list(plan.classes));
    if (!plan.projects.empty()) add(section, "projects", list(plan.projects));
    if (!plan.tenants.empty()) add(section, "tenants", list(plan.tenants));
    if (!plan.tiers.empty()) add(section, "tiers", list(plan.tiers));
    if (!plan.sandboxes.empty()) add(section, "sandboxes", list(plan.sandboxes));
  }
  return out;
}

Yaml Write::operator()(const std::vector<PriceHours>* v) const {
  if (v->empty()) return {};
  Yaml out = map();
  for (const PriceHours& hours : *v) {
    Yaml& section = child(out, hours.name);
    add(section, "from", scalar(format_time_of_day(hours.from)));
    add(section, "until", scalar(format_time_of_day(hours.until)));
    add(section, "factor", scalar(show_thousandths(hours.factor)));
    if (!hours.days.empty()) add(section, "days", list(hours.days));
  }
  return out;
}

// The fields of a document, or of an item of one, as a map.
Yaml write_fields(const std::vector<Field>& fields, const std::vector<Field>& otherwise,
                  Style style) {
  Yaml out = map();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    Yaml value = std::visit(Write{fields[i], style}, fields[i].slot);
    if (value.kind == Yaml::Kind::null) continue;
    const bool is_number = std::holds_alternative<std::int32_t*>(fields[i].slot);
    if (style == Style::file && !is_number &&
        config::same(value, std::visit(Write{otherwise[i], style}, otherwise[i].slot)))
      continue;
    const std::size_t point = fields[i].key.find('.');
    if (point == std::string_view::npos)
      add(out, fields[i].key, std::move(value));
    else
      add(child(out, fields[i].key.substr(0, point)), fields[i].key.substr(point + 1),
          std::move(value));
  }
  return out;
}

template <class Item>
Yaml Write::named(const std::vector<Item>& items) const {
  if (items.empty()) return {};
  Yaml out = map();
  for (Item item : items) {  // a copy, because the tables point at members that can be changed
    Item empty;
    add(out, item.name, write_fields(fields_of(item), fields_of(empty), style));
  }
  return out;
}

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
