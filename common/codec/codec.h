// The codec as most of the program uses it: it converts any struct that declares fields()
// (fields.h) to msgpack and back, and to JSON and back. This header is light. The definitions are
// in codec/define.h, which only the few .cc files include that instantiate types (those of
// common/proto/codecs for all wire messages; GANTRY_CODEC_INSTANTIATE in other folders for their
// own events and records).
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

#include <string>
#include <string_view>

#include "common/result.h"
#include "common/types.h"

namespace gantry::codec {

template <class T>
Bytes encode(const T& value);

template <class T>
void encode_append(const T& value, Bytes& out);

template <class T>
Result<T> decode(std::string_view bytes);

enum class JsonStyle { compact, pretty };

template <class T>
std::string to_json(const T& value, JsonStyle style = JsonStyle::compact);

template <class T>
Result<T> from_json(std::string_view text);

}  // namespace gantry::codec
