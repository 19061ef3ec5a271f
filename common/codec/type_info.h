// A TypeInfo is what the codec knows about a C++ type; type_of.h makes it at compile time. The
// walkers (msgpack_read.cc, msgpack_write.cc, json.cc, texts.cc) are compiled once and go through
// values of all types by it, so nothing is instantiated per type and per walker.
#pragma once

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

struct Alternative {  // of a variant
  std::int64_t kind;
  std::string_view name;
  const TypeInfo* type;
  void* (*emplace)(void* variant);  // a default-constructed one; returns its address
};

struct Field {
  const TypeInfo* type;
  std::uint32_t offset;  // from the beginning of the struct
  std::uint32_t number;
  std::string_view name;
};

// A set of fields, by their place in FieldTable::fields.
using FieldSet = std::uint64_t;
inline constexpr std::size_t kMostFields = 64;  // of a struct

// Eight bytes of a struct. A value in which they differ from the default's, in the bits of the
// mask, may have one of the fields set.
struct FieldWord {
  std::uint32_t offset;
  std::uint64_t mask;
  std::uint64_t dflt;
  FieldSet fields;
};

struct FieldTable {
  std::vector<Field> fields;       // in the order of declaration
  const char* defaults = nullptr;  // a default-constructed struct
  std::vector<FieldWord> words;
  FieldSet unsure = 0;  // fields of which the words do not tell
  FieldSet exact = 0;   // fields of which the words tell for certain
  FieldSet whole = 0;   // structs that are at their default if all of their own fields are

  void add(int number, std::string_view name, const void* member, const TypeInfo& type);

  // The fields of `value` that may differ from their default: a few too many, never one too few.
  [[nodiscard]] FieldSet perhaps_set(const void* value) const {
    FieldSet out = unsure;
    for (const FieldWord& word : words) {
      std::uint64_t found = 0;
      std::memcpy(&found, static_cast<const char*>(value) + word.offset, sizeof found);
      if (((found ^ word.dflt) & word.mask) != 0) [[unlikely]]
        out |= word.fields;
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
  std::string_view name{};           // as the listing of schema.h shows it; "" = by its kind
  const TypeInfo* item = nullptr;    // optional, list, map: of the value; pair: of the first
  const TypeInfo* second = nullptr;  // pair
  std::span<const EnumValue> values{};
  std::span<const Alternative> alternatives{};

  // list: replaces the elements by `count` default-constructed ones, and returns the first.
  // optional: sets it to a default-constructed value, and returns this.
  void* (*renew)(void* value, std::size_t count) = nullptr;
  void (*clear)(void* value) = nullptr;                  // optional, map
  std::size_t (*count)(const void* value) = nullptr;     // map: its size; variant: its index
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

// How libstdc++ lays out some types. type_of.h asserts the sizes, and
// tests/wire/type_info_test.cc the rest.
//
// A string has its size in its second word.
inline constexpr std::size_t kSizeOfText = sizeof(void*);
// A vector begins with pointers to its first element and behind its last; both are null before it
// has had an element.
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
