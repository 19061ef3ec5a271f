// Lists every field of a struct and of the structs inside it. The golden listing made from it shows
// a wire change in review (tests/golden/messages.txt).
//
//   Schema schema;
//   schema.add<proto::SubmitJob>();   // and what it contains
//   schema.structs()                  // name -> lines "  2 spec JobSpec"
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/codec/traits.h"

namespace gantry::codec {

// The name of a type, "SubmitJob" for "gantry::proto::SubmitJob", taken from the compiler's own
// spelling.
template <class T>
std::string type_name() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("T = ") + 4);
  name = name.substr(0, name.find_first_of(";]"));
  for (const std::string_view space : {"gantry::", "proto::", "core::"})
    if (name.starts_with(space)) name.remove_prefix(space.size());
  return std::string(name);
}

class Schema {
 public:
  template <class T>
  void add() {
    const std::string name = type_name<T>();
    if (structs_.contains(name)) return;
    structs_[name] = {};
    std::string lines;
    T::fields(defaults<T>().value, [&]<class F>(int number, std::string_view name, const F& field) {
      lines.append("  ").append(std::to_string(number)).append(" ").append(name);
      lines.append(" ").append(describe<F>()).append(default_of(field)).append("\n");
    });
    structs_[name] = lines;
  }

  [[nodiscard]] const std::map<std::string, std::string>& structs() const { return structs_; }
  [[nodiscard]] const std::map<std::string, std::string>& enums() const { return enums_; }

 private:
  template <class T>
  std::string describe() {
    if constexpr (std::is_same_v<T, bool>) {
      return "bool";
    } else if constexpr (NamedEnum<T>) {
      return describe_enum<T>();
    } else if constexpr (std::is_integral_v<T>) {
      return (std::is_signed_v<T> ? "int" : "uint") + std::to_string(8 * sizeof(T));
    } else if constexpr (std::is_floating_point_v<T>) {
      return "double";
    } else if constexpr (std::is_same_v<T, std::string>) {
      return "string";
    } else if constexpr (kIsId<T>) {
      return "id" + std::to_string(8 * sizeof(typename T::rep));
    } else if constexpr (kIsQuantity<T>) {
      return describe<typename T::rep>();
    } else if constexpr (kIsOptional<T>) {
      return describe<typename T::value_type>() + "?";
    } else if constexpr (kIsVector<T>) {
      return "list<" + describe<typename T::value_type>() + ">";
    } else if constexpr (kIsMap<T>) {
      return "map<string, " + describe<typename T::mapped_type>() + ">";
    } else if constexpr (kIsPair<T>) {
      return "pair<" + describe<typename T::first_type>() + ", " +
             describe<typename T::second_type>() + ">";
    } else if constexpr (kIsVariant<T>) {
      return describe_variant(static_cast<T*>(nullptr));
    } else if constexpr (HasFields<T>) {
      add<T>();
      return type_name<T>();
    } else {
      return type_name<T>();  // Instant, Duration, Money, Resources
    }
  }

  // The suffix " = 1" for a field whose default, which is not sent, is not zero.
  template <class T>
  static std::string default_of(const T& value) {
    if constexpr (NamedEnum<T>) {
      return static_cast<int>(value) == 0 ? "" : " = " + std::string(enum_name(value));
    } else if constexpr (kIsQuantity<T>) {
      return default_of(value.value());
    } else if constexpr (std::is_arithmetic_v<T>) {
      return value == T{} ? "" : " = " + std::to_string(value);
    } else {
      return "";
    }
  }

  template <class... Alternatives>
  std::string describe_variant(std::variant<Alternatives...>*) {
    std::string text;
    ((text.append(text.empty() ? "" : " | ")
          .append(std::to_string(Alternatives::kKind))
          .append(":")
          .append(describe<Alternatives>())),
     ...);
    return text;
  }

  template <class E>
  std::string describe_enum() {
    std::string lines;
    for (const auto& [value, name] : enum_names(E{}))
      lines.append("  ").append(std::to_string(static_cast<int>(value))).append(" ").append(name) +=
          '\n';
    enums_[type_name<E>()] = lines;
    return type_name<E>();
  }

  std::map<std::string, std::string> structs_;
  std::map<std::string, std::string> enums_;
};

}  // namespace gantry::codec
