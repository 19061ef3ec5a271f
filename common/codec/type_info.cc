#include "common/codec/type_info.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <new>

#include "common/assert.h"
#include "common/resources/resources.h"

namespace gantry::codec {

void FieldTable::add(int number, std::string_view name, const void* member, const TypeInfo& type) {
  const auto offset = static_cast<const char*>(member) - defaults;
  fields.push_back(
      {&type, static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(number), name});
}

namespace {

// Collects which bytes of a struct tell that a field is not at its default.
class WordMaker {
 public:
  WordMaker(FieldTable& table, std::size_t size) : table_(table), size_(size) {}

  void add_field(const Field& field, std::size_t index) {
    const FieldSet one = FieldSet{1} << index;
    if (field.type->kind == Kind::structure) {
      const char* dflt = fields_of(*field.type).defaults;
      if (same_as_default(*field.type, dflt, table_.defaults + field.offset)) {
        table_.whole |= one;
        if (field.type->size > kLarge) {
          table_.unsure |= one;
          return;
        }
      }
    }
    add(*field.type, field.offset, index);
  }

  // The fields that share no word, and of which the words tell all.
  [[nodiscard]] FieldSet exact() const {
    FieldSet out = ~(table_.unsure | table_.whole | doubtful_);
    for (const FieldWord& word : table_.words)
      if (!std::has_single_bit(word.fields)) out &= ~word.fields;
    return out;
  }

 private:
  // A struct of more bytes is not looked at twice, in the words of the struct around it as well.
  static constexpr std::size_t kLarge = 256;

  // The field at `index` has a part of this type at this offset.
  void add(const TypeInfo& type, std::size_t offset, std::size_t index) {
    const char* dflt = table_.defaults + offset;
    switch (type.kind) {
      case Kind::text: return empty(offset + kSizeOfText, sizeof(std::size_t), index);
      case Kind::list:
        doubtful_ |= FieldSet{1} << index;  // an empty list may have room
        return empty(offset, sizeof(Elements), index);
      case Kind::optional: return empty(offset + type.item->size, 1, index);
      case Kind::map:
      case Kind::variant: table_.unsure |= FieldSet{1} << index; return;
      case Kind::pair:
        add(*type.item, offset, index);
        return add(*type.second, offset + type.second_at, index);
      case Kind::structure:
        for (const Field& field : fields_of(type).fields)
          add(*field.type, offset + field.offset, index);
        return;
      case Kind::real:
        doubtful_ |= FieldSet{1} << index;  // two zeros
        if (as<double>(dflt) != as<double>(dflt)) table_.unsure |= FieldSet{1} << index;
        return bytes(offset, type.size, index);
      default: return bytes(offset, type.size, index);
    }
  }

  // The field is at its default if these bytes are zero, as they are there.
  void empty(std::size_t offset, std::size_t count, std::size_t index) {
    for (std::size_t i = 0; i < count; ++i)
      if (table_.defaults[offset + i] != 0) table_.unsure |= FieldSet{1} << index;
    bytes(offset, count, index);
  }
  void bytes(std::size_t offset, std::size_t count, std::size_t index) {
    if (size_ < sizeof(std::uint64_t)) {
      table_.unsure |= FieldSet{1} << index;
      return;
    }
    for (; count > 0; --count, ++offset) {
      const std::size_t start = std::min(offset / 8 * 8, size_ - 8);
      FieldWord& word = at(start);
      const std::uint64_t bits = std::uint64_t{0xff} << (8 * (offset - start));
      word.mask |= bits;
      word.fields |= FieldSet{1} << index;
    }
  }
  FieldWord& at(std::size_t start) {
    for (FieldWord& word : table_.words)
      if (word.offset == start) return word;
    FieldWord word{static_cast<std::uint32_t>(start), 0, 0, 0};
    std::memcpy(&word.dflt, table_.defaults + start, sizeof word.dflt);
    return table_.words.emplace_back(word);
  }

  FieldTable& table_;
  std::size_t size_;
  FieldSet doubtful_ = 0;
};

}  // namespace

const FieldTable& make_fields(const TypeInfo& type) {
  static std::recursive_mutex making;  // recursive, because a struct asks for those inside it
  const std::lock_guard lock(making);
  if (const FieldTable* made = type.table.load(std::memory_order_relaxed)) return *made;
  auto* table = new FieldTable;  // for as long as the program runs, as the type does
  void* room = ::operator new(type.size);
  table->defaults = static_cast<const char*>(room);
  type.describe(*table, room);
  table->fields.shrink_to_fit();
  GANTRY_ASSERT(table->fields.size() <= kMostFields, "a struct has at most kMostFields fields");
  WordMaker words(*table, type.size);
  for (std::size_t i = 0; i < table->fields.size(); ++i) words.add_field(table->fields[i], i);
  table->exact = words.exact();
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
    case Kind::map: return type.count(value) == 0 && type.count(dflt) == 0;
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
