// Every text of a struct, by its field declarations: what is to hold of all texts of a message is
// asked here, so that a field that is added later cannot be forgotten.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/codec/traits.h"

namespace gantry::codec {

// Octets that only their maker reads: where a page of the history ends, a GPU's series, a piece
// of a log. By name, as Bytes is the same type as a text.
constexpr bool is_octets(std::string_view field) {
  return field == "position" || field == "data";
}

// Calls f(name of the field, text) for each text in `value`, those in lists and variants and the
// keys and values of maps too. With a struct that is not const, f may change texts but keys.
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
