// A TypeInfo is what the codec knows about a C++ type; type_of.h makes it at compile time. The
// walkers (msgpack_read.cc, msgpack_write.cc, json.cc, texts.cc) are compiled once and go through
// values of all types by it, so nothing is instantiated per type and per walker.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::codec {

enum class Kind : std::uint8_t {
  boolean,
  sint8,  // integers; also Id, Quantity, Instant, Duration and Money, which hold one
  sint16,
  sint32,
  sint64,
  uint8,
  uint16,
  uint32,
  uint64,
  real,
  text,
  enumeration,
  resources,
  optional,
  list,
  map,
  pair,
  variant,
  structure,
};

struct TypeInfo;

struct EnumValue {
  std::int64_t value;
  std::string_view name;
};

struct Alternative {  // an alternative of a variant
  std::int64_t kind;
  std::string_view name;
  const TypeInfo* type;
  void* (*emplace)(void* variant);  // a default-constructed one; returns its address
};

struct Field {
  const TypeInfo* type;
  std::uint32_t offset;  // offset from the start of the struct
  std::uint16_t number;
  bool whole = false;  // a struct that is at its default if all of its own fields are
  bool exact = false;  // FieldTable::perhaps_set() tells for certain
  // An integer, boolean or enumeration is the word at `word`, shifted to the left by `left` and
  // then to the right by `unused_bits`.
  bool is_number = false;
  bool is_signed = false;
  std::uint8_t left = 0, unused_bits = 0;
  std::uint32_t word = 0;
  Kind kind{};
  std::string_view name;

  [[nodiscard]] std::int64_t integer(const void* of) const {
    std::uint64_t found;
    std::memcpy(&found, static_cast<const char*>(of) + word, sizeof found);
    found <<= left;
    return is_signed ? static_cast<std::int64_t>(found) >> unused_bits
                     : static_cast<std::int64_t>(found >> unused_bits);
  }
};

// A set of fields, by their place in FieldTable::fields.
using FieldSet = std::uint64_t;
inline constexpr std::size_t kMostFields = 64;  // of a struct

// Four words of a struct. A value of which a word differs from the default's, in the bits of its
// mask, may have one of the word's fields set.
struct FieldWords {
  std::array<std::uint32_t, 4> offset{};
  std::array<std::uint64_t, 4> mask{}, dflt{};
  std::array<FieldSet, 4> fields{};
};

struct FieldTable {
  std::vector<Field> fields;       // in the order of declaration
  const char* defaults = nullptr;  // a default-constructed struct
  std::vector<FieldWords> words;
  FieldSet unsure = 0;  // fields of which the words do not tell

  void add(int number, std::string_view name, const void* member, const TypeInfo& type);

  // The fields of `value` that may differ from their default: a few too many, never one too few.
  [[nodiscard]] FieldSet perhaps_set(const void* value) const {
    FieldSet out = unsure;
    for (const FieldWords& four : words) {
      std::array<std::uint64_t, 4> found;
      for (std::size_t i = 0; i < 4; ++i) {
        std::memcpy(&found[i], static_cast<const char*>(value) + four.offset[i], 8);
        found[i] = (found[i] ^ four.dflt[i]) & four.mask[i];
      }
      if ((found[0] | found[1] | found[2] | found[3]) == 0) continue;
      const auto of = [&](std::size_t i) { return found[i] != 0 ? four.fields[i] : 0; };
      out |= (of(0) | of(1)) | (of(2) | of(3));
    }
    return out;
  }
};

// Called with each entry of a map.
struct EntryVisitor {
  virtual void entry(const std::string& key, void* value) = 0;
  virtual ~EntryVisitor() = default;
};

struct TypeInfo {
  Kind kind{};
  Kind number{};                     // enumeration: the integer that holds it
  bool left_out_unset = false;       // optional: JSON does not show it while it is unset (fields.h)
  std::uint32_t size = 0;            // bytes
  std::uint32_t second_at = 0;       // pair: the offset of its second member
  std::uint32_t entry_size = 0;      // map: bytes of a key and a value
  std::string_view name{};           // name in the listing of schema.h; "" = by its kind
  const TypeInfo* item = nullptr;    // optional, list, map: of the value; pair: of the first
  const TypeInfo* second = nullptr;  // pair
  std::span<const EnumValue> values{};
  std::span<const Alternative> alternatives{};

  // list: replaces the elements by `count` default-constructed ones, and returns the first.
  // optional: sets it to a default-constructed value, and returns this.
  void* (*renew)(void* value, std::size_t count) = nullptr;
  void (*clear)(void* value) = nullptr;                  // optional, map
  std::size_t (*index)(const void* value) = nullptr;     // variant
  void* (*entry)(void* map, std::string key) = nullptr;  // the value at `key`, made if need be
  void (*each_entry)(void* map, EntryVisitor& visitor) = nullptr;
  void (*describe)(FieldTable& table,
                   void* room) = nullptr;          // struct: makes the defaults in `room`
  void (*from_older_form)(void* value) = nullptr;  // struct, if it has one

  mutable std::atomic<const FieldTable*> table{nullptr};  // made at the first use
};

const FieldTable& make_fields(const TypeInfo& type);

inline const FieldTable& fields_of(const TypeInfo& type) {
  const FieldTable* table = type.table.load(std::memory_order_acquire);
  return table ? *table : make_fields(type);
}

template <class T>
const T& as(const void* value) {
  return *static_cast<const T*>(value);
}
template <class T>
T& as(void* value) {
  return *static_cast<T*>(value);
}
inline const void* at(const void* value, std::size_t offset) {
  return static_cast<const char*>(value) + offset;
}
inline void* at(void* value, std::size_t offset) {
  return static_cast<char*>(value) + offset;
}

// How libstdc++ lays out some types. type_of.h asserts the sizes, and tests/wire/type_info_test.cc
// the rest.
//
// The second word of a string is its size.
inline constexpr std::size_t kSizeOfText = sizeof(void*);
// A map has its size in its last word.
inline constexpr std::size_t kSizeOfMap = 5 * sizeof(void*);
// A vector begins with pointers to its first element and past its last; both are null before its
// first element.
struct Elements {
  char* begin;
  char* end;
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(end - begin); }
};
inline Elements elements_of(const void* list) {
  Elements out;
  std::memcpy(&out, list, sizeof out);
  return out;
}
// An optional is its value, and then a bool. A variant begins with its alternative.
inline bool has_value(const TypeInfo& type, const void* optional) {
  return as<bool>(at(optional, type.item->size));
}

inline std::size_t count_of(const void* map) {
  return as<std::size_t>(at(map, kSizeOfMap));
}

// The integer in `value`, whose kind is `kind`.
std::int64_t load_integer(Kind kind, const void* value);
// Stores a value of an enumeration.
void store_integer(const TypeInfo& enumeration, std::int64_t value, void* out);
std::string_view enum_name(const TypeInfo& type, std::int64_t value);  // "?" if it has none

// Returns true if `value` need not be written, because a reader's default `dflt` already has the
// same value. The comparison is exact only for types that are cheap to compare: a list that is not
// empty always counts as different.
bool same_as_default(const TypeInfo& type, const void* value, const void* dflt);

}  // namespace gantry::codec
