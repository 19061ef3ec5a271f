// How members of one type are read from YAML, written as YAML, and called in docs and errors. A
// field of kinds.h points at its member type, so code that walks over the fields of a document
// needs no case for each type. Used inside config/tenancy only.
#pragma once

#include "config/tenancy/read.h"
#include "config/tenancy/write.h"

namespace gantry::tenancy {

struct FieldInput {
  const Field& field;
  const Value& value;
  ReadDocument& into;
};
struct FieldOutput {
  const Field& field;
  Style style;
};

struct MemberType {
  std::string (*name)(Form form);  // "name", "amounts by resource"
  Result<void> (*read)(const FieldInput& in, void* member);
  config::Yaml (*write)(const FieldOutput& out, const void* member);  // null = nothing to write
};

// Reads the keys of a map below `prefix` ("" or "limits.") into the members of `fields`.
Result<void> read_fields(const Value& map, const std::string& prefix,
                         const std::vector<Field>& fields, ReadDocument& into);

// Writes the fields of a document, or of an item of one, as a map. Style::file leaves out what is
// equal to the member in `otherwise`, the fields of an empty document.
config::Yaml write_fields(const std::vector<Field>& fields, const std::vector<Field>& otherwise,
                          Style style);

// Parts of trees to write.
config::Yaml yaml_scalar(std::string text);
config::Yaml yaml_map();
config::Yaml yaml_list(std::span<const std::string> items);
config::Yaml& yaml_child(config::Yaml& parent, std::string_view key);  // a map; made if missing
void yaml_add(config::Yaml& parent, std::string_view key, config::Yaml value);

// Lists with a shape of their own (write_parts.cc); null for an empty one.
config::Yaml write_quota(const std::vector<QuotaLine>& lines, Style style);
config::Yaml write_projects(const std::vector<Project>& projects);
config::Yaml write_grants(const std::vector<Grant>& grants);
config::Yaml write_label_rules(const std::vector<LabelRule>& rules);
config::Yaml write_plans(const std::vector<PricePlan>& plans);
config::Yaml write_hours(const std::vector<PriceHours>& hours);

}  // namespace gantry::tenancy
