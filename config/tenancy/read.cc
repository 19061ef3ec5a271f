#include "config/tenancy/read.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "common/text/hostlist.h"
#include "config/nearest.h"
#include "config/tenancy/amounts.h"
#include "config/tenancy/read_network.h"
#include "config/tenancy/read_parts.h"
#include "config/tenancy/read_prices.h"
#include "config/tenancy/read_rules.h"
#include "config/tenancy/write.h"
#include "config/values.h"

namespace gantry::tenancy {
namespace {

// Reads the keys of a map below `prefix` ("" or "limits.") into the members of `fields`.
Result<void> read_fields(const Value& map, const std::string& prefix,
                         const std::vector<Field>& fields, ReadDocument& into);

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
struct Read {
  const Field& field;
  const Value& value;
  ReadDocument& into;

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
  Result<void> operator()(std::optional<bool>* out) const { return (*this)(&out->emplace()); }
  Result<void> operator()(std::int32_t* out) const {
    ASSIGN(number, read_number(value, -kMostValue, kMostValue));
    *out = static_cast<std::int32_t>(*number);
    return {};
  }
  Result<void> operator()(std::optional<std::uint32_t>* out) const {
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
  Result<void> operator()(std::optional<std::int64_t>* out) const {
    if (field.form == Form::rate) {
      const auto amount =
          read_amount(value, field.key.ends_with("io") ? Resource::io : Resource::net);
      if (!amount) return tl::unexpected(amount.error());
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
  Result<void> operator()(std::optional<Duration>* out) const { return (*this)(&out->emplace()); }
  Result<void> operator()(std::vector<std::string>* out) const {
    if (field.form == Form::ranges || field.form == Form::peers)
      return read_network_words(value, field.form, *out);
    if (field.form == Form::models) return read_models(value, *out);
    if (field.form == Form::registries) return read_registries(value, *out);
    ASSIGN(names, read_words(value));
    *out = std::move(*names);
    return {};
  }
  Result<void> operator()(std::map<std::string, std::string>* out) const {
    return field.form == Form::patterns ? read_patterns(value, *out) : read_labels(value, *out);
  }
  Result<void> operator()(Resources* out) const {
    return read_amounts(value, field.form == Form::charge, *out);
  }
  Result<void> operator()(std::optional<Resources>* out) const {
    return read_amounts(value, false, out->emplace());
  }
  Result<void> operator()(VictimMode* out) const { return read_choice(value, *out); }
  Result<void> operator()(std::optional<Reclaim>* out) const {
    return read_choice(value, out->emplace());
  }
  Result<void> operator()(std::optional<SecurityProfile>* out) const {
    return read_choice(value, out->emplace());
  }
  Result<void> operator()(std::optional<Sandbox>* out) const {
    return read_choice(value, out->emplace());
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
  Result<void> operator()(BudgetPeriod* out) const { return read_choice(value, *out); }
  Result<void> operator()(BudgetAction* out) const { return read_choice(value, *out); }
  Result<void> operator()(PolicyMode* out) const { return read_choice(value, *out); }
  Result<void> operator()(PolicyAction* out) const { return read_choice(value, *out); }
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
  Result<void> operator()(CreditPart* out) const { return read_choice(value, *out); }
  Result<void> operator()(std::uint32_t* out) const {
    ASSIGN(number, read_number(value, 0, UINT32_MAX));
    *out = static_cast<std::uint32_t>(*number);
    return {};
  }
  Result<void> operator()(std::optional<Money>* out) const {
    return read_sum(value, out->emplace());
  }
  Result<void> operator()(ServiceAccess* out) const { return read_choice(value, *out); }
  Result<void> operator()(BalancePolicy* out) const { return read_choice(value, *out); }
  Result<void> operator()(DeviceSharing* out) const { return read_choice(value, *out); }
  Result<void> operator()(RolloutKind* out) const { return read_choice(value, *out); }
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

bool is_section(const std::vector<Field>& fields, const std::string& prefix) {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const Field& f) { return f.key.starts_with(prefix); });
}

std::string suggestion(const std::vector<Field>& fields, const std::string& key,
                       const std::string& prefix) {
  std::vector<std::string_view> names;
  for (const Field& f : fields) {
    if (!f.key.starts_with(prefix)) continue;
    std::string_view name = f.key.substr(prefix.size());
    name = name.substr(0, name.find('.'));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string near = did_you_mean(key, names);
  if (!near.empty()) return near;
  std::string all;
  for (const std::string_view name : names)
    all += fmt::format("{}{}", all.empty() ? "" : ", ", name);
  return "; known are " + all;
}

Result<void> read_fields(const Value& map, const std::string& prefix,
                         const std::vector<Field>& fields, ReadDocument& into) {
  ASSIGN(entries, map.entries());
  const bool is_root = prefix.empty() && map.path().empty();
  for (const Value::Entry& entry : *entries) {
    if (is_root && (entry.key == "apiVersion" || entry.key == "kind")) continue;
    const std::string key = prefix + entry.key;
    into.places[is_root || !prefix.empty() ? key : entry.value.path()] = entry.value.place();
    if (entry.value.is_null()) continue;  // "quota:" with nothing below it
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.key == key; });
    Result<void> done;
    if (field != fields.end())
      done = std::visit(Read{*field, entry.value, into}, field->slot);
    else if (is_section(fields, key + "."))
      done = read_fields(entry.value, key + ".", fields, into);
    else
      return entry.wrong(map.path(), fmt::format("unknown key `{}`{}", entry.key,
                                                 suggestion(fields, entry.key, prefix)));
    if (!done) return done;
  }
  return {};
}

Result<void> read_root(const Value& root, ReadDocument& into) {
  into.place = root.place();
  if (auto done = read_fields(root, "", fields_of(into.document), into); !done) return done;
  if (name_of(into.document).empty()) return root.wrong("`name` is missing (name)");
  return {};
}

}  // namespace

Result<ReadDocument> read_document(const Value& root) {
  ASSIGN(entries, root.entries());
  for (const Value::Entry& entry : *entries) {
    if (entry.key != "kind") continue;
    ASSIGN(kind, entry.value.text());
    auto document = empty_document(*kind);
    const auto kinds = kind_names();
    if (!document) {
      std::string all;
      for (const auto name : kinds) all += fmt::format("{}{}", all.empty() ? "" : ", ", name);
      return entry.value.wrong(fmt::format("\"{}\" is no kind of gantry/v1; use {}{}", *kind, all,
                                           did_you_mean(*kind, kinds)));
    }
    ReadDocument out;
    out.document = std::move(*document);
    TRY(read_root(root, out));
    if (out.parts.empty()) normalise(out.document);
    return out;
  }
  return root.wrong("`kind` is missing");
}

std::vector<QuotaLine>* quota_of(Document& document) {
  if (auto* tenant = std::get_if<Tenant>(&document)) return &tenant->quota;
  if (auto* cohort = std::get_if<Cohort>(&document)) return &cohort->quota;
  if (auto* tier = std::get_if<Tier>(&document)) return &tier->defaults.quota;
  return nullptr;
}

}  // namespace gantry::tenancy
