// kTypeInfo<T>: the TypeInfo of a type that a field may have (fields.h). Only define.h includes it.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/codec/type_info.h"
#include "common/fields.h"
#include "common/money/money.h"
#include "common/quantity.h"
#include "common/resources/resources.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::codec {

template <class T>
constexpr TypeInfo make_type_info();

template <class T>
inline constinit TypeInfo kTypeInfo = make_type_info<T>();

// The name of a type, "SubmitJob" for "gantry::proto::SubmitJob", taken from the compiler's own
// spelling.
template <class T>
constexpr std::string_view type_name() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("T = ") + 4);
  name = name.substr(0, name.find_first_of(";]"));
  for (const std::string_view space : {"gantry::", "proto::", "core::"})
    if (name.starts_with(space)) name.remove_prefix(space.size());
  return name;
}

template <class T>
constexpr Kind integer_kind() {
  const bool is_signed = std::is_signed_v<T>;
  switch (sizeof(T)) {
    case 1: return is_signed ? Kind::sint8 : Kind::uint8;
    case 2: return is_signed ? Kind::sint16 : Kind::uint16;
    case 4: return is_signed ? Kind::sint32 : Kind::uint32;
    default: return is_signed ? Kind::sint64 : Kind::uint64;
  }
}

// A class that is no more than the number Rep: a pointer to it is one to the number.
template <class T, class Rep>
constexpr TypeInfo number_info(std::string_view name) {
  static_assert(sizeof(T) == sizeof(Rep) && std::is_standard_layout_v<T>);
  return {.kind = integer_kind<Rep>(), .size = sizeof(T), .name = name};
}

// InfoOf has one specialisation per family of types. A type without one has no wire form.
template <class T>
struct InfoOf;

template <class Tag, class Rep>
struct InfoOf<Id<Tag, Rep>> {
  static constexpr TypeInfo make() {
    return number_info<Id<Tag, Rep>, Rep>(sizeof(Rep) == 8 ? "id64" : "id32");
  }
};
template <class Unit, class Rep>
struct InfoOf<Quantity<Unit, Rep>> {
  static constexpr TypeInfo make() { return number_info<Quantity<Unit, Rep>, Rep>({}); }
};
template <>
struct InfoOf<Instant> {
  static constexpr TypeInfo make() { return number_info<Instant, std::int64_t>("Instant"); }
};
template <>
struct InfoOf<Duration> {
  static constexpr TypeInfo make() { return number_info<Duration, std::int64_t>("Duration"); }
};
template <>
struct InfoOf<Money> {
  static constexpr TypeInfo make() { return number_info<Money, std::int64_t>("Money"); }
};
template <>
struct InfoOf<Resources> {
  static constexpr TypeInfo make() {
    return {.kind = Kind::resources, .size = sizeof(Resources), .name = "Resources"};
  }
};
template <>
struct InfoOf<std::string> {
  static constexpr TypeInfo make() { return {.kind = Kind::text, .size = sizeof(std::string)}; }
};

template <class T>
struct InfoOf<std::optional<T>> {
  static_assert(sizeof(std::optional<T>) == (sizeof(T) / alignof(T) + 1) * alignof(T));
  static constexpr bool kLeftOut = requires { T::kLeftOutUnset; };
  static constexpr TypeInfo make() {
    return {.kind = Kind::optional,
            .left_out_unset = kLeftOut,
            .size = sizeof(std::optional<T>),
            .item = &kTypeInfo<T>,
            .renew = [](void* value, std::size_t) -> void* {
              return &as<std::optional<T>>(value).emplace();
            },
            .clear = [](void* value) { as<std::optional<T>>(value).reset(); }};
  }
};

template <class T>
struct InfoOf<std::vector<T>> {
  static_assert(sizeof(std::vector<T>) == 3 * sizeof(T*) && !std::is_same_v<T, bool>);
  static constexpr TypeInfo make() {
    return {.kind = Kind::list,
            .size = sizeof(std::vector<T>),
            .item = &kTypeInfo<T>,
            .renew = [](void* value, std::size_t count) -> void* {
              auto& list = as<std::vector<T>>(value);
              list = std::vector<T>(count);
              return list.data();
            }};
  }
};

template <class T>
struct InfoOf<std::map<std::string, T>> {
  using Map = std::map<std::string, T>;
  static_assert(sizeof(Map) == kSizeOfMap + sizeof(std::size_t));
  static void each(void* map, EntryVisitor& visitor) {
    for (auto& [key, value] : as<Map>(map)) visitor.entry(key, &value);
  }
  static constexpr TypeInfo make() {
    return {.kind = Kind::map,
            .size = sizeof(Map),
            .entry_size = sizeof(typename Map::value_type),
            .item = &kTypeInfo<T>,
            .clear = [](void* map) { as<Map>(map).clear(); },
            .entry = [](void* map, std::string key) -> void* {
              auto& entries = as<Map>(map);
              return &entries.try_emplace(entries.end(), std::move(key))->second;
            },
            .each_entry = each};
  }
};

template <class A, class B>
struct InfoOf<std::pair<A, B>> {
  static constexpr std::size_t kSecond = (sizeof(A) + alignof(B) - 1) / alignof(B) * alignof(B);
  static_assert(sizeof(std::pair<A, B>) >= kSecond + sizeof(B) &&
                sizeof(std::pair<A, B>) < kSecond + sizeof(B) + alignof(std::pair<A, B>));
  static constexpr TypeInfo make() {
    return {.kind = Kind::pair,
            .size = sizeof(std::pair<A, B>),
            .second_at = kSecond,
            .item = &kTypeInfo<A>,
            .second = &kTypeInfo<B>};
  }
};

template <class... T>
struct InfoOf<std::variant<T...>> {
  using Variant = std::variant<T...>;
  // Not Variant::emplace(), which for small alternatives compiles a move of the whole variant.
  template <class One>
  static void* emplace(void* variant) {
    std::destroy_at(&as<Variant>(variant));
    return std::get_if<One>(::new (variant) Variant(std::in_place_type<One>));
  }
  static constexpr std::array<Alternative, sizeof...(T)> kAlternatives{
      Alternative{T::kKind, T::kName, &kTypeInfo<T>, emplace<T>}...};
  static constexpr TypeInfo make() {
    return {.kind = Kind::variant,
            .size = sizeof(Variant),
            .alternatives = kAlternatives,
            .index = [](const void* variant) { return as<Variant>(variant).index(); }};
  }
};

template <NamedEnum E>
constexpr auto enum_values() {
  constexpr auto names = enum_names(E{});
  std::array<EnumValue, names.size()> out{};
  for (std::size_t i = 0; i < names.size(); ++i)
    out[i] = {static_cast<std::int64_t>(names[i].first), names[i].second};
  return out;
}
template <NamedEnum E>
inline constexpr auto kEnumValues = enum_values<E>();

struct FieldVisitor {
  FieldTable& table;
  template <class F>
  void operator()(int number, std::string_view name, F& member) {
    table.add(number, name, &member, kTypeInfo<F>);
  }
};

template <HasFields T>
constexpr TypeInfo struct_info() {
  return {.kind = Kind::structure,
          .size = sizeof(T),
          .name = type_name<T>(),
          .describe =
              [](FieldTable& table, void* room) {
                T* defaults = ::new (room) T{};
                FieldVisitor visitor{table};
                T::fields(*defaults, visitor);
              },
          .from_older_form =
              [] {
                void (*older)(void*) = nullptr;
                if constexpr (HasOlderForm<T>)
                  older = [](void* value) { as<T>(value).from_older_form(); };
                return older;
              }()};
}

template <class T>
concept VariantStruct = requires {
  typename T::variant;
};

template <class T>
constexpr TypeInfo make_type_info() {
  if constexpr (std::is_same_v<T, bool>) {
    return {.kind = Kind::boolean, .size = sizeof(T)};
  } else if constexpr (NamedEnum<T>) {
    return {.kind = Kind::enumeration,
            .number = integer_kind<std::underlying_type_t<T>>(),
            .size = sizeof(T),
            .name = type_name<T>(),
            .values = kEnumValues<T>};
  } else if constexpr (std::is_integral_v<T>) {
    return {.kind = integer_kind<T>(), .size = sizeof(T)};
  } else if constexpr (std::is_same_v<T, double>) {
    return {.kind = Kind::real, .size = sizeof(T)};
  } else if constexpr (HasFields<T>) {
    return struct_info<T>();
  } else if constexpr (VariantStruct<T>) {
    return InfoOf<typename T::variant>::make();
  } else {
    return InfoOf<T>::make();
  }
}

}  // namespace gantry::codec
