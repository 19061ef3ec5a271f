// Writes a value of any type as JSON, and reads it.
#include <limits>
#include <string>

#include "common/codec/codec.h"
#include "common/codec/json_io.h"
#include "common/codec/walk.h"

namespace gantry::codec {
namespace {

constexpr std::string_view kKindKey = "kind";  // names a variant's alternative

bool read(DecodeError& error, JsonNode node, const TypeInfo& type, void* out);

class JsonSink : public JsonWriter {
 public:
  using JsonWriter::JsonWriter;

  void begin_list(std::size_t /*size*/) { begin_array(); }
  void end_list() { end_array(); }
  void begin_map(std::size_t /*size*/) { begin_object(); }
  void end_map() { end_object(); }
  void enumeration(const TypeInfo& type, std::int64_t number) { string(enum_name(type, number)); }

  void resources(const Resources& value) {
    begin_object();
    for (const ResourceRow& row : kResourceTable) {
      key(row.name);
      sint(value[row.id]);
    }
    end_object();
  }
  void variant(const Alternative& one, const void* value) {
    begin_object();
    key(kKindKey);
    string(one.name);
    fields(*one.type, value);
  }
  void structure(const TypeInfo& type, const void* value) {
    begin_object();
    fields(type, value);
  }

 private:
  void fields(const TypeInfo& type, const void* value) {
    for (const Field& field : fields_of(type).fields) {
      const void* member = at(value, field.offset);
      if (field.type->left_out_unset && !has_value(*field.type, member)) continue;
      key(field.name);
      walk(*this, *field.type, member);
    }
    end_object();
  }
};

// Reads `out`. `extra` names a member that is no field (a variant's kind), or is "".
bool read_struct(DecodeError& error, JsonNode node, const TypeInfo& type, void* out,
                 std::string_view extra) {
  if (!node.is_object()) return error.fail("expected an object");
  const std::vector<Field>& fields = fields_of(type).fields;
  bool ok = true;
  std::size_t known = !extra.empty() && node.find(extra) ? 1 : 0;
  for (const Field& field : fields) {
    const auto member = node.find(field.name);
    if (!member) continue;
    ++known;
    ok = read(error, *member, *field.type, at(out, field.offset)) || error.in_field(field.name);
    if (!ok) break;
  }
  if (type.from_older_form) type.from_older_form(out);
  if (!ok || known == node.size()) return ok;
  for (std::size_t i = 0; i < node.size(); ++i) {  // find which member is unknown
    bool found = node.name(i) == extra;
    for (const Field& field : fields) found = found || field.name == node.name(i);
    if (!found) {
      error.fail("no such field");
      return error.in_field(node.name(i));
    }
  }
  return error.fail("a field is given twice");
}

template <class T, class Wide>
bool read_integer(DecodeError& error, std::optional<Wide> wide, void* out) {
  if (!wide)
    return error.fail(std::is_signed_v<Wide> ? "expected an integer"
                                             : "expected an unsigned integer");
  if (*wide > static_cast<Wide>(std::numeric_limits<T>::max()))
    return error.fail(std::to_string(*wide) + " is too large");
  if (*wide < static_cast<Wide>(std::numeric_limits<T>::min()))
    return error.fail(std::to_string(*wide) + " is too small");
  as<T>(out) = static_cast<T>(*wide);
  return true;
}

bool read_enum(DecodeError& error, JsonNode node, const TypeInfo& type, void* out) {
  std::string names;
  const auto text = node.string();
  for (const EnumValue& one : type.values) {
    if (text && *text == one.name) {
      store_integer(type, one.value, out);
      return true;
    }
    names.append(names.empty() ? "" : ", ").append(one.name);
  }
  return error.fail("expected one of: " + names);
}

bool read_resources(DecodeError& error, JsonNode node, Resources& out) {
  if (!node.is_object()) return error.fail("expected an object");
  out = {};
  for (std::size_t i = 0; i < node.size(); ++i) {
    const ResourceRow* found = nullptr;
    for (const ResourceRow& row : kResourceTable)
      if (row.name == node.name(i)) found = &row;
    const auto amount = node.member(i).sint();
    if (!found) error.fail("no such resource");
    if (!amount || *amount < 0) error.fail("expected an unsigned integer");
    if (!found || !amount || *amount < 0) return error.in_field(node.name(i));
    out.row(found->id) = *amount;
  }
  return true;
}

bool read_variant(DecodeError& error, JsonNode node, const TypeInfo& type, void* out) {
  const auto kind = node.is_object() ? node.find(kKindKey) : std::nullopt;
  const auto wanted = kind ? kind->string() : std::nullopt;
  if (!wanted) return error.fail("expected an object with a \"kind\"");
  for (const Alternative& one : type.alternatives)
    if (*wanted == one.name) return read_struct(error, node, *one.type, one.emplace(out), kKindKey);
  return error.fail("unknown kind \"" + std::string(*wanted) + "\"");
}

bool read_list(DecodeError& error, JsonNode node, const TypeInfo& type, void* out) {
  if (!node.is_array()) return error.fail("expected a list");
  void* one = type.renew(out, node.size());
  for (std::size_t i = 0; i < node.size(); ++i, one = at(one, type.item->size))
    if (!read(error, node.item(i), *type.item, one)) return error.in_item(i);
  return true;
}

bool read_map(DecodeError& error, JsonNode node, const TypeInfo& type, void* out) {
  if (!node.is_object()) return error.fail("expected an object");
  type.clear(out);
  for (std::size_t i = 0; i < node.size(); ++i)
    if (!read(error, node.member(i), *type.item, type.entry(out, std::string(node.name(i)))))
      return error.in_field(node.name(i));
  return true;
}

bool read_pair(DecodeError& error, JsonNode node, const TypeInfo& type, void* out) {
  if (!node.is_array() || node.size() != 2) return error.fail("expected a list of two");
  return (read(error, node.item(0), *type.item, out) || error.in_item(0)) &&
         (read(error, node.item(1), *type.second, at(out, type.second_at)) || error.in_item(1));
}

template <class T, class Source>
bool take(DecodeError& error, const Source& source, T& out, const char* expected) {
  if (!source) return error.fail(expected);
  out = T(*source);
  return true;
}

bool read_optional(DecodeError& error, JsonNode node, const TypeInfo& type, void* out) {
  if (!node.is_null()) return read(error, node, *type.item, type.renew(out, 1));
  type.clear(out);
  return true;
}

bool read(DecodeError& error, JsonNode node, const TypeInfo& type, void* out) {
  switch (type.kind) {
    case Kind::boolean: return take(error, node.boolean(), as<bool>(out), "expected true or false");
    case Kind::sint8: return read_integer<std::int8_t>(error, node.sint(), out);
    case Kind::sint16: return read_integer<std::int16_t>(error, node.sint(), out);
    case Kind::sint32: return read_integer<std::int32_t>(error, node.sint(), out);
    case Kind::sint64: return read_integer<std::int64_t>(error, node.sint(), out);
    case Kind::uint8: return read_integer<std::uint8_t>(error, node.uint(), out);
    case Kind::uint16: return read_integer<std::uint16_t>(error, node.uint(), out);
    case Kind::uint32: return read_integer<std::uint32_t>(error, node.uint(), out);
    case Kind::uint64: return read_integer<std::uint64_t>(error, node.uint(), out);
    case Kind::real: return take(error, node.real(), as<double>(out), "expected a number");
    case Kind::text: return take(error, node.string(), as<std::string>(out), "expected a string");
    case Kind::enumeration: return read_enum(error, node, type, out);
    case Kind::resources: return read_resources(error, node, as<Resources>(out));
    case Kind::optional: return read_optional(error, node, type, out);
    case Kind::list: return read_list(error, node, type, out);
    case Kind::map: return read_map(error, node, type, out);
    case Kind::pair: return read_pair(error, node, type, out);
    case Kind::variant: return read_variant(error, node, type, out);
    case Kind::structure: return read_struct(error, node, type, out, "");
  }
  return false;
}

}  // namespace

std::string json_of(const TypeInfo& type, const void* value, JsonStyle style) {
  JsonSink writer(style);
  walk(writer, type, value);
  return writer.take();
}

std::optional<Error> json_into(const TypeInfo& type, std::string_view text, void* out) {
  const auto document = JsonDocument::parse(text);
  if (!document) return document.error();
  DecodeError error;
  if (!read(error, document->root(), type, out)) return error.to_error();
  return std::nullopt;
}

}  // namespace gantry::codec
