#include "ctld/rpc/audit_about.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/codec/type_info.h"
#include "common/proto/any/message_codec.h"
#include "common/text/printable.h"

namespace gantry::rpc {
namespace {

// The fields that tell whom or what a request is about, by their names in the declarations.
constexpr std::string_view kNaming[] = {
    "account", "action",      "alert",     "all_mine",   "array",   "book",     "budget",
    "cluster", "component",   "count",     "credit",     "id",      "increase", "intent",
    "job",     "jobs",        "kind",      "name",       "names",   "node",     "nodes",
    "number",  "parent",      "partition", "payer",      "project", "queue",    "refs",
    "remove",  "reservation", "revoke",    "revoke_key", "role",    "signal",   "state",
    "step",    "steps",       "tenant",    "trigger",    "uid",     "user",     "users",
    "verdict"};
constexpr std::size_t kMostValues = 6;  // values of one list
constexpr std::size_t kMostText = 100;  // bytes of one value

using codec::Kind;
using codec::TypeInfo;

class About {
 public:
  void fields_of(const TypeInfo& type, const void* message, int depth) {
    for (const codec::Field& field : codec::fields_of(type).fields) {
      const void* value = codec::at(message, field.offset);
      if (std::binary_search(std::begin(kNaming), std::end(kNaming), field.name))
        say(field.name, *field.type, value, depth);
      else
        look_into(*field.type, value, depth);
    }
  }
  std::string text() && { return std::move(text_); }

 private:
  // Calls f with each of the first elements of a list.
  template <class F>
  static void each_of(const TypeInfo& list, const void* value, F&& f) {
    const codec::Elements all = codec::elements_of(value);
    std::size_t left = kMostValues;
    for (const char* one = all.begin; one != all.end && left-- > 0; one += list.item->size) f(one);
  }

  // A nested struct may also name what the request is about, as a submit's `spec` does.
  void look_into(const TypeInfo& type, const void* value, int depth) {
    if (type.kind == Kind::variant)
      look_into(*type.alternatives[type.index(value)].type, value, depth);
    else if (type.kind == Kind::list && type.item->kind == Kind::variant)
      each_of(type, value, [&](const void* one) {
        document(type.item->alternatives[type.item->index(one)], one);
      });
    else if (type.kind == Kind::structure && depth < 1)
      fields_of(type, value, depth + 1);
  }
  void document(const codec::Alternative& kind, const void* one) {
    for (const codec::Field& field : codec::fields_of(*kind.type).fields)
      if (field.name == "name" && field.type->kind == Kind::text)
        put(kind.name, codec::as<std::string>(codec::at(one, field.offset)));
  }

  void say(std::string_view name, const TypeInfo& type, const void* value, int depth) {
    switch (type.kind) {
      case Kind::optional:
        if (codec::has_value(type, value)) say(name, *type.item, value, depth);
        return;
      case Kind::list:
        return each_of(type, value, [&](const void* one) { say(name, *type.item, one, depth); });
      case Kind::text: return put(name, codec::as<std::string>(value));
      case Kind::boolean:
        if (codec::as<bool>(value)) put(name, "yes");
        return;
      case Kind::enumeration:
        return put(name,
                   std::string(codec::enum_name(type, codec::load_integer(type.number, value))));
      case Kind::structure:
        if (depth < 2) fields_of(type, value, depth + 1);
        return;
      case Kind::real:
      case Kind::resources:
      case Kind::map:
      case Kind::pair:
      case Kind::variant: return;
      default:
        if (type.name == "Money" || type.name == "Instant" || type.name == "Duration") return;
        if (const std::int64_t number = codec::load_integer(type.kind, value); number != 0)
          put(name, type.kind == Kind::uint64 ? std::to_string(static_cast<std::uint64_t>(number))
                                              : std::to_string(number));
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

}  // namespace

std::string about(const proto::AnyMessage& message) {
  About out;
  out.fields_of(proto::type_info(message.type()), message.data(), 0);
  return std::move(out).text();
}

}  // namespace gantry::rpc
