// A message of any type in one small object, which owns it. Code that only passes messages on needs
// this header, and not the structs. What depends on the type (copying and destroying a message) is
// compiled once, in any_message.cc.
//
// OneOf<wanted> takes only messages whose line in messages.def is `wanted`, so neither a wrong
// message compiles, nor a check for a message that it can never contain.
#pragma once

#include <string>
#include <utility>

#include "common/assert.h"
#include "common/proto/message_table.h"

namespace gantry::proto {

class AnyMessage {
 public:
  AnyMessage() = default;  // no message
  template <Listed T>
  AnyMessage(T message)  // NOLINT: a message becomes one of any type without a word
      : type_(number_of<T>), message_(new T(std::move(message))) {}
  static AnyMessage make(MessageType type);  // default-constructed
  AnyMessage(const AnyMessage& other) : type_(other.type_), message_(other.copy()) {}
  AnyMessage(AnyMessage&& other) noexcept
      : type_(std::exchange(other.type_, MessageType{})),
        message_(std::exchange(other.message_, nullptr)) {}
  AnyMessage& operator=(AnyMessage other) noexcept {
    std::swap(type_, other.type_);
    std::swap(message_, other.message_);
    return *this;
  }
  ~AnyMessage() {
    if (message_ != nullptr) destroy();
  }

  [[nodiscard]] bool empty() const { return message_ == nullptr; }
  [[nodiscard]] MessageType type() const { return type_; }
  [[nodiscard]] void* data() { return message_; }  // a struct of this type, or null
  [[nodiscard]] const void* data() const { return message_; }
  [[nodiscard]] std::string name() const { return message_name(static_cast<std::uint16_t>(type_)); }

  template <Listed T>
  [[nodiscard]] bool is() const {
    return type_ == number_of<T>;
  }
  template <Listed T>
  [[nodiscard]] T* get_if() {
    return is<T>() ? static_cast<T*>(message_) : nullptr;
  }
  template <Listed T>
  [[nodiscard]] const T* get_if() const {
    return is<T>() ? static_cast<const T*>(message_) : nullptr;
  }
  // The message, which must be of this type.
  template <Listed T>
  [[nodiscard]] T& get() & {
    check(number_of<T>);
    return *static_cast<T*>(message_);
  }
  template <Listed T>
  [[nodiscard]] const T& get() const& {
    check(number_of<T>);
    return *static_cast<const T*>(message_);
  }
  template <Listed T>
  [[nodiscard]] T&& get() && {
    check(number_of<T>);
    return std::move(*static_cast<T*>(message_));
  }

 private:
  void check(MessageType wanted) const {
    GANTRY_ASSERT(type_ == wanted, "a message is of another type");
  }
  void destroy();
  [[nodiscard]] void* copy() const;

  MessageType type_{};
  void* message_ = nullptr;
};

template <bool (*wanted)(const MessageRow&)>
class OneOf : public AnyMessage {
 public:
  template <class T>
  static constexpr bool takes = wanted(kRowOf<T>);
  static constexpr std::size_t kCount = [] {
    std::size_t n = 0;
    for (const MessageRow& row : kMessages) n += wanted(row) ? 1 : 0;
    return n;
  }();

  OneOf() = default;
  // Whether the message with this number is one of the wanted ones.
  static constexpr bool has(std::uint16_t number) {
    const auto row = find_message(number);
    return row && wanted(*row);
  }
  // Converts a message, which must be one of the wanted ones.
  static OneOf of(AnyMessage message) {
    GANTRY_ASSERT(has(static_cast<std::uint16_t>(message.type())), "a message is of another kind");
    OneOf out;
    static_cast<AnyMessage&>(out) = std::move(message);
    return out;
  }
  template <Listed T>
  requires takes<T> OneOf(T message) : AnyMessage(std::move(message)) {}  // NOLINT: as above

  template <Listed T>
  requires takes<T>
  [[nodiscard]] bool is() const { return AnyMessage::is<T>(); }
  template <Listed T>
  requires takes<T>
  [[nodiscard]] T* get_if() { return AnyMessage::get_if<T>(); }
  template <Listed T>
  requires takes<T>
  [[nodiscard]] const T* get_if() const { return AnyMessage::get_if<T>(); }
};

}  // namespace gantry::proto
