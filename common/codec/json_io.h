// Reads and writes JSON, value by value. RapidJSON is included in json_io.cc only; these classes
// are thin handles on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/codec/codec.h"
#include "common/codec/decode_error.h"

namespace gantry::codec {

class JsonWriter {
 public:
  explicit JsonWriter(JsonStyle style);
  ~JsonWriter();
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  void null();
  void boolean(bool value);
  void sint(std::int64_t value);
  void uint(std::uint64_t value);
  void real(double value);               // null if not finite
  void written(std::string_view value);  // a number, boolean or null in the caller's own form
  void string(std::string_view value);   // what is not UTF-8 becomes U+FFFD
  void key(std::string_view name);
  void begin_object();
  void end_object();
  void begin_array();
  void end_array();
  [[nodiscard]] std::string take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One value inside a JsonDocument, which must outlive it.
class JsonNode {
 public:
  explicit JsonNode(const void* value) : value_(value) {}
  [[nodiscard]] bool is_null() const;
  [[nodiscard]] bool is_object() const;
  [[nodiscard]] bool is_array() const;
  [[nodiscard]] std::optional<bool> boolean() const;
  [[nodiscard]] std::optional<std::uint64_t> uint() const;
  [[nodiscard]] std::optional<std::int64_t> sint() const;
  [[nodiscard]] std::optional<double> real() const;
  [[nodiscard]] std::optional<std::string_view> string() const;
  [[nodiscard]] std::size_t size() const;              // members or elements
  [[nodiscard]] JsonNode item(std::size_t i) const;    // element of an array
  [[nodiscard]] JsonNode member(std::size_t i) const;  // value of an object's i-th member
  [[nodiscard]] std::string_view name(std::size_t i) const;
  [[nodiscard]] std::optional<JsonNode> find(std::string_view name) const;

 private:
  const void* value_;
};

class JsonDocument {
 public:
  // Parses a text of at most kMaxMessageBytes, with nothing after the value. The error malformed
  // names the byte.
  static Result<JsonDocument> parse(std::string_view text);
  JsonDocument(JsonDocument&&) noexcept;
  ~JsonDocument();
  [[nodiscard]] JsonNode root() const;

 private:
  struct Impl;
  explicit JsonDocument(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::codec
