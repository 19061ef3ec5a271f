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

// Reads a value into the member of its field.
struct Read {
  const Field& field;
  const Value& value;
  ReadDocument& into;

  Result<void> operator()(std::string* out) const {
    auto text = value.text();
    if (!text) return tl::unexpected(text.error());
    if (field.form == Form::word) {
      auto word = read_word(value);
      if (!word) return tl::unexpected(word.error());
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
    const auto text = value.text();
    if (!text) return tl::unexpected(text.error());
    const auto parsed = config::parse_bool(*text);
    if (!parsed) return value.wrong(parsed.error());
    *out = *parsed;
    return {};
  }
  Result<void> operator()(std::optional<bool>* out) const { return (*this)(&out->emplace()); }
  Result<void> operator()(std::int32_t* out) const {
    const auto number = read_number(value, -kMostValue, kMostValue);
    if (!number) return tl::unexpected(number.error());
    *out = static_cast<std::int32_t>(*number);
    return {};
  }
  Result<void> operator()(std::optional<std::uint32_t>* out) const {
    if (field.form == Form::weight) {
      const auto text = value.text();
      if (!text) return tl::unexpected(text.error());
      const auto weight = parse_thousandths(*text);
      if (!weight) return value.wrong(weight.error());
      if (*weight > kMostWeight) return value.wrong("is above 1000000");
      *out = weight->narrow<std::uint32_t>().value();
      return {};
    }
    const auto number = read_number(value, 0, UINT32_MAX);
    if (!number) return tl::unexpected(number.error());
    *out = static_cast<std::uint32_t>(*number);
    return {};
  }
  Result<void> operator()(std::optional<std::int64_t>* out) const {
    const auto amount = read_amount(value, Resource::memory);
    if (!amount) return tl::unexpected(amount.error());
    *out = *amount;
    return {};
  }
  Result<void> operator()(Duration* out) const {
    const auto text = value.text();
    if (!text) return tl::unexpected(text.error());
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
    auto names = read_words(value);
    if (!names) return tl::unexpected(names.error());
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
};

class Reader {
 public:
  Reader(const Value& root, ReadDocument& into) : root_(root), into_(into) {}

  Result<void> run() {
    fields_ = fields_of(into_.document);
    into_.place = root_.place();
    if (auto done = section(root_, ""); !done) return done;
    if (name_of(into_.document).empty()) return root_.wrong("`name` is missing (name)");
    return {};
  }

 private:
  // Reads the keys of a map below `prefix` ("" or "limits.").
  Result<void> section(const Value& map, const std::string& prefix) {
    const auto entries = map.entries();
    if (!entries) return tl::unexpected(entries.error());
    for (const Value::Entry& entry : *entries) {
      if (prefix.empty() && (entry.key == "apiVersion" || entry.key == "kind")) continue;
      const std::string key = prefix + entry.key;
      into_.places[key] = entry.value.place();
      if (entry.value.is_null()) continue;  // "quota:" with nothing below it
      const auto field = std::find_if(fields_.begin(), fields_.end(),
                                      [&](const Field& f) { return f.key == key; });
      Result<void> done;
      if (field != fields_.end())
        done = std::visit(Read{*field, entry.value, into_}, field->slot);
      else if (is_section(key + "."))
        done = section(entry.value, key + ".");
      else
        return entry.wrong(map.path(), fmt::format("unknown key `{}`{}", entry.key,
                                                   suggestion(entry.key, prefix)));
      if (!done) return done;
    }
    return {};
  }

  [[nodiscard]] bool is_section(const std::string& prefix) const {
    return std::any_of(fields_.begin(), fields_.end(),
                       [&](const Field& f) { return f.key.starts_with(prefix); });
  }

  [[nodiscard]] std::string suggestion(const std::string& key, const std::string& prefix) const {
    std::vector<std::string_view> names;
    for (const Field& f : fields_) {
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

  const Value& root_;
  ReadDocument& into_;
  std::vector<Field> fields_;
};

}  // namespace

Result<ReadDocument> read_document(const Value& root) {
  const auto entries = root.entries();
  if (!entries) return tl::unexpected(entries.error());
  for (const Value::Entry& entry : *entries) {
    if (entry.key != "kind") continue;
    const auto kind = entry.value.text();
    if (!kind) return tl::unexpected(kind.error());
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
    if (auto done = Reader(root, out).run(); !done) return tl::unexpected(done.error());
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
