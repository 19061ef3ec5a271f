// The codec of a message of any type: a switch selects what the codec knows about its struct.
#include "common/proto/any/message_codec.h"

#include <utility>

#include "common/codec/texts.h"

namespace gantry::proto {

const codec::TypeInfo& type_info(MessageType type) {
  switch (type) {
#define X(name, ...)      \
  case MessageType::name: \
    return codec::type_of<name>();
#include "common/proto/messages.def"
#undef X
  }
  assertion_failed("type", __FILE__, __LINE__, "there is no such message");
}

Result<AnyMessage> decode_message(std::uint16_t number, std::string_view body) {
  const auto row = find_message(number);
  if (!row) return fail(ErrorCode::unsupported, message_name(number) + " is no message");
  AnyMessage out = AnyMessage::make(row->type);
  if (auto error = codec::decode_value(type_info(row->type), body, out.data()))
    return fail(error->code, message_name(number) + ": " + error->message);
  return out;
}

Bytes encode_message(const AnyMessage& message) {
  Bytes out;
  out.reserve(256);
  codec::encode_value(type_info(message.type()), message.data(), out);
  return out;
}

void each_text(const AnyMessage& message,
               const std::function<void(std::string_view, const std::string&)>& f) {
  struct Visitor : codec::TextVisitor {
    const std::function<void(std::string_view, const std::string&)>& f;
    explicit Visitor(decltype(f) call) : f(call) {}
    void text(std::string_view field, std::string& text, bool) override { f(field, text); }
  } visitor(f);
  // The visitor changes nothing.
  codec::each_text(type_info(message.type()), const_cast<void*>(message.data()), {}, visitor);
}

void each_text(AnyMessage& message, const std::function<void(std::string_view, std::string&)>& f) {
  struct Visitor : codec::TextVisitor {
    const std::function<void(std::string_view, std::string&)>& f;
    explicit Visitor(decltype(f) call) : f(call) {}
    void text(std::string_view field, std::string& text, bool is_key) override {
      if (!is_key) f(field, text);
    }
  } visitor(f);
  codec::each_text(type_info(message.type()), message.data(), {}, visitor);
}

}  // namespace gantry::proto
