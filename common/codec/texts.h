// Visits every text of a struct through its field declarations. A rule that all texts of a message
// must keep is checked in this way, so that no field that is added later can be forgotten.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/codec/codec.h"

namespace gantry::codec {

struct TextVisitor {
  // `field` is the name of the field; is_key is true if the text is the key of a map, which must
  // not be changed.
  virtual void text(std::string_view field, std::string& text, bool is_key) = 0;
  virtual ~TextVisitor() = default;
};

void each_text(const TypeInfo& type, void* value, std::string_view field, TextVisitor& visitor);

// Calls f(name of the field, text) for each text in `value`, including texts in lists, variants,
// and keys and values of maps, but not for octets that only their maker reads. If the struct is not
// const, f may change texts, but not keys of maps.
template <class T, class F>
void each_text(T& value, F&& f) {
  using Plain = std::remove_const_t<T>;
  struct Visitor : TextVisitor {
    F& f;
    explicit Visitor(F& call) : f(call) {}
    void text(std::string_view field, std::string& text, bool is_key) override {
      if (std::is_const_v<T> || is_key) {
        f(field, std::as_const(text));
      } else {
        if constexpr (!std::is_const_v<T>) f(field, text);
      }
    }
  } visitor(f);
  each_text(type_of<Plain>(), const_cast<Plain*>(&value), {}, visitor);
}

}  // namespace gantry::codec
