// The codec as most of the program uses it: it converts any struct that declares fields()
// (fields.h) to msgpack and back, and to JSON and back. This header is light. What the codec must
// know about a type is in codec/define.h, which only the few .cc files include that instantiate
// types (those of common/proto/codecs for all wire messages; GANTRY_CODEC_INSTANTIATE in other
// folders for their own events and records).
//
// msgpack: a struct is a map {field number: value}. A field that equals the field of a
// default-constructed struct is left out, so the defaults are part of the wire contract. Unknown
// numbers are skipped. Wrong types, integers out of range, unknown enum numbers, trailing bytes and
// anything beyond codec/limits.h give ErrorCode::malformed and name the field: "field
// spec.shape.tasks: expected an unsigned integer".
//
// JSON: a struct is an object with field names. Ids, Instant and Duration are integers
// (microseconds), enums are names, an unset optional is null (but see fields.h), a variant is
// {"kind": name, ...its fields}, Resources are {"cpu": 4000, ...}. Bytes that are no UTF-8 are
// shown as U+FFFD. An unknown name is refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/types.h"

namespace gantry::codec {

enum class JsonStyle { compact, pretty };

struct TypeInfo;  // type_info.h

// The functions behind those below, which are compiled once for all types.
void encode_value(const TypeInfo& type, const void* value, Bytes& out);  // appends
std::optional<Error> decode_value(const TypeInfo& type, std::string_view bytes, void* out);
std::string json_of(const TypeInfo& type, const void* value, JsonStyle style);
std::optional<Error> json_into(const TypeInfo& type, std::string_view text, void* out);

template <class T>
const TypeInfo& type_of();  // defined in define.h

template <class T>
void encode_append(const T& value, Bytes& out) {
  encode_value(type_of<T>(), &value, out);
}

template <class T>
Bytes encode(const T& value) {
  Bytes out;
  out.reserve(256);
  encode_value(type_of<T>(), &value, out);
  return out;
}

template <class T>
Result<T> decode(std::string_view bytes);  // defined in define.h

template <class T>
std::string to_json(const T& value, JsonStyle style = JsonStyle::compact) {
  return json_of(type_of<T>(), &value, style);
}

template <class T>
Result<T> from_json(std::string_view text) {
  Result<T> out(tl::in_place);
  if (auto error = json_into(type_of<T>(), text, &*out)) out = tl::unexpected(*std::move(error));
  return out;
}

}  // namespace gantry::codec
