// The wire messages as msgpack and as JSON: the tests check round trips, size, compatibility with
// the reference library msgpack-cxx, and that a refusal names the field.
#include <doctest/doctest.h>

#include <fmt/core.h>

#include <chrono>
#include <limits>
// g++ 12 takes the operators new and delete of msgpack's zones for a pair that does not match.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#include <msgpack.hpp>
#pragma GCC diagnostic pop

#include "common/codec/define.h"
#include "common/codec/limits.h"
#include "common/proto/messages.h"
#include "tests/wire/sample.h"

namespace gantry {
namespace {

enum class Colour : std::uint8_t { red = 1, blue = 7 };
constexpr auto enum_names(Colour) {
  return std::array<std::pair<Colour, std::string_view>, 2>{
      {{Colour::red, "red"}, {Colour::blue, "blue"}}};
}
struct Circle {
  static constexpr int kKind = 3;
  static constexpr std::string_view kName = "circle";
  double radius = 0;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "radius", s.radius);
  }
};
struct Square {
  static constexpr int kKind = 9;
  static constexpr std::string_view kName = "square";
  std::int16_t side = -1;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(2, "side", s.side);
  }
};
struct Inner {
  bool on = true;
  std::int8_t tiny = 5;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "on", s.on);
    v(2, "tiny", s.tiny);
  }
};
// An older release wrote words into a field where today's release writes a number.
struct Renamed {
  std::vector<std::string> words;
  std::int32_t number = 0;
  void from_older_form() { number += std::erase(words, "three") > 0 ? 3 : 0; }
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "words", s.words);
    v(2, "number", s.number);
  }
};
struct Outer {
  std::vector<Renamed> list;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "list", s.list);
  }
};
// A struct that has a field of every type.
struct Everything {
  bool flag = true;
  std::int64_t number = 0;
  std::uint64_t large = 0;
  double real = 0.5;
  std::string text;
  JobId job{};
  Instant when{};
  Duration length{};
  Resources resources;
  Colour colour = Colour::red;
  std::optional<Inner> maybe;
  std::vector<Inner> list;
  std::map<std::string, std::int32_t> table;
  std::pair<std::string, std::uint16_t> pair;
  std::variant<Circle, Square> shape;
  std::vector<std::optional<std::int32_t>> holes;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "flag", s.flag);
    v(2, "number", s.number);
    v(3, "large", s.large);
    v(4, "real", s.real);
    v(5, "text", s.text);
    v(6, "job", s.job);
    v(7, "when", s.when);
    v(8, "length", s.length);
    v(9, "resources", s.resources);
    v(10, "colour", s.colour);
    v(11, "maybe", s.maybe);
    v(12, "list", s.list);
    v(13, "table", s.table);
    v(14, "pair", s.pair);
    v(15, "shape", s.shape);
    v(200, "holes", s.holes);
  }
};

Everything full() {
  Everything e;
  e.flag = false;
  e.number = std::numeric_limits<std::int64_t>::min();
  e.large = std::numeric_limits<std::uint64_t>::max();
  e.real = -1.25e300;
  e.text = std::string("a\0\xff line\n\"", 10);
  e.job = JobId(70'000);
  e.when = Instant{1'700'000'000'000'000};
  e.length = Duration{-5};
  e.resources.row(Resource::memory) = 1ll << 40;
  e.colour = Colour::blue;
  e.maybe = Inner{};
  e.list = {Inner{}, Inner{false, -128}};
  e.table = {{"a", -1}, {"b", 70'000}};
  e.pair = {"left", 65535};
  e.shape = Square{-300};
  e.holes = {1, std::nullopt, -70'000};
  return e;
}

void check_equal(const Everything& a, const Everything& b) {
  CHECK(codec::encode(a) == codec::encode(b));
  CHECK(codec::to_json(a) == codec::to_json(b));
  CHECK(a.number == b.number);
  CHECK(a.large == b.large);
  CHECK(a.real == b.real);
  CHECK(a.text == b.text);
  CHECK(a.list.size() == b.list.size());
  CHECK(a.holes == b.holes);
  CHECK(std::get<Square>(a.shape).side == std::get<Square>(b.shape).side);
}

template <class T>
std::string refusal(std::string_view bytes) {
  const auto got = codec::decode<T>(bytes);
  if (got) return "accepted";
  CHECK(got.error().code == ErrorCode::malformed);
  return got.error().message;
}
template <class T>
std::string json_refusal(std::string_view text) {
  const auto got = codec::from_json<T>(text);
  if (got) return "accepted";
  CHECK(got.error().code == ErrorCode::malformed);
  return got.error().message;
}

// Makes bytes with msgpack-cxx, the reference library.
template <class Fill>
std::string packed(Fill fill) {
  msgpack::sbuffer buffer;
  msgpack::packer<msgpack::sbuffer> packer(buffer);
  fill(packer);
  return {buffer.data(), buffer.size()};
}

struct PlainNumbers {
  std::uint16_t part = 1000;
  std::int64_t amount = 0;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "part", s.part);
    v(2, "amount", s.amount);
  }
};
struct Quantities {
  DevicePart::in<std::uint16_t> part{1000};
  ByteCount amount{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "part", s.part);
    v(2, "amount", s.amount);
  }
};

TEST_CASE("a quantity is a plain number on the wire and in JSON") {
  const PlainNumbers plain{500, -(std::int64_t{1} << 40)};
  const Quantities typed{DevicePart::in<std::uint16_t>{500}, ByteCount{plain.amount}};
  CHECK(codec::encode(typed) == codec::encode(plain));
  CHECK(codec::to_json(typed) == codec::to_json(plain));
  CHECK(codec::encode(Quantities{}) == codec::encode(PlainNumbers{}));
  const auto wire = codec::decode<Quantities>(codec::encode(plain));
  const auto json = codec::from_json<Quantities>(codec::to_json(plain));
  REQUIRE(wire);
  REQUIRE(json);
  CHECK(wire->part == typed.part);
  CHECK(json->part == typed.part);
  CHECK(wire->amount == typed.amount);
  CHECK(json->amount == typed.amount);
}

TEST_CASE("every field type survives msgpack") {
  const Everything before = full();
  const auto after = codec::decode<Everything>(codec::encode(before));
  REQUIRE(after);
  check_equal(before, *after);
}

TEST_CASE("every field type survives JSON, except bytes that are no UTF-8") {
  Everything before = full();
  before.text = "gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\x8b \t";
  before.real = -1.25e10;  // With larger exponents the last bit may differ.
  for (const auto style : {codec::JsonStyle::compact, codec::JsonStyle::pretty}) {
    const std::string text = codec::to_json(before, style);
    const auto after = codec::from_json<Everything>(text);
    REQUIRE_MESSAGE(after, text);
    check_equal(before, *after);
  }
  CHECK(codec::to_json(full()).find("a\\u0000\xef\xbf\xbd line") != std::string::npos);
}

TEST_CASE("fields with their default value take no space, and other values do") {
  CHECK(codec::encode(proto::Ping{}) == "\x80");
  CHECK(codec::encode(JobSpec{}) == std::string("\xde\0\0", 3));
  JobSpec spec;
  spec.requeue = false;  // The default is true.
  const auto after = codec::decode<JobSpec>(codec::encode(spec));
  REQUIRE(after);
  CHECK_FALSE(after->requeue);
  CHECK(codec::encode(spec).size() == 5);
  Everything e;
  e.maybe = Inner{};  // The field is set, although it equals its own default.
  CHECK(codec::decode<Everything>(codec::encode(e))->maybe.has_value());
}

TEST_CASE("a typical submit is compact") {
  const proto::SubmitJob submit = sample_submit();
  const Bytes spec = codec::encode(submit.spec);
  MESSAGE("spec ", spec.size(), " bytes, whole submit ", codec::encode(submit).size(), " bytes");
  CHECK(spec.size() < 400);
}

TEST_CASE("msgpack-cxx reads the messages of this codec") {
  const Bytes bytes = codec::encode(full());
  const msgpack::object_handle handle = msgpack::unpack(bytes.data(), bytes.size());
  const auto map = handle.get().as<std::map<int, msgpack::object>>();
  CHECK(map.at(1).as<bool>() == false);
  CHECK(map.at(2).as<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
  CHECK(map.at(3).as<std::uint64_t>() == std::numeric_limits<std::uint64_t>::max());
  CHECK(map.at(4).as<double>() == -1.25e300);
  CHECK(map.at(5).as<std::string>() == full().text);
  CHECK(map.at(13).as<std::map<std::string, int>>() == full().table);
  CHECK(map.at(200).via.array.size == 3);
  for (const std::size_t size : {0u, 31u, 32u, 255u, 256u, 65535u, 65536u, 100000u}) {
    Everything e;
    e.text.assign(size, 'x');
    e.holes.assign(size, 7);
    const Bytes b = codec::encode(e);
    const auto h = msgpack::unpack(b.data(), b.size());
    const auto m = h.get().as<std::map<int, msgpack::object>>();
    if (size > 0) CHECK(m.at(5).as<std::string>().size() == size);
    if (size > 0) CHECK(m.at(200).via.array.size == size);
    CHECK(codec::decode<Everything>(b)->text.size() == size);
  }
}

TEST_CASE("integers of every width are coded as in msgpack-cxx") {
  std::vector<std::int64_t> values;
  for (int bit = 0; bit < 63; ++bit)
    for (const std::int64_t delta : {-1, 0, 1}) {
      values.push_back((1ll << bit) + delta);
      values.push_back(-(1ll << bit) + delta);
    }
  for (const std::int64_t value : values) {
    Everything e;
    e.number = value;
    e.holes.clear();
    const Bytes reference = packed([&](auto& p) {
      p.pack_map(1);
      p.pack(2);
      p.pack(value);
    });
    const auto got = codec::decode<Everything>(reference);
    REQUIRE(got);
    CHECK(got->number == value);
    if (value != 0) CHECK(codec::encode(e).find(reference.substr(1)) != std::string::npos);
  }
}

TEST_CASE("fields may come in any order, and unknown fields of any type are skipped") {
  const Bytes bytes = packed([](auto& p) {
    p.pack_map(8);
    p.pack(77), p.pack(std::map<std::string, std::vector<double>>{{"x", {1.5, 2.5}}});
    p.pack(3), p.pack(9u);
    p.pack(78), p.pack_nil();
    p.pack(2), p.pack(-4);
    p.pack(79), p.pack_ext(300, 5), p.pack_ext_body(std::string(300, 'e').data(), 300);
    p.pack(80), p.pack_bin(2), p.pack_bin_body("ab", 2);
    p.pack(1), p.pack(false);
    p.pack(81), p.pack_ext(4, 1), p.pack_ext_body("abcd", 4);
  });
  const auto got = codec::decode<Everything>(bytes);
  REQUIRE_MESSAGE(got, got.error().message);
  CHECK(got->large == 9);
  CHECK(got->number == -4);
  CHECK_FALSE(got->flag);
}

TEST_CASE("a refusal names the field that is wrong") {
  const auto one = [](int number, auto value) {
    return packed([&](auto& p) {
      p.pack_map(1);
      p.pack(number);
      p.pack(value);
    });
  };
  CHECK(refusal<Everything>(one(1, 1)) == "field flag: expected true or false");
  CHECK(refusal<Everything>(one(3, -1)) == "field large: expected an unsigned integer");
  CHECK(refusal<Everything>(one(3, "x")) == "field large: expected an unsigned integer");
  CHECK(
      refusal<Everything>(one(2, ~0ull)).starts_with("field number: 18446744073709551615 is more"));
  CHECK(refusal<Everything>(one(4, std::numeric_limits<double>::infinity())) ==
        "field real: expected a finite number");
  CHECK(refusal<Everything>(one(5, 3)) == "field text: expected a string");
  CHECK(refusal<Everything>(one(10, 2)) == "field colour: 2 is not one of its values");
  CHECK(refusal<Everything>(one(12, 3)) == "field list: expected a list");
  CHECK(refusal<Everything>(one(9, std::vector<int>{1, -2})) ==
        "field resources.mem: -2 is less than 0");
  CHECK(refusal<Everything>(one(12, std::vector<std::map<int, int>>{{}, {{2, 128}}})) ==
        "field list[1].tiny: 128 is more than 127");
  CHECK(refusal<Everything>(one(13, std::map<std::string, std::string>{{"k", "v"}})) ==
        "field table.k: expected an integer");
  CHECK(refusal<Everything>(one(15, std::vector<int>{5, 5})) == "field shape: unknown kind 5");
  CHECK(refusal<Everything>(one(15, std::vector<int>{3, 5})) ==
        "field shape.circle: expected a map");
  CHECK(refusal<proto::SubmitJob>(packed([](auto& p) {
          p.pack(std::map<int, std::map<int, std::map<int, int>>>{{2, {{6, {{3, -1}}}}}});
        })) == "field spec.shape.tasks: expected an unsigned integer");
  CHECK(refusal<Everything>(packed([](auto& p) { p.pack(std::vector<int>{1}); })) ==
        "expected a map");
  CHECK(refusal<Everything>(packed([](auto& p) {
          p.pack(std::map<std::string, int>{{"flag", 1}});
        })) == "expected a field number");
  CHECK(refusal<Everything>("") == "the message is cut short");
  CHECK(refusal<Everything>(codec::encode(full()) + "x") == "bytes behind the end of the message");
}

TEST_CASE("the decoder turns the older form of a struct into today's form") {
  Renamed old;
  old.words = {"three", "?"};
  const auto read = codec::decode<Renamed>(codec::encode(old));
  REQUIRE(read);
  CHECK(read->number == 3);
  // The word "?" was not understood, so it stays.
  CHECK(read->words == std::vector<std::string>{"?"});
  Outer outer;
  outer.list = {old, old};
  const auto inside = codec::decode<Outer>(codec::encode(outer));
  REQUIRE(inside);
  CHECK(inside->list[1].number == 3);
  const auto json = codec::from_json<Renamed>(R"({"words": ["three"]})");
  REQUIRE(json);
  CHECK(json->number == 3);
}

TEST_CASE("a message that is cut off anywhere is refused") {
  const Bytes bytes = codec::encode(full());
  for (std::size_t n = 0; n < bytes.size(); ++n)
    CHECK(refusal<Everything>(std::string_view(bytes).substr(0, n)) != "accepted");
}

TEST_CASE("depth, counts, memory and size of a message are limited") {
  std::string deep = "\x81\x4d";  // Number 77 is an unknown field.
  deep += std::string(100'000, '\x91') + "\xc0";
  CHECK(refusal<Everything>(deep).find("nested deeper than") != std::string::npos);
  CHECK(refusal<Everything>(std::string("\x81\x0c\xdd\xff\xff\xff\xff", 7)).find("elements") !=
        std::string::npos);
  CHECK(refusal<Everything>(std::string("\x81\x0c\xdd\x00\x01\x00\x00", 7)).find("cut short") !=
        std::string::npos);
  CHECK(refusal<Everything>(std::string(codec::kMaxMessageBytes + 1, '\xc0')).find("at most") !=
        std::string::npos);
  // The message claims 2 M rows of one byte each.
  std::string many("\xde\x00\x01\x01\xdd\x00\x20\x00\x00", 9);
  many += std::string(0x200000, '\x80');
  CHECK(refusal<proto::ListJobsReply>(many) == "field rows: too many elements");
}

TEST_CASE("JSON has the names of fields, enum values and kinds, and null for empty optionals") {
  proto::UpdateNodes update;
  update.nodes = {"n1"};
  update.reason = "fan";
  CHECK(codec::to_json(update) ==
        R"({"nodes":["n1"],"action":"drain","reason":"fan","gpus":[],"domains":[],)"
        R"("features":null,"file_features":false,"comment":null})");
  Everything e;
  e.shape = Square{4};
  const std::string text = codec::to_json(e);
  CHECK(text.find(R"("shape":{"kind":"square","side":4})") != std::string::npos);
  CHECK(text.find(R"("maybe":null)") != std::string::npos);
  CHECK(text.find(R"("resources":{"cpu":0,"mem":0,"gpu":0,"scratch":0,"io":0,"net":0})") !=
        std::string::npos);
  CHECK(codec::from_json<Everything>("{}")->flag);
}

TEST_CASE("a refusal of JSON names the field") {
  CHECK(json_refusal<Everything>("{\"flag\":1}") == "field flag: expected true or false");
  CHECK(json_refusal<Everything>("{\"large\":-1}") == "field large: expected an unsigned integer");
  CHECK(json_refusal<Everything>("{\"large\":1.5}") == "field large: expected an unsigned integer");
  CHECK(json_refusal<Everything>("{\"colour\":\"green\"}") ==
        "field colour: expected one of: red, blue");
  CHECK(json_refusal<Everything>("{\"list\":[{},{\"tiny\":200}]}") ==
        "field list[1].tiny: 200 is too large");
  CHECK(json_refusal<Everything>("{\"list\":[{\"tyni\":2}]}") ==
        "field list[0].tyni: no such field");
  CHECK(json_refusal<Everything>("{\"flag\":true,\"flag\":true}") == "a field is given twice");
  CHECK(json_refusal<Everything>("{\"shape\":{\"kind\":\"blob\"}}") ==
        "field shape: unknown kind \"blob\"");
  CHECK(json_refusal<Everything>("{\"shape\":{\"kind\":\"circle\",\"side\":1}}") ==
        "field shape.side: no such field");
  CHECK(json_refusal<Everything>("{\"resources\":{\"cpus\":1}}") ==
        "field resources.cpus: no such resource");
  CHECK(json_refusal<Everything>("[]") == "expected an object");
  CHECK(json_refusal<Everything>("{} {}").starts_with("not JSON: "));
  CHECK(json_refusal<Everything>(std::string(1'000'000, '[')).starts_with("not JSON: "));
}

TEST_CASE("encoding and decoding a submit stays below a generous time") {
  const proto::SubmitJob submit = sample_submit();
  Bytes bytes;
  constexpr int kRounds = 20'000;
  const auto timed = [](auto body) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRounds; ++i) body();
    const auto took = std::chrono::steady_clock::now() - start;
    return std::chrono::duration<double, std::micro>(took).count() / kRounds;
  };
  const double encode_us = timed([&] {
    bytes.clear();
    codec::encode_append(submit, bytes);
  });
  const double decode_us = timed([&] { CHECK_UNARY(codec::decode<proto::SubmitJob>(bytes)); });
  const double tree_us = timed([&] { msgpack::unpack(bytes.data(), bytes.size()); });
  MESSAGE(
      fmt::format("{} bytes: encode {:.2f} us, decode {:.2f} us (msgpack-cxx tree alone {:.2f} us)",
                  bytes.size(), encode_us, decode_us, tree_us));
  // The limit is generous, so that it also holds in a sanitizer build on a busy machine.
  CHECK(encode_us < 100);
  CHECK(decode_us < 300);
}

}  // namespace
}  // namespace gantry
