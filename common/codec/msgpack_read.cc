// Reads a value of any type from msgpack.
#include <fmt/core.h>

#include <limits>

#include "common/codec/codec.h"
#include "common/codec/msgpack_io.h"
#include "common/codec/type_info.h"
#include "common/resources/resources.h"

namespace gantry::codec {
namespace {

bool read(MsgReader& r, const TypeInfo& type, void* out);

const Field* find(const Field* from, const Field* to, std::uint64_t number) {
  for (; from != to; ++from)
    if (from->number == number) return from;
  return nullptr;
}

bool read_fields(MsgReader& r, const FieldTable& table, std::uint32_t entries, void* out) {
  const Field* const begin = table.fields.data();
  const Field* const end = begin + table.fields.size();
  const Field* next = begin;  // writers send the fields in the order of declaration
  for (; entries > 0; --entries) {
    std::uint64_t number = 0;
    if (!r.field_number(number)) return false;
    const Field* field = find(next, end, number);
    if (!field) field = find(begin, next, number);
    if (field) {
      if (!read(r, *field->type, at(out, field->offset))) return r.error().in_field(field->name);
      next = field + 1;
    } else if (!r.skip()) {
      return false;
    }
  }
  return true;
}

bool read_struct(MsgReader& r, const TypeInfo& type, void* out) {
  std::uint32_t entries = 0;
  if (!r.enter() || !r.map(entries)) return false;
  if (!read_fields(r, fields_of(type), entries, out)) return false;
  if (type.from_older_form) type.from_older_form(out);
  r.leave();
  return true;
}

bool read_list(MsgReader& r, const TypeInfo& type, void* out) {
  const TypeInfo& item = *type.item;
  std::uint32_t size = 0;
  if (!r.enter() || !r.array(size)) return false;
  if (!r.charge(std::size_t{size} * item.size)) return false;
  void* one = type.renew(out, size);
  for (std::uint32_t i = 0; i < size; ++i, one = at(one, item.size))
    if (!read(r, item, one)) return r.error().in_item(i);
  r.leave();
  return true;
}

bool read_map(MsgReader& r, const TypeInfo& type, void* out) {
  std::uint32_t size = 0;
  if (!r.enter() || !r.map(size)) return false;
  if (!r.charge(size * (type.entry_size + 4 * sizeof(void*)))) return false;
  type.clear(out);
  for (std::uint32_t i = 0; i < size; ++i) {
    std::string_view key;
    if (!r.string(key)) return r.error().in_item(i);
    if (!read(r, *type.item, type.entry(out, std::string(key)))) return r.error().in_field(key);
  }
  r.leave();
  return true;
}

bool read_variant(MsgReader& r, const TypeInfo& type, void* out) {
  std::uint32_t size = 0;
  std::uint64_t kind = 0;
  if (!r.enter() || !r.array(size)) return false;
  if (size != 2) return r.error().fail("expected [kind, fields]");
  if (!r.field_number(kind)) return false;
  for (const Alternative& one : type.alternatives) {
    if (static_cast<std::uint64_t>(one.kind) != kind) continue;
    if (!read_struct(r, *one.type, one.emplace(out))) return r.error().in_field(one.name);
    r.leave();
    return true;
  }
  return r.error().fail("unknown kind " + std::to_string(kind));
}

bool read_resources(MsgReader& r, Resources& out) {
  std::uint32_t size = 0;
  if (!r.array(size)) return false;
  if (size > kResourceCount) return r.error().fail("more resources than this build knows");
  out = {};
  for (std::uint32_t i = 0; i < size; ++i)
    if (!r.sint(out.raw()[i], 0, std::numeric_limits<std::int64_t>::max()))
      return r.error().in_field(kResourceTable[i].name);
  return true;
}

bool read_optional(MsgReader& r, const TypeInfo& type, void* out) {
  if (!r.skip_nil()) return read(r, *type.item, type.renew(out, 1));
  type.clear(out);
  return true;
}

bool read_pair(MsgReader& r, const TypeInfo& type, void* out) {
  std::uint32_t size = 0;
  if (!r.array(size)) return false;
  if (size != 2) return r.error().fail("expected a list of two");
  return (read(r, *type.item, out) || r.error().in_item(0)) &&
         (read(r, *type.second, at(out, type.second_at)) || r.error().in_item(1));
}

bool read_enum(MsgReader& r, const TypeInfo& type, void* out) {
  std::int64_t raw = 0;
  if (!r.sint(raw, std::numeric_limits<std::int64_t>::min(),
              std::numeric_limits<std::int64_t>::max()))
    return false;
  for (const EnumValue& one : type.values)
    if (one.value == raw) {
      store_integer(type, raw, out);
      return true;
    }
  return r.error().fail(std::to_string(raw) + " is not one of its values");
}

template <class T>
bool read_sint(MsgReader& r, void* out) {
  std::int64_t wide = 0;
  if (!r.sint(wide, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())) return false;
  as<T>(out) = static_cast<T>(wide);
  return true;
}

template <class T>
bool read_uint(MsgReader& r, void* out) {
  std::uint64_t wide = 0;
  if (!r.uint(wide, std::numeric_limits<T>::max())) return false;
  as<T>(out) = static_cast<T>(wide);
  return true;
}

bool read_text(MsgReader& r, std::string& out) {
  std::string_view view;
  if (!r.string(view)) return false;
  out.assign(view);
  return true;
}

bool read(MsgReader& r, const TypeInfo& type, void* out) {
  switch (type.kind) {
    case Kind::boolean: return r.boolean(as<bool>(out));
    case Kind::sint8: return read_sint<std::int8_t>(r, out);
    case Kind::sint16: return read_sint<std::int16_t>(r, out);
    case Kind::sint32: return read_sint<std::int32_t>(r, out);
    case Kind::sint64: return read_sint<std::int64_t>(r, out);
    case Kind::uint8: return read_uint<std::uint8_t>(r, out);
    case Kind::uint16: return read_uint<std::uint16_t>(r, out);
    case Kind::uint32: return read_uint<std::uint32_t>(r, out);
    case Kind::uint64: return read_uint<std::uint64_t>(r, out);
    case Kind::real: return r.real(as<double>(out));
    case Kind::text: return read_text(r, as<std::string>(out));
    case Kind::enumeration: return read_enum(r, type, out);
    case Kind::resources: return read_resources(r, as<Resources>(out));
    case Kind::optional: return read_optional(r, type, out);
    case Kind::list: return read_list(r, type, out);
    case Kind::map: return read_map(r, type, out);
    case Kind::pair: return read_pair(r, type, out);
    case Kind::variant: return read_variant(r, type, out);
    case Kind::structure: return read_struct(r, type, out);
  }
  return false;
}

}  // namespace

bool read_value(MsgReader& r, const TypeInfo& type, void* out) {
  return read(r, type, out);
}

std::optional<Error> decode_whole(std::string_view bytes,
                                  const std::function<bool(MsgReader&)>& read_all) {
  if (bytes.size() > kMaxMessageBytes)
    return Error{ErrorCode::malformed, fmt::format("a message of {} bytes, at most {} are allowed",
                                                   bytes.size(), kMaxMessageBytes)};
  MsgReader reader(bytes);
  if (!read_all(reader)) return reader.error().to_error();
  if (!reader.at_end()) return Error{ErrorCode::malformed, "bytes behind the end of the message"};
  return std::nullopt;
}

std::optional<Error> decode_value(const TypeInfo& type, std::string_view bytes, void* out) {
  return decode_whole(bytes, [&](MsgReader& r) { return read_struct(r, type, out); });
}

}  // namespace gantry::codec
