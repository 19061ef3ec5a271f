// Classifies C++ types by the kind of field that they are: one place for msgpack, JSON and the
// schema listing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/fields.h"
#include "common/money/money.h"
#include "common/quantity.h"
#include "common/resources/resources.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::codec {

template <class T>
inline constexpr bool kIsId = false;
template <class Tag, class Rep>
inline constexpr bool kIsId<Id<Tag, Rep>> = true;

template <class T>
inline constexpr bool kIsQuantity = false;
template <class Unit, class Rep>
inline constexpr bool kIsQuantity<Quantity<Unit, Rep>> = true;

template <class T>
inline constexpr bool kIsTypedNumber = kIsId<T> || kIsQuantity<T>;  // written as its representation

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// An optional that JSON leaves out while it is not set: fields.h says which types are.
template <class T>
inline constexpr bool kIsLeftOutUnset = false;
template <class T>
requires requires {
  T::kLeftOutUnset;
}
inline constexpr bool kIsLeftOutUnset<std::optional<T>> = true;

template <class T>
inline constexpr bool kIsVector = false;
template <class T, class A>
inline constexpr bool kIsVector<std::vector<T, A>> = true;

template <class T>
inline constexpr bool kIsMap = false;
template <class T, class C, class A>
inline constexpr bool kIsMap<std::map<std::string, T, C, A>> = true;

template <class T>
inline constexpr bool kIsPair = false;
template <class A, class B>
inline constexpr bool kIsPair<std::pair<A, B>> = true;

template <class T>
inline constexpr bool kIsVariant = false;
template <class... T>
inline constexpr bool kIsVariant<std::variant<T...>> = true;

template <class T>
inline constexpr bool kIsCount =  // types that are one int64 with a meaning
    std::is_same_v<T, Instant> || std::is_same_v<T, Duration> || std::is_same_v<T, Money>;
template <class T>
constexpr auto& count_of(T& value) {
  if constexpr (std::is_same_v<std::remove_const_t<T>, Money>)
    return value.micros;
  else
    return value.us;
}

template <class T>
inline constexpr bool kUnsupported = false;

// A default-constructed T, and the number of fields that it declares.
template <class T>
struct Defaults {
  T value{};
  int fields = 0;
  Defaults() {
    T::fields(value, [this](int, std::string_view, const auto&) { ++fields; });
  }
};

template <class T>
const Defaults<T>& defaults() {
  static const Defaults<T> instance;
  return instance;
}

// The member of `other` that corresponds to `member` of `whole`. Fields are members by contract
// (fields.h), so both structs have it at the same offset.
template <class T, class F>
const F& same_member(const T& whole, const F& member, const T& other) {
  const auto offset =
      reinterpret_cast<const char*>(&member) - reinterpret_cast<const char*>(&whole);
  return *reinterpret_cast<const F*>(reinterpret_cast<const char*>(&other) + offset);
}

// True if `value` need not be written, because a reader's default `dflt` already has the same
// value. The comparison is exact only for types that are cheap to compare: a list that is not empty
// always counts as different.
template <class T>
bool same_as_default(const T& value, const T& dflt) {
  if constexpr (HasFields<T>) {
    bool same = true;
    T::fields(value, [&](int, std::string_view, const auto& field) {
      same = same && same_as_default(field, same_member(value, field, dflt));
    });
    return same;
  } else if constexpr (kIsOptional<T>) {
    return !value && !dflt;
  } else if constexpr (kIsVector<T> || kIsMap<T>) {
    return value.empty() && dflt.empty();
  } else if constexpr (kIsPair<T>) {
    return same_as_default(value.first, dflt.first) && same_as_default(value.second, dflt.second);
  } else if constexpr (kIsVariant<T>) {
    return false;
  } else {
    return value == dflt;
  }
}

}  // namespace gantry::codec
