#include "common/codec/schema.h"

#include "common/codec/type_info.h"

namespace gantry::codec {
namespace {

// The suffix " = 1" for a field whose default, which is not sent, is not zero.
std::string default_of(const TypeInfo& type, const void* value) {
  if (type.kind == Kind::enumeration) {
    const std::int64_t number = load_integer(type.number, value);
    return number == 0 ? "" : " = " + std::string(enum_name(type, number));
  }
  if (type.kind == Kind::real)
    return as<double>(value) == 0 ? "" : " = " + std::to_string(as<double>(value));
  if (type.kind >= Kind::real || !type.name.empty()) return "";  // Id, Instant, Duration, Money
  const std::int64_t number =
      type.kind == Kind::boolean ? as<bool>(value) : load_integer(type.kind, value);
  if (number == 0) return "";
  return " = " + (type.kind == Kind::uint64 ? std::to_string(static_cast<std::uint64_t>(number))
                                            : std::to_string(number));
}

}  // namespace

void Schema::add(const TypeInfo& type) {
  const std::string name(type.name);
  if (structs_.contains(name)) return;
  structs_[name] = {};
  std::string lines;
  const FieldTable& table = fields_of(type);
  for (const Field& field : table.fields) {
    lines.append("  ").append(std::to_string(field.number)).append(" ").append(field.name);
    lines.append(" ").append(describe(*field.type));
    lines.append(default_of(*field.type, table.defaults + field.offset)).append("\n");
  }
  structs_[name] = lines;
}

std::string Schema::describe(const TypeInfo& type) {
  switch (type.kind) {
    case Kind::boolean: return "bool";
    case Kind::sint8:
    case Kind::sint16:
    case Kind::sint32:
    case Kind::sint64:
      return type.name.empty() ? "int" + std::to_string(8 * type.size) : std::string(type.name);
    case Kind::uint8:
    case Kind::uint16:
    case Kind::uint32:
    case Kind::uint64:
      return type.name.empty() ? "uint" + std::to_string(8 * type.size) : std::string(type.name);
    case Kind::real: return "double";
    case Kind::text: return "string";
    case Kind::enumeration: return describe_enum(type);
    case Kind::resources: return std::string(type.name);
    case Kind::optional: return describe(*type.item) + "?";
    case Kind::list: return "list<" + describe(*type.item) + ">";
    case Kind::map: return "map<string, " + describe(*type.item) + ">";
    case Kind::pair: return "pair<" + describe(*type.item) + ", " + describe(*type.second) + ">";
    case Kind::variant: return describe_variant(type);
    case Kind::structure: add(type); return std::string(type.name);
  }
  return "?";
}

std::string Schema::describe_variant(const TypeInfo& type) {
  std::string text;
  for (const Alternative& one : type.alternatives)
    text.append(text.empty() ? "" : " | ")
        .append(std::to_string(one.kind))
        .append(":")
        .append(describe(*one.type));
  return text;
}

std::string Schema::describe_enum(const TypeInfo& type) {
  std::string lines;
  for (const EnumValue& one : type.values)
    lines.append("  ").append(std::to_string(one.value)).append(" ").append(one.name) += '\n';
  enums_[std::string(type.name)] = lines;
  return std::string(type.name);
}

}  // namespace gantry::codec
