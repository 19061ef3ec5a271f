// Visits every text of a struct through its field declarations. A rule that all texts of a message
// must keep is checked in this way, so that no field that is added later can be forgotten.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/codec/traits.h"

namespace gantry::codec {

// True for fields with octets that only their maker reads: the position in the history, a GPU's
// series, a piece of a log. They are known by name, because Bytes is the same type as a text.
constexpr bool is_octets(std::string_view field) {
  return field == "position" || field == "data";
}

// Calls f(name of the field, text) for each text in `value`, including texts in lists, variants,
// and keys and values of maps. If the struct is not const, f may change texts, but not keys of
// maps.
template <class T, class F>
void each_text(T& value, F&& f, std::string_view field = {}) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, std::string>) {
    if (!is_octets(field)) f(field, value);
  } else if constexpr (kIsOptional<Plain>) {
    if (value) each_text(*value, f, field);
  } else if constexpr (std::is_same_v<Plain, std::vector<bool>>) {
  } else if constexpr (kIsVector<Plain>) {
    for (auto& item : value) each_text(item, f, field);
  } else if constexpr (kIsMap<Plain>) {
    for (auto& [key, item] : value) {
      f(field, key);
      each_text(item, f, field);
    }
  } else if constexpr (kIsPair<Plain>) {
    each_text(value.first, f, field);
    each_text(value.second, f, field);
  } else if constexpr (kIsVariant<Plain>) {
    std::visit([&](auto& alternative) { each_text(alternative, f, field); }, value);
  } else if constexpr (HasFields<Plain>) {
    Plain::fields(value,
                  [&](int, std::string_view name, auto& member) { each_text(member, f, name); });
  }
}

}  // namespace gantry::codec
