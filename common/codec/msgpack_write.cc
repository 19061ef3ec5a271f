// Writes a value of any type to msgpack. Fields that equal their default are left out; a reader has
// the same default.
#include <bit>

#include "common/codec/codec.h"
#include "common/codec/msgpack_io.h"
#include "common/codec/type_info.h"
#include "common/resources/resources.h"

namespace gantry::codec {
namespace {

void write(MsgWriter& w, const TypeInfo& type, const void* value);

// Returns how many of the fields it has written.
unsigned write_struct(MsgWriter& w, const TypeInfo& type, const void* value) {
  const FieldTable& table = fields_of(type);
  const MsgWriter::Mark mark = w.begin_map(table.fields.size());
  unsigned count = 0;
  for (FieldSet left = table.perhaps_set(value); left != 0; left &= left - 1) {
    const Field& field = table.fields[static_cast<std::size_t>(std::countr_zero(left))];
    const void* member = at(value, field.offset);
    const FieldSet one = left & -left;
    if ((table.whole & one) != 0) {
      const std::size_t before = w.size();
      w.uint(field.number);
      if (write_struct(w, *field.type, member) > 0)
        ++count;
      else
        w.cut(before);
      continue;
    }
    if ((table.exact & one) == 0 &&
        same_as_default(*field.type, member, table.defaults + field.offset))
      continue;
    w.uint(field.number);
    write(w, *field.type, member);
    ++count;
  }
  w.end_map(mark, count);
  return count;
}

void write_resources(MsgWriter& w, const Resources& value) {
  // The rows that were there from the beginning, and then only up to the last that is not zero:
  // an older release reads what it knows.
  std::uint32_t size = kResourceCount;
  while (size > 4 && value.raw()[size - 1] == 0) --size;
  w.array(size);
  for (std::uint32_t i = 0; i < size; ++i) w.sint(value.raw()[i]);
}

void write_list(MsgWriter& w, const TypeInfo& item, Elements list) {
  w.array(static_cast<std::uint32_t>(list.bytes() / item.size));
  for (const char* one = list.begin; one != list.end; one += item.size) write(w, item, one);
}

void write_map(MsgWriter& w, const TypeInfo& type, const void* map) {
  struct Writer : EntryVisitor {
    MsgWriter& w;
    const TypeInfo& item;
    Writer(MsgWriter& to, const TypeInfo& of) : w(to), item(of) {}
    void entry(const std::string& key, void* value) override {
      w.string(key);
      write(w, item, value);
    }
  } writer(w, *type.item);
  w.map(static_cast<std::uint32_t>(type.count(map)));
  type.each_entry(const_cast<void*>(map), writer);
}

void write(MsgWriter& w, const TypeInfo& type, const void* value) {
  switch (type.kind) {
    case Kind::boolean: return w.boolean(as<bool>(value));
    case Kind::sint8:
    case Kind::sint16:
    case Kind::sint32:
    case Kind::sint64: return w.sint(load_integer(type.kind, value));
    case Kind::uint8:
    case Kind::uint16:
    case Kind::uint32:
    case Kind::uint64: return w.uint(static_cast<std::uint64_t>(load_integer(type.kind, value)));
    case Kind::real: return w.real(as<double>(value));
    case Kind::text: return w.string(as<std::string>(value));
    case Kind::enumeration: return w.sint(load_integer(type.number, value));
    case Kind::resources: return write_resources(w, as<Resources>(value));
    case Kind::optional: return has_value(type, value) ? write(w, *type.item, value) : w.nil();
    case Kind::list: return write_list(w, *type.item, elements_of(value));
    case Kind::map: return write_map(w, type, value);
    case Kind::pair:
      w.array(2);
      write(w, *type.item, value);
      return write(w, *type.second, at(value, type.second_at));
    case Kind::variant: {
      const Alternative& one = type.alternatives[type.count(value)];
      w.array(2);
      w.uint(static_cast<std::uint64_t>(one.kind));
      write_struct(w, *one.type, value);
      return;
    }
    case Kind::structure: write_struct(w, type, value); return;
  }
}

}  // namespace

void encode_value(const TypeInfo& type, const void* value, Bytes& out) {
  MsgWriter writer(out);
  write_struct(writer, type, value);
}

}  // namespace gantry::codec
