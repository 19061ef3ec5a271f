// The definitions behind codec/codec.h. This header is heavy; only .cc files that instantiate types
// include it, like this:
//
//   #include "common/codec/define.h"
//   namespace gantry { GANTRY_CODEC_INSTANTIATE(core::JobRecord) }
//
// GANTRY_CODEC_INSTANTIATE gives a type msgpack and the writing of JSON;
// GANTRY_CODEC_INSTANTIATE_BINARY only msgpack, for what is never shown;
// GANTRY_CODEC_INSTANTIATE_FROM_JSON adds the reading of JSON, which few types need, and which
// costs as much to compile as the rest.
#pragma once

#include "common/codec/codec.h"
#include "common/codec/json.h"
#include "common/codec/msgpack_read.h"
#include "common/codec/msgpack_write.h"

namespace gantry::codec {

template <class T>
void encode_append(const T& value, Bytes& out) {
  MsgWriter writer(out);
  write_struct(writer, value);
}

template <class T>
Bytes encode(const T& value) {
  Bytes out;
  out.reserve(256);
  encode_append(value, out);
  return out;
}

Error oversize(std::size_t bytes);  // more than kMaxMessageBytes
Error trailing();                   // bytes after the message

template <class T>
Result<T> decode(std::string_view bytes) {
  if (bytes.size() > kMaxMessageBytes) return tl::unexpected(oversize(bytes.size()));
  Result<T> out{T{}};
  MsgReader reader(bytes);
  if (!read_struct(reader, *out)) return tl::unexpected(reader.error().to_error());
  if (!reader.at_end()) return tl::unexpected(trailing());
  return out;
}

template <class T>
std::string to_json(const T& value, JsonStyle style) {
  JsonWriter writer(style);
  write_json(writer, value);
  return writer.take();
}

template <class T>
Result<T> from_json(std::string_view text) {
  ASSIGN(document, JsonDocument::parse(text));
  Result<T> out{T{}};
  DecodeError error;
  if (!read_json(error, document->root(), *out)) return tl::unexpected(error.to_error());
  return out;
}

}  // namespace gantry::codec

#define GANTRY_CODEC_INSTANTIATE_BINARY(type)                                      \
  template ::gantry::Bytes gantry::codec::encode<type>(const type&);               \
  template void gantry::codec::encode_append<type>(const type&, ::gantry::Bytes&); \
  template ::gantry::Result<type> gantry::codec::decode<type>(std::string_view);

#define GANTRY_CODEC_INSTANTIATE(type)  \
  GANTRY_CODEC_INSTANTIATE_BINARY(type) \
  template std::string gantry::codec::to_json<type>(const type&, gantry::codec::JsonStyle);

#define GANTRY_CODEC_INSTANTIATE_FROM_JSON(type) \
  template ::gantry::Result<type> gantry::codec::from_json<type>(std::string_view);
