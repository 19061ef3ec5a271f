// The codec of a message whose type is known only while the program runs. It is compiled in
// common/proto/codecs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/codec/codec.h"
#include "common/proto/any/any_message.h"
#include "common/result.h"
#include "common/types.h"

namespace gantry::proto {

const codec::TypeInfo& type_info(MessageType type);

// The error malformed names the message and the field; unsupported means that messages.def does not
// have the number.
Result<AnyMessage> decode_message(std::uint16_t number, std::string_view body);
Bytes encode_message(const AnyMessage& message);  // the message must not be empty

// Calls f(name of the field, text) for each text of the message, which must not be empty
// (common/codec/texts.h says which texts there are).
void each_text(const AnyMessage& message,
               const std::function<void(std::string_view, const std::string&)>& f);
// The same, and f may change the texts. Keys of maps are skipped.
void each_text(AnyMessage& message, const std::function<void(std::string_view, std::string&)>& f);

}  // namespace gantry::proto
