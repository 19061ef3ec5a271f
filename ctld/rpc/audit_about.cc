#include "ctld/rpc/audit_about.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/text/printable.h"

namespace gantry::rpc {
namespace {

// The fields that say whom or what a request is about, by their names in the declarations.
constexpr std::string_view kNaming[] = {
    "account", "action",      "alert",     "all_mine",   "array",   "book",     "budget",
    "cluster", "component",   "count",     "credit",     "id",      "increase", "intent",
    "job",     "jobs",        "kind",      "name",       "names",   "node",     "nodes",
    "number",  "parent",      "partition", "payer",      "project", "queue",    "refs",
    "remove",  "reservation", "revoke",    "revoke_key", "role",    "signal",   "state",
    "step",    "steps",       "tenant",    "trigger",    "uid",     "user",     "users",
    "verdict"};
constexpr std::size_t kMostValues = 6;  // of one list
constexpr std::size_t kMostText = 100;  // bytes of one value

template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;
template <class T>
constexpr bool is_list = false;
template <class T>
constexpr bool is_list<std::vector<T>> = true;
template <class T>
constexpr bool is_variant = requires(const T& value) {
  value.valueless_by_exception();
};
template <class T>
concept Numbered = requires(const T& t) {
  { t.value() } -> std::integral;
};

class About {
 public:
  template <class T>
  void fields_of(const T& message, int depth) {
    T::fields(message, [&](int, std::string_view name, const auto& value) {
      if (std::binary_search(std::begin(kNaming), std::end(kNaming), name))
        say(name, value, depth);
      else
        look_into(value, depth);
    });
  }
  std::string text() && { return std::move(text_); }

 private:
  // A struct within may name what it is about, as a submit's `spec` does.
  template <class T>
  void look_into(const T& value, int depth) {
    if constexpr (is_variant<T>) {
      std::visit([&](const auto& one) { look_into(one, depth); }, value);
    } else if constexpr (is_list<T>) {
      if constexpr (is_variant<typename T::value_type>) {  // documents
        std::size_t left = kMostValues;
        for (const auto& one : value)
          if (left-- > 0)
            std::visit([&](const auto& d) { document(d); }, one);
          else
            break;
      }
    } else if constexpr (codec::HasFields<T>) {
      if (depth < 1) fields_of(value, depth + 1);
    }
  }
  template <class T>
  void document(const T& one) {
    if constexpr (requires { one.name; }) put(T::kName, one.name);
  }

  template <class T>
  void say(std::string_view name, const T& value, int depth) {
    if constexpr (is_optional<T>) {
      if (value) say(name, *value, depth);
    } else if constexpr (is_list<T>) {
      std::size_t left = kMostValues;
      for (const auto& one : value)
        if (left-- > 0)
          say(name, one, depth);
        else
          break;
    } else if constexpr (std::is_same_v<T, std::string>) {
      put(name, value);
    } else if constexpr (std::is_same_v<T, bool>) {
      if (value) put(name, "yes");
    } else if constexpr (codec::NamedEnum<T>) {
      put(name, std::string(enum_name(value)));
    } else if constexpr (std::is_integral_v<T>) {
      if (value != 0) put(name, std::to_string(value));
    } else if constexpr (Numbered<T>) {
      if (value.value() != 0) put(name, std::to_string(value.value()));
    } else if constexpr (codec::HasFields<T>) {
      if (depth < 2) fields_of(value, depth + 1);
    }
  }

  void put(std::string_view name, const std::string& value) {
    if (value.empty() || text_.size() >= kMostAbout) return;
    text_ += fmt::format("{}{}={}", text_.empty() ? "" : " ", name,
                         printable(value.substr(0, kMostText)));
    if (text_.size() > kMostAbout) text_.resize(kMostAbout);
  }
  std::string text_;
};

template <class Variant>
std::string about_any(const Variant& message) {
  About out;
  std::visit([&](const auto& m) { out.fields_of(m, 0); }, message);
  return std::move(out).text();
}

}  // namespace

std::string about(const core::ClientMessage& message) {
  return about_any(message);
}
std::string about(const core::ShellMessage& message) {
  return about_any(message);
}

}  // namespace gantry::rpc
