#include "config/tenancy/read.h"

#include <fmt/core.h>

#include <algorithm>

#include "config/nearest.h"
#include "config/tenancy/member_types.h"
#include "config/tenancy/read_parts.h"

namespace gantry::tenancy {
namespace {

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
  return "; known are " + joined(names);
}

}  // namespace

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
      done = field->type->read({*field, entry.value, into}, field->member);
    else if (is_section(fields, key + "."))
      done = read_fields(entry.value, key + ".", fields, into);
    else
      return entry.wrong(map.path(), fmt::format("unknown key `{}`{}", entry.key,
                                                 suggestion(fields, entry.key, prefix)));
    if (!done) return done;
  }
  return {};
}

namespace {

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
    if (!document)
      return entry.value.wrong(fmt::format("\"{}\" is no kind of gantry/v1; use {}{}", *kind,
                                           joined(kinds), did_you_mean(*kind, kinds)));
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
