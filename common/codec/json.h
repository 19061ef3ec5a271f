// write_json() and read_json(): one value of any field type to and from JSON. define.h includes it.
#pragma once

#include <limits>
#include <string>
#include <type_traits>

#include "common/codec/json_io.h"
#include "common/codec/traits.h"

namespace gantry::codec {

inline constexpr std::string_view kKindKey = "kind";  // names a variant's alternative

template <class T>
void write_json(JsonWriter& w, const T& value);
template <class T>
bool read_json(DecodeError& error, JsonNode node, T& out);

template <class T>
void write_json_fields(JsonWriter& w, const T& value) {
  T::fields(value, [&w]<class Field>(int, std::string_view name, const Field& field) {
    if constexpr (kIsLeftOutUnset<Field>)
      if (!field) return;
    w.key(name);
    write_json(w, field);
  });
}

template <class T>
void write_json(JsonWriter& w, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    w.boolean(value);
  } else if constexpr (NamedEnum<T>) {
    w.string(enum_name(value));
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    w.sint(value);
  } else if constexpr (std::is_integral_v<T>) {
    w.uint(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    w.real(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    w.string(value);
  } else if constexpr (kIsTypedNumber<T>) {
    write_json(w, value.value());
  } else if constexpr (kIsCount<T>) {
    w.sint(count_of(value));
  } else if constexpr (std::is_same_v<T, Resources>) {
    w.begin_object();
    for (const ResourceRow& row : kResourceTable) {
      w.key(row.name);
      w.sint(value[row.id]);
    }
    w.end_object();
  } else if constexpr (kIsOptional<T>) {
    value ? write_json(w, *value) : w.null();
  } else if constexpr (kIsVector<T>) {
    w.begin_array();
    for (const auto& item : value) write_json(w, item);
    w.end_array();
  } else if constexpr (kIsMap<T>) {
    w.begin_object();
    for (const auto& [key, item] : value) {
      w.key(key);
      write_json(w, item);
    }
    w.end_object();
  } else if constexpr (kIsPair<T>) {
    w.begin_array();
    write_json(w, value.first);
    write_json(w, value.second);
    w.end_array();
  } else if constexpr (kIsVariant<T>) {
    w.begin_object();
    std::visit(
        [&w]<class Alternative>(const Alternative& alternative) {
          w.key(kKindKey);
          w.string(Alternative::kName);
          write_json_fields(w, alternative);
        },
        value);
    w.end_object();
  } else if constexpr (HasFields<T>) {
    w.begin_object();
    write_json_fields(w, value);
    w.end_object();
  } else {
    static_assert(kUnsupported<T>, "no JSON form for this type: see fields.h");
  }
}

// Reads `out`. `extra` names a member that is no field (a variant's kind), or is "".
template <class T>
bool read_json_struct(DecodeError& error, JsonNode node, T& out, std::string_view extra) {
  if (!node.is_object()) return error.fail("expected an object");
  bool ok = true;
  std::size_t known = !extra.empty() && node.find(extra) ? 1 : 0;
  T::fields(out, [&](int, std::string_view name, auto& field) {
    if (!ok) return;
    const auto member = node.find(name);
    if (!member) return;
    ++known;
    ok = read_json(error, *member, field) || error.in_field(name);
  });
  if constexpr (HasOlderForm<T>) out.from_older_form();
  if (!ok || known == node.size()) return ok;
  for (std::size_t i = 0; i < node.size(); ++i) {  // find which member is unknown
    bool found = node.name(i) == extra;
    T::fields(out,
              [&](int, std::string_view name, auto&) { found = found || name == node.name(i); });
    if (!found) {
      error.fail("no such field");
      return error.in_field(node.name(i));
    }
  }
  return error.fail("a field is given twice");
}

template <class Wide, class T>
bool read_json_integer(DecodeError& error, std::optional<Wide> wide, T& out) {
  if (!wide)
    return error.fail(std::is_signed_v<Wide> ? "expected an integer"
                                             : "expected an unsigned integer");
  if (*wide > static_cast<Wide>(std::numeric_limits<T>::max()))
    return error.fail(std::to_string(*wide) + " is too large");
  if (*wide < static_cast<Wide>(std::numeric_limits<T>::min()))
    return error.fail(std::to_string(*wide) + " is too small");
  out = static_cast<T>(*wide);
  return true;
}

template <class T>
bool read_json_enum(DecodeError& error, JsonNode node, T& out) {
  std::string names;
  const auto text = node.string();
  for (const auto& [value, name] : enum_names(T{})) {
    if (text && *text == name) {
      out = value;
      return true;
    }
    names.append(names.empty() ? "" : ", ").append(name);
  }
  return error.fail("expected one of: " + names);
}

inline bool read_json_resources(DecodeError& error, JsonNode node, Resources& out) {
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

template <class... Alternatives>
bool read_json_variant(DecodeError& error, JsonNode node, std::variant<Alternatives...>& out) {
  const auto kind = node.is_object() ? node.find(kKindKey) : std::nullopt;
  const auto wanted = kind ? kind->string() : std::nullopt;
  if (!wanted) return error.fail("expected an object with a \"kind\"");
  bool known = false;
  bool ok = false;
  const auto attempt = [&]<class Alternative>(std::in_place_type_t<Alternative>) {
    if (known || *wanted != Alternative::kName) return;
    known = true;
    ok = read_json_struct(error, node, out.template emplace<Alternative>(), kKindKey);
  };
  (attempt(std::in_place_type<Alternatives>), ...);
  return known ? ok : error.fail("unknown kind \"" + std::string(*wanted) + "\"");
}

template <class T>
bool read_json_list(DecodeError& error, JsonNode node, T& out) {
  if (!node.is_array()) return error.fail("expected a list");
  out.clear();
  out.reserve(node.size());
  for (std::size_t i = 0; i < node.size(); ++i)
    if (!read_json(error, node.item(i), out.emplace_back())) return error.in_item(i);
  return true;
}

template <class T>
bool read_json_map(DecodeError& error, JsonNode node, T& out) {
  if (!node.is_object()) return error.fail("expected an object");
  out.clear();
  for (std::size_t i = 0; i < node.size(); ++i)
    if (!read_json(error, node.member(i), out[std::string(node.name(i))]))
      return error.in_field(node.name(i));
  return true;
}

template <class T, class Source>
bool take_json(DecodeError& error, const Source& source, T& out, const char* expected) {
  if (!source) return error.fail(expected);
  out = T(*source);
  return true;
}

template <class T>
bool read_json(DecodeError& error, JsonNode node, T& out) {
  if constexpr (std::is_same_v<T, bool>) {
    return take_json(error, node.boolean(), out, "expected true or false");
  } else if constexpr (NamedEnum<T>) {
    return read_json_enum(error, node, out);
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return read_json_integer(error, node.sint(), out);
  } else if constexpr (std::is_integral_v<T>) {
    return read_json_integer(error, node.uint(), out);
  } else if constexpr (std::is_floating_point_v<T>) {
    return take_json(error, node.real(), out, "expected a number");
  } else if constexpr (std::is_same_v<T, std::string>) {
    return take_json(error, node.string(), out, "expected a string");
  } else if constexpr (kIsTypedNumber<T>) {
    typename T::rep raw = 0;
    if (!read_json(error, node, raw)) return false;
    out = T(raw);
    return true;
  } else if constexpr (kIsCount<T>) {
    return read_json_integer(error, node.sint(), count_of(out));
  } else if constexpr (std::is_same_v<T, Resources>) {
    return read_json_resources(error, node, out);
  } else if constexpr (kIsOptional<T>) {
    if (node.is_null()) {
      out.reset();
      return true;
    }
    return read_json(error, node, out.emplace());
  } else if constexpr (kIsVector<T>) {
    return read_json_list(error, node, out);
  } else if constexpr (kIsMap<T>) {
    return read_json_map(error, node, out);
  } else if constexpr (kIsPair<T>) {
    if (!node.is_array() || node.size() != 2) return error.fail("expected a list of two");
    return (read_json(error, node.item(0), out.first) || error.in_item(0)) &&
           (read_json(error, node.item(1), out.second) || error.in_item(1));
  } else if constexpr (kIsVariant<T>) {
    return read_json_variant(error, node, out);
  } else if constexpr (HasFields<T>) {
    return read_json_struct(error, node, out, "");
  } else {
    static_assert(kUnsupported<T>, "no JSON form for this type: see fields.h");
  }
}
}  // namespace gantry::codec
