// The codec reads vectors, optionals, variants and pairs by where the standard library puts their
// parts (type_info.h). The tests compare this with what the types themselves answer.
#include <doctest/doctest.h>

#include "common/codec/define.h"

namespace gantry {
namespace {

struct Large {
  static constexpr int kKind = 1;
  static constexpr std::string_view kName = "large";
  std::string text;
  bool on = false;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "text", s.text);
    v(2, "on", s.on);
  }
};
struct Small {
  static constexpr int kKind = 2;
  static constexpr std::string_view kName = "small";
  std::uint8_t number = 7;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "number", s.number);
  }
};

template <class T>
void check_optional() {
  const codec::TypeInfo& type = codec::type_of<std::optional<T>>();
  std::optional<T> value;
  CHECK_FALSE(codec::has_value(type, &value));
  const void* made = type.renew(&value, 1);
  REQUIRE(value.has_value());
  CHECK(made == &*value);
  CHECK(made == static_cast<void*>(&value));
  CHECK(codec::has_value(type, &value));
  type.clear(&value);
  CHECK_FALSE(value.has_value());
  CHECK_FALSE(codec::has_value(type, &value));
}

template <class T>
void check_list() {
  const codec::TypeInfo& type = codec::type_of<std::vector<T>>();
  std::vector<T> value;
  CHECK(codec::elements_of(&value).bytes() == 0);
  const void* made = type.renew(&value, 3);
  REQUIRE(value.size() == 3);
  CHECK(made == value.data());
  CHECK(static_cast<void*>(codec::elements_of(&value).begin) == value.data());
  CHECK(codec::elements_of(&value).bytes() == 3 * type.item->size);
  value.clear();
  CHECK(codec::elements_of(&value).bytes() == 0);
}

template <class A, class B>
void check_pair() {
  const std::pair<A, B> value;
  const std::size_t second_at = codec::type_of<std::pair<A, B>>().second_at;
  CHECK(static_cast<const void*>(&value.first) == &value);
  CHECK(codec::at(&value, second_at) == &value.second);
}

}  // namespace

TEST_CASE("the parts of the standard library's types lie where the codec looks for them") {
  check_optional<bool>();
  check_optional<std::uint16_t>();
  check_optional<std::string>();
  check_optional<Large>();
  check_optional<Small>();
  check_optional<std::vector<Large>>();
  check_list<std::int32_t>();
  check_list<std::string>();
  check_list<Large>();
  check_list<std::optional<Small>>();
  check_pair<std::string, std::uint8_t>();
  check_pair<std::uint8_t, std::int64_t>();
  check_pair<std::uint8_t, std::string>();

  std::map<std::string, Large> map;
  CHECK(codec::count_of(&map) == 0);
  map["a"], map["b"];
  CHECK(codec::count_of(&map) == 2);

  std::string text = "abc";
  CHECK(codec::as<std::size_t>(codec::at(&text, codec::kSizeOfText)) == 3);
  text.assign(100, 'x');
  CHECK(codec::as<std::size_t>(codec::at(&text, codec::kSizeOfText)) == 100);

  using Either = std::variant<Large, Small>;
  const codec::TypeInfo& type = codec::type_of<Either>();
  Either either;
  CHECK(type.index(&either) == 0);
  CHECK(type.alternatives[1].emplace(&either) == static_cast<void*>(&either));
  CHECK(type.index(&either) == 1);
  CHECK(std::get<Small>(either).number == 7);
  CHECK(type.alternatives[0].emplace(&either) == static_cast<void*>(&either));
  CHECK(std::get<Large>(either).text.empty());
}

TEST_CASE("a table of fields has their order, their places and a default-constructed struct") {
  const codec::FieldTable& table = codec::fields_of(codec::type_of<Large>());
  const Large large;
  REQUIRE(table.fields.size() == 2);
  CHECK(table.fields[0].name == "text");
  CHECK(codec::at(&large, table.fields[0].offset) == &large.text);
  CHECK(table.fields[1].number == 2);
  CHECK(codec::at(&large, table.fields[1].offset) == &large.on);
  CHECK(codec::as<std::string>(table.defaults + table.fields[0].offset).empty());
}

}  // namespace gantry
