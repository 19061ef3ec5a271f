#include "common/audit/audit_line.h"
#include "common/fields.h"

#include <fmt/core.h>
#include <sodium.h>

#include <array>

#include "common/codec/define.h"
#include "common/text/text.h"

namespace gantry::audit {

// The line without its hash, field by field.
struct Entry {
  Record record;
  std::string at;  // the time for people
  std::string prev;
  GANTRY_FIELDS(NAMED_FIELD(1, "seq", record.seq), FIELD(2, at),
                NAMED_FIELD(3, "time", record.time), NAMED_FIELD(4, "user", record.user),
                NAMED_FIELD(5, "uid", record.uid), NAMED_FIELD(6, "how", record.how),
                NAMED_FIELD(7, "right", record.right), NAMED_FIELD(8, "message", record.message),
                NAMED_FIELD(9, "about", record.about), NAMED_FIELD(10, "outcome", record.outcome),
                NAMED_FIELD(11, "why", record.why), FIELD(12, prev))
};

}  // namespace gantry::audit

namespace gantry {
GANTRY_CODEC_INSTANTIATE(audit::Entry)
}  // namespace gantry

namespace gantry::audit {
namespace {

constexpr std::string_view kHashField = ",\"hash\":\"";
constexpr std::size_t kHashText = 64;  // hexadecimal digits

std::string hash_of(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  crypto_generichash(digest.data(), digest.size(),
                     reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr, 0);
  std::string out;
  for (const unsigned char byte : digest) out += fmt::format("{:02x}", byte);
  return out;
}

}  // namespace

Line line_of(const Record& record, std::string_view prev) {
  std::string text = codec::to_json(Entry{record, format_time(record.time), std::string(prev)});
  text.pop_back();  // the closing brace; the hash comes before it
  std::string hash = hash_of(text);
  text += std::string(kHashField) + hash + "\"}\n";
  return {std::move(text), std::move(hash)};
}

Result<ReadLine> read_line(std::string_view text) {
  const std::size_t tail = kHashField.size() + kHashText + 2;
  if (text.size() < tail || !text.ends_with("\"}") ||
      text.substr(text.size() - tail, kHashField.size()) != kHashField)
    return fail(ErrorCode::malformed, "is no record of an audit log");
  const std::string body(text.substr(0, text.size() - tail));
  ReadLine out;
  out.hash = text.substr(text.size() - kHashText - 2, kHashText);
  if (hash_of(body) != out.hash)
    return fail(ErrorCode::malformed, "was changed: its hash is not that of its text");
  auto entry = codec::from_json<Entry>(body + "}");
  if (!entry)
    return fail(ErrorCode::malformed, "is no record of an audit log: " + entry.error().message);
  out.record = std::move(entry->record);
  out.prev = std::move(entry->prev);
  return out;
}

}  // namespace gantry::audit
