// All types that members of documents have.
#include "config/tenancy/member_types.h"

#include <fmt/core.h>

#include <set>

#include "common/text/hostlist.h"
#include "config/tenancy/amounts.h"
#include "config/tenancy/read_network.h"
#include "config/tenancy/read_parts.h"
#include "config/tenancy/read_prices.h"
#include "config/tenancy/read_rules.h"
#include "config/values.h"

namespace gantry::tenancy {
namespace {

using config::Yaml;

using Texts = std::map<std::string, std::string>;

// The name of a type in documents and errors.
struct Name {
  Form form;

  std::string operator()(const std::string*) const {
    switch (form) {
      case Form::word: return "name";
      case Form::hosts: return "host list";
      case Form::gpu_model: return "GPU model";
      case Form::date: return "date";
      default: return "text";
    }
  }
  std::string operator()(const bool*) const { return "true or false"; }
  std::string operator()(const std::int32_t*) const { return "whole number"; }
  std::string operator()(const std::uint32_t*) const {
    return form == Form::weight ? "decimal" : "whole number";
  }
  std::string operator()(const std::int64_t*) const {
    return form == Form::bytes  ? "amount of memory"
           : form == Form::rate ? "rate per second"
                                : "whole number";
  }
  std::string operator()(const Duration*) const { return "duration"; }
  std::string operator()(const std::vector<std::string>*) const {
    switch (form) {
      case Form::ranges: return "list of ranges";
      case Form::peers: return "list of tenants";
      case Form::models: return "list of GPU models";
      case Form::registries: return "list of registries";
      default: return "list of names";
    }
  }
  std::string operator()(const Texts*) const {
    return form == Form::patterns ? "texts by field" : "texts";
  }
  std::string operator()(const Resources*) const {
    return form == Form::charge ? "decimals by resource" : "amounts by resource";
  }
  template <codec::NamedEnum E>
  std::string operator()(const E*) const {
    const auto names = names_of<E>();
    return fmt::format("{} or {}", joined(std::span(names).first(names.size() - 1)), names.back());
  }
  template <class T>
  std::string operator()(const std::optional<T>*) const {
    return (*this)(static_cast<const T*>(nullptr));
  }
  std::string operator()(const std::vector<QuotaLine>*) const { return "quota"; }
  std::string operator()(const std::vector<Project>*) const { return "projects"; }
  std::string operator()(const std::vector<Grant>*) const { return "roles"; }
  std::string operator()(const std::vector<TenantClass>*) const { return "numbers by name"; }
  std::string operator()(const std::vector<TopologyDomain>*) const { return "host lists"; }
  std::string operator()(const Money*) const { return form == Form::sum ? "amount" : "price"; }
  std::string operator()(const std::map<std::string, Money>*) const { return "prices"; }
  std::string operator()(const ZoneName*) const { return "time zone"; }
  std::string operator()(const std::map<std::string, ZoneName>*) const { return "time zones"; }
  std::string operator()(const std::vector<PricePlan>*) const { return "plans"; }
  std::string operator()(const std::vector<PriceHours>*) const { return "hours of the day"; }
  std::string operator()(const std::vector<std::uint32_t>*) const { return "list of numbers"; }
  std::string operator()(const std::vector<LabelRule>*) const { return "labels"; }
  std::string operator()(const std::vector<ServiceVersion>*) const { return "versions"; }
  std::string operator()(const std::vector<ServiceShape>*) const { return "shapes"; }
  std::string operator()(const std::vector<ScaleHours>*) const { return "hours of the day"; }
};

// Reads {v1: {...}, v2: {...}} into items that have a name and fields of their own.
template <class Item>
Result<void> read_named(const Value& value, std::vector<Item>& out, ReadDocument& into) {
  ASSIGN(entries, value.entries());
  for (const Value::Entry& entry : *entries) {
    if (!config::is_word(entry.key)) return entry.wrong(value.path(), not_a_name(entry.key));
    Item& item = out.emplace_back();
    item.name = entry.key;
    if (auto done = read_fields(entry.value, "", fields_of(item), into); !done) return done;
  }
  return {};
}

// Reads a value into the member of its field.
struct Read : FieldInput {
  Result<void> operator()(std::string* out) const {
    ASSIGN(text, value.text());
    if (field.form == Form::word) {
      ASSIGN(word, read_word(value));
    } else if (field.form == Form::hosts) {
      if (const auto names = expand_hostlist(*text); !names) return value.wrong(names.error());
    } else if (field.form == Form::gpu_model) {
      if (!config::is_word(*text)) return value.wrong(not_a_name(*text));
      for (char& c : *text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (field.form == Form::date) {
      if (const auto date = parse_local_time(*text); !date) return value.wrong(date.error());
    }
    *out = std::move(*text);
    return {};
  }
  Result<void> operator()(bool* out) const {
    ASSIGN(text, value.text());
    const auto parsed = config::parse_bool(*text);
    if (!parsed) return value.wrong(parsed.error());
    *out = *parsed;
    return {};
  }
  Result<void> operator()(std::int32_t* out) const {
    ASSIGN(number, read_number(value, -kMostValue, kMostValue));
    *out = static_cast<std::int32_t>(*number);
    return {};
  }
  Result<void> operator()(std::uint32_t* out) const {
    if (field.form == Form::weight) {
      ASSIGN(text, value.text());
      const auto weight = parse_thousandths(*text);
      if (!weight) return value.wrong(weight.error());
      if (*weight > kMostWeight) return value.wrong("is above 1000000");
      *out = weight->narrow<std::uint32_t>().value();
      return {};
    }
    ASSIGN(number, read_number(value, 0, UINT32_MAX));
    *out = static_cast<std::uint32_t>(*number);
    return {};
  }
  Result<void> operator()(std::int64_t* out) const {
    if (field.form == Form::rate) {
      ASSIGN(amount, read_amount(value, field.key.ends_with("io") ? Resource::io : Resource::net));
      *out = *amount;
      return {};
    }
    if (field.form != Form::bytes) {
      ASSIGN(number, read_number(value, 0, std::int64_t{1} << 60));
      *out = *number;
      return {};
    }
    ASSIGN(amount, read_amount(value, Resource::memory));
    *out = *amount;
    return {};
  }
  Result<void> operator()(Duration* out) const {
    ASSIGN(text, value.text());
    const auto length = config::parse_length(*text);
    if (!length) return value.wrong(length.error());
    *out = *length;
    return {};
  }
  Result<void> operator()(std::vector<std::string>* out) const {
    if (field.form == Form::ranges || field.form == Form::peers)
      return read_network_words(value, field.form, *out);
    if (field.form == Form::models) return read_models(value, *out);
    if (field.form == Form::registries) return read_registries(value, *out);
    ASSIGN(names, read_words(value));
    *out = std::move(*names);
    return {};
  }
  Result<void> operator()(Texts* out) const {
    return field.form == Form::patterns ? read_patterns(value, *out) : read_labels(value, *out);
  }
  Result<void> operator()(Resources* out) const {
    return read_amounts(value, field.form == Form::charge, *out);
  }
  template <codec::NamedEnum E>
  Result<void> operator()(E* out) const {
    const auto names = names_of<E>();
    ASSIGN(at, read_choice(value, names));
    *out = enum_names(E{})[*at].first;
    return {};
  }
  template <class T>
  Result<void> operator()(std::optional<T>* out) const {
    return (*this)(&out->emplace());
  }
  Result<void> operator()(std::vector<QuotaLine>* out) const {
    return read_quota(value, *out, into);
  }
  Result<void> operator()(std::vector<Project>* out) const { return read_projects(value, *out); }
  Result<void> operator()(std::vector<Grant>* out) const { return read_roles(value, *out); }
  Result<void> operator()(std::vector<TenantClass>* out) const { return read_classes(value, *out); }
  Result<void> operator()(std::vector<TopologyDomain>* out) const {
    return read_domains(value, *out);
  }
  Result<void> operator()(Money* out) const {
    return field.form == Form::sum ? read_sum(value, *out) : read_price(value, *out);
  }
  Result<void> operator()(std::vector<std::uint32_t>* out) const {
    return read_percents(value, *out);
  }
  Result<void> operator()(std::vector<LabelRule>* out) const {
    return read_label_rules(value, *out);
  }
  Result<void> operator()(std::map<std::string, Money>* out) const {
    switch (field.form) {
      case Form::meters: return read_named_prices(value, *out, read_price);
      case Form::sum: return read_named_prices(value, *out, read_sum);
      default: return read_gpu_prices(value, *out);
    }
  }
  Result<void> operator()(ZoneName* out) const { return read_zone(value, *out); }
  Result<void> operator()(std::map<std::string, ZoneName>* out) const {
    return read_zones(value, *out);
  }
  Result<void> operator()(std::vector<PricePlan>* out) const { return read_plans(value, *out); }
  Result<void> operator()(std::vector<PriceHours>* out) const { return read_hours(value, *out); }
  Result<void> operator()(std::vector<ServiceVersion>* out) const {
    return read_named(value, *out, into);
  }
  Result<void> operator()(std::vector<ServiceShape>* out) const {
    return read_named(value, *out, into);
  }
  Result<void> operator()(std::vector<ScaleHours>* out) const {
    return read_named(value, *out, into);
  }
};

// Turns a member into YAML; null = nothing to write.
struct Write : FieldOutput {
  Yaml operator()(const std::string* v) const { return v->empty() ? Yaml{} : yaml_scalar(*v); }
  Yaml operator()(const bool* v) const { return yaml_scalar(*v ? "true" : "false"); }
  Yaml operator()(const std::int32_t* v) const { return yaml_scalar(std::to_string(*v)); }
  Yaml operator()(const std::uint32_t* v) const {
    return yaml_scalar(field.form == Form::weight ? show_thousandths(*v) : std::to_string(*v));
  }
  Yaml operator()(const std::int64_t* v) const {
    return yaml_scalar(field.form == Form::bytes  ? show_amount(Resource::memory, *v)
                       : field.form == Form::rate ? format_rate(*v)
                                                  : std::to_string(*v));
  }
  template <class T>
  Yaml operator()(const std::optional<T>* v) const {
    return *v ? (*this)(&**v) : Yaml{};
  }
  Yaml operator()(const Duration* v) const { return yaml_scalar(config::show_length(*v)); }
  Yaml operator()(const std::vector<std::string>* v) const {
    return v->empty() ? Yaml{} : yaml_list(*v);
  }
  Yaml operator()(const Texts* v) const {
    if (v->empty()) return {};
    Yaml out = yaml_map();
    for (const auto& [key, value] : *v) yaml_add(out, key, yaml_scalar(value));
    return out;
  }
  Yaml operator()(const Resources* v) const { return v->is_zero() ? Yaml{} : amounts(*v); }
  Yaml operator()(const std::optional<Resources>* v) const { return *v ? amounts(**v) : Yaml{}; }
  template <codec::NamedEnum E>
  Yaml operator()(const E* v) const {
    return yaml_scalar(std::string(enum_name(*v)));
  }
  Yaml operator()(const std::vector<QuotaLine>* v) const { return write_quota(*v, style); }
  Yaml operator()(const std::vector<Project>* v) const { return write_projects(*v); }
  Yaml operator()(const std::vector<Grant>* v) const { return write_grants(*v); }
  Yaml operator()(const std::vector<LabelRule>* v) const { return write_label_rules(*v); }
  Yaml operator()(const std::vector<TenantClass>* v) const {
    if (v->empty()) return {};
    Yaml out = yaml_map();
    for (const TenantClass& c : *v) yaml_add(out, c.name, yaml_scalar(std::to_string(c.value)));
    return out;
  }
  Yaml operator()(const std::vector<TopologyDomain>* v) const {
    if (v->empty()) return {};
    Yaml out = yaml_map();
    for (const TopologyDomain& d : *v)
      yaml_add(yaml_child(out, d.level), d.name, yaml_scalar(d.nodes));
    return out;
  }
  Yaml operator()(const Money* v) const {
    return v->micros == 0 ? Yaml{} : yaml_scalar(format_money(*v));
  }
  Yaml operator()(const std::map<std::string, Money>* v) const {
    if (v->empty()) return {};
    Yaml out = yaml_map();
    for (const auto& [key, price] : *v) yaml_add(out, key, yaml_scalar(format_money(price)));
    return out;
  }
  Yaml operator()(const ZoneName* v) const {
    return v->name.empty() ? Yaml{} : yaml_scalar(v->name);
  }
  Yaml operator()(const std::map<std::string, ZoneName>* v) const {
    if (v->empty()) return {};
    Yaml out = yaml_map();
    for (const auto& [key, zone] : *v) yaml_add(out, key, yaml_scalar(zone.name));
    return out;
  }
  Yaml operator()(const std::optional<Money>* v) const {
    return *v ? yaml_scalar(format_money(**v)) : Yaml{};
  }
  Yaml operator()(const std::vector<ServiceVersion>* v) const { return named(*v); }
  Yaml operator()(const std::vector<ServiceShape>* v) const { return named(*v); }
  Yaml operator()(const std::vector<ScaleHours>* v) const { return named(*v); }
  Yaml operator()(const std::vector<PricePlan>* v) const { return write_plans(*v); }
  Yaml operator()(const std::vector<PriceHours>* v) const { return write_hours(*v); }
  Yaml operator()(const std::vector<std::uint32_t>* v) const {
    std::vector<std::string> texts;
    for (const std::uint32_t n : *v) texts.push_back(std::to_string(n));
    return texts.empty() ? Yaml{} : yaml_list(texts);
  }

 private:
  template <class Item>
  [[nodiscard]] Yaml named(const std::vector<Item>& items) const {
    if (items.empty()) return {};
    Yaml out = yaml_map();
    for (Item item : items) {  // a copy, because the tables point at members that can be changed
      Item empty;
      yaml_add(out, item.name, write_fields(fields_of(item), fields_of(empty), style));
    }
    return out;
  }
  [[nodiscard]] Yaml amounts(const Resources& r) const {
    Yaml out = yaml_map();
    for (const auto& [resource, key] : kResourceKeys) {
      if (r[resource] == 0) continue;
      yaml_add(out, key,
               yaml_scalar(field.form == Form::charge ? show_thousandths(r[resource])
                                                      : show_amount(resource, r[resource])));
    }
    return out;
  }
};

}  // namespace

template <class T>
const MemberType& type_of_member() {
  static constexpr MemberType kType{
      [](Form form) { return Name{form}(static_cast<const T*>(nullptr)); },
      [](const FieldInput& in, void* member) { return Read{in}(static_cast<T*>(member)); },
      [](const FieldOutput& out, const void* member) {
        return Write{out}(static_cast<const T*>(member));
      }};
  return kType;
}

template const MemberType& type_of_member<std::string>();
template const MemberType& type_of_member<bool>();
template const MemberType& type_of_member<std::optional<bool>>();
template const MemberType& type_of_member<std::int32_t>();
template const MemberType& type_of_member<std::uint32_t>();
template const MemberType& type_of_member<std::optional<std::uint32_t>>();
template const MemberType& type_of_member<std::optional<std::int64_t>>();
template const MemberType& type_of_member<Duration>();
template const MemberType& type_of_member<std::optional<Duration>>();
template const MemberType& type_of_member<std::vector<std::string>>();
template const MemberType& type_of_member<std::vector<std::uint32_t>>();
template const MemberType& type_of_member<Texts>();
template const MemberType& type_of_member<Resources>();
template const MemberType& type_of_member<std::optional<Resources>>();
template const MemberType& type_of_member<Money>();
template const MemberType& type_of_member<std::optional<Money>>();
template const MemberType& type_of_member<std::map<std::string, Money>>();
template const MemberType& type_of_member<ZoneName>();
template const MemberType& type_of_member<std::map<std::string, ZoneName>>();
template const MemberType& type_of_member<VictimMode>();
template const MemberType& type_of_member<std::optional<Reclaim>>();
template const MemberType& type_of_member<std::optional<SecurityProfile>>();
template const MemberType& type_of_member<std::optional<Sandbox>>();
template const MemberType& type_of_member<CreditPart>();
template const MemberType& type_of_member<BudgetPeriod>();
template const MemberType& type_of_member<BudgetAction>();
template const MemberType& type_of_member<PolicyMode>();
template const MemberType& type_of_member<PolicyAction>();
template const MemberType& type_of_member<ServiceAccess>();
template const MemberType& type_of_member<BalancePolicy>();
template const MemberType& type_of_member<DeviceSharing>();
template const MemberType& type_of_member<RolloutKind>();
template const MemberType& type_of_member<std::vector<QuotaLine>>();
template const MemberType& type_of_member<std::vector<Project>>();
template const MemberType& type_of_member<std::vector<Grant>>();
template const MemberType& type_of_member<std::vector<LabelRule>>();
template const MemberType& type_of_member<std::vector<TenantClass>>();
template const MemberType& type_of_member<std::vector<TopologyDomain>>();
template const MemberType& type_of_member<std::vector<PricePlan>>();
template const MemberType& type_of_member<std::vector<PriceHours>>();
template const MemberType& type_of_member<std::vector<ServiceVersion>>();
template const MemberType& type_of_member<std::vector<ServiceShape>>();
template const MemberType& type_of_member<std::vector<ScaleHours>>();

std::string type_of(const Field& field) {
  return field.type->name(field.form);
}

}  // namespace gantry::tenancy
