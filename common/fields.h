// How a struct declares its wire form. Every message, event and record is a plain struct with
//
//   GANTRY_FIELDS(FIELD(1, job), FIELD(2, user), NAMED_FIELD(3, "given", older_given))
//
// which defines `fields(self, visitor)`: it calls visitor(number, name, member) for each field.
// Self is T or const T, so one list serves writing and reading. FIELD has the member's name as its
// own. Numbers (1..) are the msgpack map keys and are permanent; names give JSON and `show` output.
// A reader skips unknown numbers and leaves missing ones at their default, so a field can be added
// and never renumbered.
//
// Field types: bool, integers, double, std::string, Id<>, Quantity<>, Instant, Duration, Money,
// Resources, enums with names (below), std::optional, std::vector, std::map<std::string, T>,
// std::pair, std::variant of structs (each alternative has `static constexpr int kKind`, unique in
// the variant, and `static constexpr std::string_view kName`), and nested structs of this kind.
//
// JSON shows an optional that is not set as null. If its struct has `static constexpr bool
// kLeftOutUnset = true`, JSON leaves it out instead. This is for members that only the two ends of
// the wire need, for example the end of a page.
//
// A struct that had another form in older releases has `void from_older_form()`, which the decoder
// calls once, after the last field. It converts members that only an older writer sets into the
// present fields. It cannot fail: what it does not understand stays unchanged.
//
// An enum that is sent or stored has a table of names, enum_names(E), which is found by ADL:
//   enum class Hold : std::uint8_t { none = 0, user = 1 };
//   GANTRY_NAMES(Hold, {none, "none"}, {user, "user"})
// msgpack has the number and JSON the name. An unknown number is a decode error.
#pragma once

#include <array>
#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

#define GANTRY_FIELDS(...)                                               \
  template <class Self, class V>                                         \
  static void fields([[maybe_unused]] Self& s, [[maybe_unused]] V&& v) { \
    __VA_ARGS__;                                                         \
  }
#define FIELD(number, member) v(number, #member, s.member)
#define NAMED_FIELD(number, name, member) v(number, name, s.member)

#define GANTRY_NAMES(Enum, ...)                                             \
  constexpr auto enum_names(Enum) {                                         \
    using enum Enum;                                                        \
    return std::to_array<std::pair<Enum, std::string_view>>({__VA_ARGS__}); \
  }

namespace gantry::codec {

struct AnyVisitor {
  template <class T>
  void operator()(int, std::string_view, T&&) const {}
};

template <class T>
concept HasFields = requires(T& t) {
  T::fields(t, AnyVisitor{});
};

template <class T>
concept HasOlderForm = requires(T& t) {
  t.from_older_form();
};

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) {
  enum_names(e);
};

}  // namespace gantry::codec

namespace gantry {

// The name of an enum value; "?" if the table does not have the value.
template <codec::NamedEnum E>
constexpr std::string_view enum_name(E value) {
  for (const auto& [v, name] : enum_names(value))
    if (v == value) return name;
  return "?";
}

}  // namespace gantry
