// Writes a value of any type to msgpack. Fields that equal their default are left out; a reader has
// the same default.
#include <bit>

#include "common/codec/codec.h"
#include "common/codec/msgpack_io.h"
#include "common/codec/walk.h"

namespace gantry::codec {
namespace {

class MsgSink : public MsgWriter {
 public:
  using MsgWriter::MsgWriter;

  void null() { nil(); }
  void key(std::string_view name) { string(name); }
  void begin_list(std::size_t size) { array(static_cast<std::uint32_t>(size)); }
  void end_list() {}
  void begin_map(std::size_t size) { map(static_cast<std::uint32_t>(size)); }
  void end_map() {}
  void enumeration(const TypeInfo& /*type*/, std::int64_t number) { sint(number); }

  void resources(const Resources& value) {
    // The rows that were there from the beginning, and then only up to the last that is not zero:
    // an older release reads what it knows.
    std::uint32_t size = kResourceCount;
    while (size > 4 && value.raw()[size - 1] == 0) --size;
    array(size);
    for (std::uint32_t i = 0; i < size; ++i) sint(value.raw()[i]);
  }
  void variant(const Alternative& one, const void* value) {
    array(2);
    uint(static_cast<std::uint64_t>(one.kind));
    fields(*one.type, value);
  }
  void structure(const TypeInfo& type, const void* value) { fields(type, value); }

  // Returns how many of the fields it has written.
  unsigned fields(const TypeInfo& type, const void* value) {
    const FieldTable& table = fields_of(type);
    const Mark mark = open_map(table.fields.size());
    unsigned count = 0;
    for (FieldSet left = table.perhaps_set(value); left != 0; left &= left - 1) {
      const Field& field = table.fields[static_cast<std::size_t>(std::countr_zero(left))];
      count += write(field, value, table.defaults) ? 1 : 0;
    }
    close_map(mark, count);
    return count;
  }

 private:
  // Returns false, and writes nothing, if the field equals the default.
  bool write(const Field& field, const void* value, const void* defaults) {
    if (field.is_number) {
      const std::int64_t number = field.integer(value);
      if (!field.exact && number == field.integer(defaults)) return false;
      need(2 * kLongest);
      char* const next = put(at_, std::uint64_t{field.number});
      if (field.kind == Kind::boolean) {
        *next = static_cast<char>(0xc2 + number);
        at_ = next + 1;
      } else {
        at_ = field.is_signed ? put(next, number) : put(next, static_cast<std::uint64_t>(number));
      }
      return true;
    }
    const void* const member = at(value, field.offset);
    if (field.whole) {
      const std::size_t before = size();
      uint(field.number);
      if (fields(*field.type, member) > 0) return true;
      cut(before);
      return false;
    }
    if (!field.exact && same_as_default(*field.type, member, at(defaults, field.offset)))
      return false;
    uint(field.number);
    if (field.kind == Kind::text)
      string(as<std::string>(member));
    else
      walk(*this, *field.type, member);
    return true;
  }
};

}  // namespace

void encode_value(const TypeInfo& type, const void* value, Bytes& out) {
  MsgSink(out).fields(type, value);
}

}  // namespace gantry::codec
