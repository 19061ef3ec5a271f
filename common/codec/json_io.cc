#include "common/codec/json_io.h"

#include <fmt/core.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include <cmath>

#include "common/assert.h"
#include "common/codec/limits.h"
#include "common/text/printable.h"

namespace gantry::codec {
namespace {

const rapidjson::Value& value_of(const void* node) {
  return *static_cast<const rapidjson::Value*>(node);
}

}  // namespace

struct JsonWriter::Impl {
  explicit Impl(JsonStyle s) : style(s) { pretty.SetIndent(' ', 2); }
  JsonStyle style;
  rapidjson::StringBuffer buffer;
  std::string text;  // text of one string while it is written
  rapidjson::Writer<rapidjson::StringBuffer> compact{buffer};
  rapidjson::PrettyWriter<rapidjson::StringBuffer> pretty{buffer};
  template <class Call>
  void with(Call call) {
    const bool ok = style == JsonStyle::pretty ? call(pretty) : call(compact);
    GANTRY_ASSERT(ok, "JSON calls out of order");
  }
};

JsonWriter::JsonWriter(JsonStyle style) : impl_(std::make_unique<Impl>(style)) {}
JsonWriter::~JsonWriter() = default;
void JsonWriter::null() {
  impl_->with([](auto& w) { return w.Null(); });
}
void JsonWriter::boolean(bool value) {
  impl_->with([=](auto& w) { return w.Bool(value); });
}
void JsonWriter::sint(std::int64_t value) {
  impl_->with([=](auto& w) { return w.Int64(value); });
}
void JsonWriter::uint(std::uint64_t value) {
  impl_->with([=](auto& w) { return w.Uint64(value); });
}
void JsonWriter::real(double value) {
  impl_->with([=](auto& w) { return std::isfinite(value) ? w.Double(value) : w.Null(); });
}
void JsonWriter::written(std::string_view value) {
  impl_->with(
      [=](auto& w) { return w.RawValue(value.data(), value.size(), rapidjson::kNumberType); });
}
void JsonWriter::string(std::string_view value) {
  impl_->text.clear();
  append_json_string(impl_->text, value);
  impl_->with([this](auto& w) {
    return w.RawValue(impl_->text.data(), impl_->text.size(), rapidjson::kStringType);
  });
}
void JsonWriter::key(std::string_view name) {
  string(name);  // RapidJSON takes one value per call; a name comes before its value
}
void JsonWriter::begin_object() {
  impl_->with([](auto& w) { return w.StartObject(); });
}
void JsonWriter::end_object() {
  impl_->with([](auto& w) { return w.EndObject(); });
}
void JsonWriter::begin_array() {
  impl_->with([](auto& w) { return w.StartArray(); });
}
void JsonWriter::end_array() {
  impl_->with([](auto& w) { return w.EndArray(); });
}
std::string JsonWriter::take() {
  return {impl_->buffer.GetString(), impl_->buffer.GetSize()};
}

bool JsonNode::is_null() const {
  return value_of(value_).IsNull();
}
bool JsonNode::is_object() const {
  return value_of(value_).IsObject();
}
bool JsonNode::is_array() const {
  return value_of(value_).IsArray();
}
std::optional<bool> JsonNode::boolean() const {
  const auto& v = value_of(value_);
  return v.IsBool() ? std::optional(v.GetBool()) : std::nullopt;
}
std::optional<std::uint64_t> JsonNode::uint() const {
  const auto& v = value_of(value_);
  return v.IsUint64() ? std::optional<std::uint64_t>(v.GetUint64()) : std::nullopt;
}
std::optional<std::int64_t> JsonNode::sint() const {
  const auto& v = value_of(value_);
  return v.IsInt64() ? std::optional<std::int64_t>(v.GetInt64()) : std::nullopt;
}
std::optional<double> JsonNode::real() const {
  const auto& v = value_of(value_);
  return v.IsNumber() ? std::optional(v.GetDouble()) : std::nullopt;
}
std::optional<std::string_view> JsonNode::string() const {
  const auto& v = value_of(value_);
  if (!v.IsString()) return std::nullopt;
  return std::string_view(v.GetString(), v.GetStringLength());
}
std::size_t JsonNode::size() const {
  const auto& v = value_of(value_);
  return v.IsArray() ? v.Size() : v.MemberCount();
}
JsonNode JsonNode::item(std::size_t i) const {
  return JsonNode(&value_of(value_)[static_cast<rapidjson::SizeType>(i)]);
}
JsonNode JsonNode::member(std::size_t i) const {
  return JsonNode(&(value_of(value_).MemberBegin() + static_cast<std::ptrdiff_t>(i))->value);
}
std::string_view JsonNode::name(std::size_t i) const {
  const auto& n = (value_of(value_).MemberBegin() + static_cast<std::ptrdiff_t>(i))->name;
  return {n.GetString(), n.GetStringLength()};
}
std::optional<JsonNode> JsonNode::find(std::string_view name) const {
  const auto& v = value_of(value_);
  const rapidjson::Value key(rapidjson::StringRef(name.data() ? name.data() : "", name.size()));
  const auto found = v.FindMember(key);
  return found == v.MemberEnd() ? std::nullopt : std::optional(JsonNode(&found->value));
}

struct JsonDocument::Impl {
  rapidjson::Document document;
};
JsonDocument::JsonDocument(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;
JsonNode JsonDocument::root() const {
  return JsonNode(static_cast<const rapidjson::Value*>(&impl_->document));
}

Result<JsonDocument> JsonDocument::parse(std::string_view text) {
  if (text.size() > kMaxMessageBytes)
    return fail(ErrorCode::malformed,
                fmt::format("JSON text of more than {} bytes", kMaxMessageBytes));
  auto impl = std::make_unique<Impl>();
  // The parser is iterative, so that a text of a million brackets does not exhaust the stack. It
  // does not use full precision, because RapidJSON 1.1 computes that with undefined shifts for some
  // zeros; a double may therefore be off by one unit in the last place.
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  impl->document.Parse<kFlags>(text.data() ? text.data() : "", text.size());
  if (impl->document.HasParseError())
    return fail(ErrorCode::malformed,
                fmt::format("not JSON: {} (at byte {})",
                            rapidjson::GetParseError_En(impl->document.GetParseError()),
                            impl->document.GetErrorOffset()));
  return JsonDocument(std::move(impl));
}

}  // namespace gantry::codec
