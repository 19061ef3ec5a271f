#include "common/codec/type_info.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <new>

#include "common/assert.h"
#include "common/resources/resources.h"

namespace gantry::codec {

void FieldTable::add(int number, std::string_view name, const void* member, const TypeInfo& type) {
  const auto offset = static_cast<const char*>(member) - defaults;
  Field field{.type = &type,
              .offset = static_cast<std::uint32_t>(offset),
              .number = static_cast<std::uint16_t>(number),
              .kind = type.kind,
              .name = name};
  field.whole =
      type.kind == Kind::structure && same_as_default(type, member, fields_of(type).defaults);
  fields.push_back(field);
}

namespace {

// Collects the bytes of a struct that show whether a field differs from its default.
class WordMaker {
 public:
  WordMaker(FieldTable& table, std::size_t size) : table_(table), size_(size) {}

  void add_field(Field& field, FieldSet one) {
    const TypeInfo& type = *field.type;
    const Kind kind = type.kind == Kind::enumeration ? type.number : type.kind;
    field.is_number = kind < Kind::real && size_ >= 8;
    field.is_signed = kind <= Kind::sint64 && kind >= Kind::sint8;
    if (field.is_number) {
      field.word = static_cast<std::uint32_t>(std::min<std::size_t>(field.offset, size_ - 8));
      field.unused_bits = static_cast<std::uint8_t>(64 - 8 * type.size);
      field.left = static_cast<std::uint8_t>(field.unused_bits - 8 * (field.offset - field.word));
    }
    if (size_ < 8 || (field.whole && field.type->size > kLarge))
      table_.unsure |= one;
    else
      add(*field.type, field.offset, one);
  }

  // The fields that share no word with others and are completely covered by words.
  [[nodiscard]] FieldSet exact() const {
    FieldSet out = ~(table_.unsure | doubtful_);
    for (const FieldWords& four : table_.words)
      for (const FieldSet fields : four.fields)
        if (!std::has_single_bit(fields)) out &= ~fields;
    return out;
  }

 private:
  // In larger structs no words are used, nor in a struct that contains one.
  static constexpr std::size_t kLarge = 256;

  // The field `one` has a part of this type at this offset.
  void add(const TypeInfo& type, std::size_t offset, FieldSet one) {
    switch (type.kind) {
      case Kind::text: return empty(offset + kSizeOfText, sizeof(std::size_t), one);
      case Kind::list:
        doubtful_ |= one;  // an empty list may have room
        return empty(offset, sizeof(Elements), one);
      case Kind::optional: return empty(offset + type.item->size, 1, one);
      case Kind::map: return empty(offset + kSizeOfMap, sizeof(std::size_t), one);
      case Kind::variant: table_.unsure |= one; return;
      case Kind::pair:
        add(*type.item, offset, one);
        return add(*type.second, offset + type.second_at, one);
      case Kind::structure:
        doubtful_ |= one;
        for (const Field& field : fields_of(type).fields)
          add(*field.type, offset + field.offset, one);
        return;
      case Kind::real:
        doubtful_ |= one;  // two zeros
        if (std::isnan(as<double>(table_.defaults + offset))) table_.unsure |= one;
        [[fallthrough]];
      default: return bytes(offset, type.size, one);
    }
  }

  // The field is at its default if these bytes are zero, as they are there.
  void empty(std::size_t offset, std::size_t count, FieldSet one) {
    for (std::size_t i = 0; i < count; ++i)
      if (table_.defaults[offset + i] != 0) table_.unsure |= one;
    bytes(offset, count, one);
  }
  void bytes(std::size_t offset, std::size_t count, FieldSet one) {
    for (; count > 0; --count, ++offset) {
      const std::size_t start = std::min(offset / 8 * 8, size_ - 8);
      const std::size_t word = word_at(start);
      FieldWords& four = table_.words[word / 4];
      four.mask[word % 4] |= std::uint64_t{0xff} << (8 * (offset - start));
      four.fields[word % 4] |= one;
    }
  }
  std::size_t word_at(std::size_t start) {
    for (std::size_t i = 0; i < count_; ++i)
      if (table_.words[i / 4].offset[i % 4] == start) return i;
    if (count_ % 4 == 0) table_.words.emplace_back();
    FieldWords& four = table_.words.back();
    four.offset[count_ % 4] = static_cast<std::uint32_t>(start);
    std::memcpy(&four.dflt[count_ % 4], table_.defaults + start, 8);
    return count_++;
  }

  FieldTable& table_;
  std::size_t size_;
  std::size_t count_ = 0;  // words
  FieldSet doubtful_ = 0;
};

}  // namespace

const FieldTable& make_fields(const TypeInfo& type) {
  static std::recursive_mutex making;  // recursive, because a struct asks for those inside it
  const std::lock_guard lock(making);
  if (const FieldTable* made = type.table.load(std::memory_order_relaxed)) return *made;
  auto* table = new FieldTable;  // never freed, like the type itself
  void* room = ::operator new(type.size);
  table->defaults = static_cast<const char*>(room);
  type.describe(*table, room);
  table->fields.shrink_to_fit();
  GANTRY_ASSERT(table->fields.size() <= kMostFields, "a struct has at most kMostFields fields");
  WordMaker words(*table, type.size);
  for (std::size_t i = 0; i < table->fields.size(); ++i)
    words.add_field(table->fields[i], FieldSet{1} << i);
  for (std::size_t i = 0; i < table->fields.size(); ++i)
    table->fields[i].exact = (words.exact() >> i & 1) != 0;
  type.table.store(table, std::memory_order_release);
  return *table;
}

std::int64_t load_integer(Kind kind, const void* value) {
  switch (kind) {
    case Kind::sint8: return as<std::int8_t>(value);
    case Kind::sint16: return as<std::int16_t>(value);
    case Kind::sint32: return as<std::int32_t>(value);
    case Kind::sint64: return as<std::int64_t>(value);
    case Kind::uint8: return as<std::uint8_t>(value);
    case Kind::uint16: return as<std::uint16_t>(value);
    case Kind::uint32: return as<std::uint32_t>(value);
    default: return static_cast<std::int64_t>(as<std::uint64_t>(value));
  }
}

void store_integer(const TypeInfo& enumeration, std::int64_t value, void* out) {
  switch (enumeration.size) {
    case 1: as<std::uint8_t>(out) = static_cast<std::uint8_t>(value); return;
    case 2: as<std::uint16_t>(out) = static_cast<std::uint16_t>(value); return;
    case 4: as<std::uint32_t>(out) = static_cast<std::uint32_t>(value); return;
    default: as<std::uint64_t>(out) = static_cast<std::uint64_t>(value); return;
  }
}

std::string_view enum_name(const TypeInfo& type, std::int64_t value) {
  for (const EnumValue& one : type.values)
    if (one.value == value) return one.name;
  return "?";
}

bool same_as_default(const TypeInfo& type, const void* value, const void* dflt) {
  switch (type.kind) {
    case Kind::boolean:
    case Kind::sint8:
    case Kind::uint8: return as<char>(value) == as<char>(dflt);
    case Kind::sint16:
    case Kind::uint16: return as<std::uint16_t>(value) == as<std::uint16_t>(dflt);
    case Kind::sint32:
    case Kind::uint32: return as<std::uint32_t>(value) == as<std::uint32_t>(dflt);
    case Kind::sint64:
    case Kind::uint64: return as<std::uint64_t>(value) == as<std::uint64_t>(dflt);
    case Kind::real: return as<double>(value) == as<double>(dflt);
    case Kind::text: return as<std::string>(value) == as<std::string>(dflt);
    case Kind::enumeration: return std::memcmp(value, dflt, type.size) == 0;
    case Kind::resources: return as<Resources>(value) == as<Resources>(dflt);
    case Kind::optional: return !has_value(type, value) && !has_value(type, dflt);
    case Kind::list: return elements_of(value).bytes() == 0 && elements_of(dflt).bytes() == 0;
    case Kind::map: return count_of(value) == 0 && count_of(dflt) == 0;
    case Kind::pair:
      return same_as_default(*type.item, value, dflt) &&
             same_as_default(*type.second, at(value, type.second_at), at(dflt, type.second_at));
    case Kind::variant: return false;
    case Kind::structure:
      for (const Field& field : fields_of(type).fields)
        if (!same_as_default(*field.type, at(value, field.offset), at(dflt, field.offset)))
          return false;
      return true;
  }
  return false;
}

}  // namespace gantry::codec
