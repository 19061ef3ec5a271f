#include "common/proto/any/any_message.h"

#include "common/proto/messages.h"

namespace gantry::proto {

AnyMessage AnyMessage::make(MessageType type) {
  switch (type) {
#define X(name, ...)      \
  case MessageType::name: \
    return name{};
#include "common/proto/messages.def"
#undef X
  }
  return {};
}

void AnyMessage::destroy() {
  switch (type_) {
#define X(name, ...)                     \
  case MessageType::name:                \
    delete static_cast<name*>(message_); \
    break;
#include "common/proto/messages.def"
#undef X
  }
}

void* AnyMessage::copy() const {
  if (message_ == nullptr) return nullptr;
  switch (type_) {
#define X(name, ...)      \
  case MessageType::name: \
    return new name(*static_cast<const name*>(message_));
#include "common/proto/messages.def"
#undef X
  }
  return nullptr;
}

}  // namespace gantry::proto
