// read(): reads one C++ value of any field type from msgpack. Included by define.h.
//
// A struct is read in one pass over its fields, because writers send fields in that order. Fields
// in another order are read too, but cost further passes.
#pragma once

#include <limits>
#include <type_traits>

#include "common/codec/msgpack_io.h"
#include "common/codec/traits.h"

namespace gantry::codec {

template <class T>
bool read(MsgReader& r, T& out);

// One pass over the fields. It reads every entry that comes next in the order of declaration.
template <class T>
class StructReader {
 public:
  StructReader(MsgReader& r, T& out, std::uint32_t entries) : r_(r), out_(out), left_(entries) {}

  bool run() {
    ok_ = next_number();
    while (ok_ && open_) {
      progress_ = false;
      T::fields(out_, *this);
      if (ok_ && open_ && !progress_) ok_ = r_.skip() && next_number();
    }
    return ok_;
  }
  template <class F>
  void operator()(int number, std::string_view name, F& field) {
    if (!ok_ || !open_ || number_ != static_cast<std::uint64_t>(number)) return;
    progress_ = true;
    ok_ = read(r_, field) || r_.error().in_field(name);
    ok_ = ok_ && next_number();
  }

 private:
  bool next_number() {
    open_ = left_ > 0;
    if (!open_) return true;
    --left_;
    return r_.field_number(number_);
  }

  MsgReader& r_;
  T& out_;
  std::uint32_t left_;
  std::uint64_t number_ = 0;
  bool open_ = false;  // number_ was read and waits for its field
  bool ok_ = true;
  bool progress_ = false;
};

template <class T>
bool read_struct(MsgReader& r, T& out) {
  std::uint32_t entries = 0;
  if (!r.enter() || !r.map(entries)) return false;
  if (!StructReader<T>(r, out, entries).run()) return false;
  if constexpr (HasOlderForm<T>) out.from_older_form();
  r.leave();
  return true;
}

template <class T>
bool read_list(MsgReader& r, T& out) {
  std::uint32_t size = 0;
  if (!r.enter() || !r.array(size)) return false;
  if (!r.charge(size * sizeof(typename T::value_type))) return false;
  out.clear();
  out.reserve(size);
  for (std::uint32_t i = 0; i < size; ++i)
    if (!read(r, out.emplace_back())) return r.error().in_item(i);
  r.leave();
  return true;
}

template <class T>
bool read_map(MsgReader& r, T& out) {
  std::uint32_t size = 0;
  if (!r.enter() || !r.map(size)) return false;
  if (!r.charge(size * (sizeof(typename T::value_type) + 4 * sizeof(void*)))) return false;
  out.clear();
  for (std::uint32_t i = 0; i < size; ++i) {
    std::string_view key;
    if (!r.string(key)) return r.error().in_item(i);
    const auto place = out.try_emplace(out.end(), std::string(key));
    if (!read(r, place->second)) return r.error().in_field(key);
  }
  r.leave();
  return true;
}

template <class... Alternatives>
bool read_variant(MsgReader& r, std::variant<Alternatives...>& out) {
  std::uint32_t size = 0;
  std::uint64_t kind = 0;
  if (!r.enter() || !r.array(size)) return false;
  if (size != 2) return r.error().fail("expected [kind, fields]");
  if (!r.field_number(kind)) return false;
  bool known = false;
  bool ok = false;
  const auto attempt = [&]<class Alternative>(std::in_place_type_t<Alternative>) {
    if (known || kind != static_cast<std::uint64_t>(Alternative::kKind)) return;
    known = true;
    ok = read_struct(r, out.template emplace<Alternative>()) ||
         r.error().in_field(Alternative::kName);
  };
  (attempt(std::in_place_type<Alternatives>), ...);
  if (!known) return r.error().fail("unknown kind " + std::to_string(kind));
  if (ok) r.leave();
  return ok;
}

template <class T>
bool read_enum(MsgReader& r, T& out) {
  std::int64_t raw = 0;
  if (!r.sint(raw, std::numeric_limits<std::int64_t>::min(),
              std::numeric_limits<std::int64_t>::max()))
    return false;
  for (const auto& [value, name] : enum_names(T{}))
    if (static_cast<std::int64_t>(value) == raw) {
      out = value;
      return true;
    }
  return r.error().fail(std::to_string(raw) + " is not one of its values");
}

inline bool read_resources(MsgReader& r, Resources& out) {
  std::uint32_t size = 0;
  if (!r.array(size)) return false;
  if (size > kResourceCount) return r.error().fail("more resources than this build knows");
  out = {};
  for (std::uint32_t i = 0; i < size; ++i)
    if (!r.sint(out.raw()[i], 0, std::numeric_limits<std::int64_t>::max()))
      return r.error().in_field(kResourceTable[i].name);
  return true;
}

template <class T>
bool read(MsgReader& r, T& out) {
  if constexpr (std::is_same_v<T, bool>) {
    return r.boolean(out);
  } else if constexpr (NamedEnum<T>) {
    return read_enum(r, out);
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    std::int64_t wide = 0;
    if (!r.sint(wide, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())) return false;
    out = static_cast<T>(wide);
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    std::uint64_t wide = 0;
    if (!r.uint(wide, std::numeric_limits<T>::max())) return false;
    out = static_cast<T>(wide);
    return true;
  } else if constexpr (std::is_floating_point_v<T>) {
    double wide = 0;
    if (!r.real(wide)) return false;
    out = static_cast<T>(wide);
    return true;
  } else if constexpr (std::is_same_v<T, std::string>) {
    std::string_view view;
    if (!r.string(view)) return false;
    out.assign(view);
    return true;
  } else if constexpr (kIsTypedNumber<T>) {
    typename T::rep raw = 0;
    if (!read(r, raw)) return false;
    out = T(raw);
    return true;
  } else if constexpr (kIsCount<T>) {
    return r.sint(count_of(out), std::numeric_limits<std::int64_t>::min(),
                  std::numeric_limits<std::int64_t>::max());
  } else if constexpr (std::is_same_v<T, Resources>) {
    return read_resources(r, out);
  } else if constexpr (kIsOptional<T>) {
    if (r.skip_nil()) {
      out.reset();
      return true;
    }
    return read(r, out.emplace());
  } else if constexpr (kIsVector<T>) {
    return read_list(r, out);
  } else if constexpr (kIsMap<T>) {
    return read_map(r, out);
  } else if constexpr (kIsPair<T>) {
    std::uint32_t size = 0;
    if (!r.array(size)) return false;
    if (size != 2) return r.error().fail("expected a list of two");
    return (read(r, out.first) || r.error().in_item(0)) &&
           (read(r, out.second) || r.error().in_item(1));
  } else if constexpr (kIsVariant<T>) {
    return read_variant(r, out);
  } else if constexpr (HasFields<T>) {
    return read_struct(r, out);
  } else {
    static_assert(kUnsupported<T>, "no wire form for this type: see fields.h");
  }
}

}  // namespace gantry::codec
