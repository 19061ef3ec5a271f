// walk() goes through a value of any type and tells a sink what it finds. The sinks are those of
// msgpack_write.cc and json.cc, which decide what a struct looks like.
#pragma once

#include <string>

#include "common/codec/type_info.h"
#include "common/resources/resources.h"

namespace gantry::codec {

template <class Sink>
void walk(Sink& to, const TypeInfo& type, const void* value);

template <class Sink>
void walk_map(Sink& to, const TypeInfo& type, const void* map) {
  struct Walker : EntryVisitor {
    Sink& to;
    const TypeInfo& item;
    Walker(Sink& sink, const TypeInfo& of) : to(sink), item(of) {}
    void entry(const std::string& key, void* value) override {
      to.key(key);
      walk(to, item, value);
    }
  } walker(to, *type.item);
  to.begin_map(count_of(map));
  type.each_entry(const_cast<void*>(map), walker);
  to.end_map();
}

template <class Sink>
void walk(Sink& to, const TypeInfo& type, const void* value) {
  switch (type.kind) {
    case Kind::boolean: return to.boolean(as<bool>(value));
    case Kind::sint8: return to.sint(as<std::int8_t>(value));
    case Kind::sint16: return to.sint(as<std::int16_t>(value));
    case Kind::sint32: return to.sint(as<std::int32_t>(value));
    case Kind::sint64: return to.sint(as<std::int64_t>(value));
    case Kind::uint8: return to.uint(as<std::uint8_t>(value));
    case Kind::uint16: return to.uint(as<std::uint16_t>(value));
    case Kind::uint32: return to.uint(as<std::uint32_t>(value));
    case Kind::uint64: return to.uint(as<std::uint64_t>(value));
    case Kind::real: return to.real(as<double>(value));
    case Kind::text: return to.string(as<std::string>(value));
    case Kind::enumeration: return to.enumeration(type, load_integer(type.number, value));
    case Kind::resources: return to.resources(as<Resources>(value));
    case Kind::optional: return has_value(type, value) ? walk(to, *type.item, value) : to.null();
    case Kind::list: {
      const Elements list = elements_of(value);
      to.begin_list(list.bytes() / type.item->size);
      for (const char* one = list.begin; one != list.end; one += type.item->size)
        walk(to, *type.item, one);
      return to.end_list();
    }
    case Kind::map: return walk_map(to, type, value);
    case Kind::pair:
      to.begin_list(2);
      walk(to, *type.item, value);
      walk(to, *type.second, at(value, type.second_at));
      return to.end_list();
    case Kind::variant: return to.variant(type.alternatives[type.index(value)], value);
    case Kind::structure: return to.structure(type, value);
  }
}

}  // namespace gantry::codec
