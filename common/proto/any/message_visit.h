// visit(f, message) calls f with the struct that is in a OneOf, as std::visit does for a variant.
// It compiles f for each message that may be there: include this in few .cc files.
#pragma once

#include <type_traits>
#include <utility>

#include "common/proto/any/any_message.h"
#include "common/proto/messages.h"

namespace gantry::proto {

// Visits one of the messages whose lines are wanted; other messages are not allowed.
template <bool (*wanted)(const MessageRow&), class F, class Any>
decltype(auto) visit_where(F&& f, Any&& message) {
  constexpr bool kMoves = !std::is_lvalue_reference_v<Any>;
  const auto pass = [&]<class T>(std::type_identity<T>) -> decltype(auto) {
    auto& any = static_cast<std::conditional_t<std::is_const_v<std::remove_reference_t<Any>>,
                                               const AnyMessage, AnyMessage>&>(message);
    if constexpr (kMoves)
      return f(std::move(any.template get<T>()));
    else
      return f(any.template get<T>());
  };
  switch (message.type()) {
#define X(name, ...)                                                             \
  case MessageType::name:                                                        \
    if constexpr (wanted(kRowOf<name>)) return pass(std::type_identity<name>{}); \
    break;
#include "common/proto/messages.def"
#undef X
  }
  assertion_failed("wanted(type)", __FILE__, __LINE__, "there is no such message to visit");
}

template <class F, bool (*wanted)(const MessageRow&)>
decltype(auto) visit(F&& f, const OneOf<wanted>& message) {
  return visit_where<wanted>(f, message);
}
template <class F, bool (*wanted)(const MessageRow&)>
decltype(auto) visit(F&& f, OneOf<wanted>& message) {
  return visit_where<wanted>(f, message);
}
template <class F, bool (*wanted)(const MessageRow&)>
decltype(auto) visit(F&& f, OneOf<wanted>&& message) {
  return visit_where<wanted>(f, std::move(message));
}

}  // namespace gantry::proto
