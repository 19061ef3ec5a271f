// This header has what the codec knows about types (type_of.h), and decode(). It is heavy; only .cc
// files that instantiate types include it, like this:
//
//   #include "common/codec/define.h"
//   namespace gantry { GANTRY_CODEC_INSTANTIATE(core::JobRecord) }
#pragma once

#include "common/codec/codec.h"
#include "common/codec/type_of.h"

namespace gantry::codec {

template <class T>
const TypeInfo& type_of() {
  return kTypeInfo<T>;
}

template <class T>
Result<T> decode(std::string_view bytes) {
  Result<T> out(tl::in_place);
  if (auto error = decode_value(type_of<T>(), bytes, &*out))
    out = tl::unexpected(*std::move(error));
  return out;
}

}  // namespace gantry::codec

#define GANTRY_CODEC_INSTANTIATE(type)                                      \
  template const ::gantry::codec::TypeInfo& gantry::codec::type_of<type>(); \
  template ::gantry::Result<type> gantry::codec::decode<type>(std::string_view);
