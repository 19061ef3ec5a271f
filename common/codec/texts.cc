#include "common/codec/texts.h"

#include "common/codec/type_info.h"

namespace gantry::codec {
namespace {

// Returns true for fields with octets that only their maker reads: the position in the history, a
// GPU's series, a piece of a log. They are known by name, because Bytes is the same type as a text.
bool is_octets(std::string_view field) {
  return field == "position" || field == "data";
}

void each_text_of_list(const TypeInfo& item, Elements list, std::string_view field,
                       TextVisitor& visitor) {
  if (item.kind < Kind::text || item.kind == Kind::enumeration) return;
  for (char* one = list.begin; one != list.end; one += item.size)
    each_text(item, one, field, visitor);
}

void each_text_of_map(const TypeInfo& type, void* map, std::string_view field,
                      TextVisitor& visitor) {
  struct Walker : EntryVisitor {
    const TypeInfo& item;
    std::string_view field;
    TextVisitor& visitor;
    Walker(const TypeInfo& i, std::string_view f, TextVisitor& v) : item(i), field(f), visitor(v) {}
    void entry(const std::string& key, void* value) override {
      visitor.text(field, const_cast<std::string&>(key), true);
      each_text(item, value, field, visitor);
    }
  } walker(*type.item, field, visitor);
  type.each_entry(map, walker);
}

}  // namespace

void each_text(const TypeInfo& type, void* value, std::string_view field, TextVisitor& visitor) {
  switch (type.kind) {
    case Kind::text:
      if (!is_octets(field)) visitor.text(field, as<std::string>(value), false);
      return;
    case Kind::optional:
      if (has_value(type, value)) each_text(*type.item, value, field, visitor);
      return;
    case Kind::list: return each_text_of_list(*type.item, elements_of(value), field, visitor);
    case Kind::map: return each_text_of_map(type, value, field, visitor);
    case Kind::pair:
      each_text(*type.item, value, field, visitor);
      return each_text(*type.second, at(value, type.second_at), field, visitor);
    case Kind::variant:
      return each_text(*type.alternatives[type.index(value)].type, value, field, visitor);
    case Kind::structure:
      for (const Field& member : fields_of(type).fields)
        each_text(*member.type, at(value, member.offset), member.name, visitor);
      return;
    default: return;
  }
}

}  // namespace gantry::codec
