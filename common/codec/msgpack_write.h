// write(): writes one C++ value of any field type to msgpack. Included by define.h.
//
// Fields that equal their default are left out; a reader has the same default.
#pragma once

#include <type_traits>

#include "common/codec/msgpack_io.h"
#include "common/codec/traits.h"

namespace gantry::codec {

template <class T>
void write(MsgWriter& w, const T& value);

template <class T>
void write_struct(MsgWriter& w, const T& value) {
  const Defaults<T>& dflt = defaults<T>();
  const MsgWriter::Mark mark = w.begin_map(dflt.fields);
  int count = 0;
  T::fields(value, [&](int number, std::string_view, const auto& field) {
    if (same_as_default(field, same_member(value, field, dflt.value))) return;
    w.uint(static_cast<std::uint64_t>(number));
    write(w, field);
    ++count;
  });
  w.end_map(mark, count);
}

template <class T>
void write(MsgWriter& w, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    w.boolean(value);
  } else if constexpr (NamedEnum<T>) {
    w.sint(static_cast<std::int64_t>(value));
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    w.sint(value);
  } else if constexpr (std::is_integral_v<T>) {
    w.uint(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    w.real(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    w.string(value);
  } else if constexpr (kIsTypedNumber<T>) {
    write(w, value.value());
  } else if constexpr (kIsCount<T>) {
    w.sint(count_of(value));
  } else if constexpr (std::is_same_v<T, Resources>) {
    // The rows that were there from the beginning, and then only up to the last that is not zero:
    // an older release reads what it knows.
    std::uint32_t size = kResourceCount;
    while (size > 4 && value.raw()[size - 1] == 0) --size;
    w.array(size);
    for (std::uint32_t i = 0; i < size; ++i) w.sint(value.raw()[i]);
  } else if constexpr (kIsOptional<T>) {
    value ? write(w, *value) : w.nil();
  } else if constexpr (kIsVector<T>) {
    w.array(static_cast<std::uint32_t>(value.size()));
    for (const auto& item : value) write(w, item);
  } else if constexpr (kIsMap<T>) {
    w.map(static_cast<std::uint32_t>(value.size()));
    for (const auto& [key, item] : value) {
      w.string(key);
      write(w, item);
    }
  } else if constexpr (kIsPair<T>) {
    w.array(2);
    write(w, value.first);
    write(w, value.second);
  } else if constexpr (kIsVariant<T>) {
    std::visit(
        [&w]<class Alternative>(const Alternative& alternative) {
          w.array(2);
          w.uint(Alternative::kKind);
          write_struct(w, alternative);
        },
        value);
  } else if constexpr (HasFields<T>) {
    write_struct(w, value);
  } else {
    static_assert(kUnsupported<T>, "no wire form for this type: see fields.h");
  }
}

}  // namespace gantry::codec
